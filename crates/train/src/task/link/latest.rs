//! The latest edges as held-out ones.

use gnarl_common::{Error, Result};

/// Splits edges by time: the latest are test edges, those before them validation edges. Edges of equal time are in one
/// split, the earlier one of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Latest {
    /// Time of the earliest validation edge; none if there is no edge to validate.
    valid: Option<i64>,
    /// Time of the earliest test edge.
    test: Option<i64>,
}

impl Latest {
    /// Splits edges of these times; no split has more than its share of them. Takes eight bytes an edge for a while.
    ///
    /// # Errors
    /// If no time is late enough for a split.
    pub fn of(times: &[i64], (valid, test): (f64, f64)) -> Result<Self> {
        let mut sorted = times.to_vec();
        let held_out = valid + test;
        let found = Self {
            valid: first_of(&mut sorted, valid, held_out, "task.valid")?,
            test: first_of(&mut sorted, test, test, "task.test")?,
        };
        match found {
            Self { valid: Some(valid), test: Some(test) } if valid == test => {
                Err(too_coarse("no edge is left to validate", test, "task.valid"))
            }
            found => Ok(found),
        }
    }

    /// The number of the split of an edge of this time.
    pub fn of_time(self, time: i64) -> u8 {
        match (self.valid, self.test) {
            (_, Some(test)) if time >= test => 2,
            (Some(valid), _) if time >= valid => 1,
            _ => 0,
        }
    }
}

/// The earliest time of the last `held_out` of the edges, as far as whole times fit.
fn first_of(times: &mut [i64], share: f64, held_out: f64, key: &str) -> Result<Option<i64>> {
    let count = (times.len() as f64 * held_out) as usize;
    if share <= 0.0 || count == 0 {
        return Ok(None);
    }
    // The last edge before; all edges of its time stay with it.
    let last = times.len() - count - 1;
    let (_, &mut last, after) = times.select_nth_unstable(last);
    match after.iter().copied().filter(|&time| time > last).min() {
        Some(first) => Ok(Some(first)),
        None => {
            let text = format!("the latest {count} edges, and edges before them, are of one time");
            Err(too_coarse(&text, last, key))
        }
    }
}

fn too_coarse(what: &str, time: i64, key: &str) -> Error {
    Error::invalid(format!("task.split_by = 'time': {what}: too many edges have the time {time}"))
        .hint(format!("set {key} to a larger share, or import edges with a column 'split'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_edges_are_held_out() {
        let times: Vec<i64> = (0..100).map(|i| (i * 37) % 100).collect();
        let latest = Latest::of(&times, (0.1, 0.2)).unwrap();
        assert_eq!(latest, Latest { valid: Some(70), test: Some(80) });
        let split = |time| latest.of_time(time);
        assert_eq!(
            [split(0), split(69), split(70), split(79), split(80), split(99)],
            [0, 0, 1, 1, 2, 2]
        );
        let none = Latest::of(&times, (0.0, 0.2)).unwrap();
        assert_eq!((none.of_time(79), none.of_time(80)), (0, 2));
    }

    #[test]
    fn edges_of_equal_time_stay_together() {
        let times = [1, 2, 3, 4, 5, 5, 5, 5, 6, 6];
        let latest = Latest::of(&times, (0.7, 0.2)).unwrap();
        assert_eq!(latest, Latest { valid: Some(2), test: Some(6) });
        for (times, shares) in [(&times[..], (0.3, 0.2)), (&[7; 10], (0.0, 0.2))] {
            let text = format!("{:?}", Latest::of(times, shares).unwrap_err());
            assert!(text.contains("too many edges have the time"), "{text}");
        }
    }
}
