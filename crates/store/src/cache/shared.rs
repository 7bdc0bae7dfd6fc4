//! Rows that several callers need in the same step, each fetched once.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use gnarl_common::{Error, Kind, Result};
use hashbrown::HashMap;

use super::rows::FetchRows;
use crate::source::{check_len, span};

/// Rows of the steps that are under way.
///
/// The ranks of a process make their batches of a step at about the same time, of nodes many of which occur in several of
/// them: the first one that needs a row fetches it for all (mini-batch grouping of Armada, section 5). Rows stay until
/// every caller of a step has its own.
#[derive(Default)]
pub struct SharedRows {
    steps: Mutex<HashMap<u64, Arc<Mutex<Step>>>>,
}

struct Step {
    /// The flight of each id's row, and its place there.
    rows: HashMap<u64, (u32, u32)>,
    /// Rows of each caller so far, on their way or landed.
    flights: Vec<Arc<Flight>>,
    /// Callers in all.
    callers: usize,
    /// Callers that have not ended.
    left: usize,
}

/// Rows that one caller fetches.
#[derive(Default)]
struct Flight {
    rows: OnceLock<Result<Vec<f32>>>,
    waiting: Mutex<()>,
    landed: Condvar,
}

/// The ids of a caller: those it fetches, and where the others are.
#[derive(Default)]
struct Split {
    own: Vec<u64>,
    /// Output row of each id in `own`.
    places: Vec<u32>,
    /// Output rows, and the flight and place of each.
    joined: Vec<(u32, u32, u32)>,
    flights: Vec<Arc<Flight>>,
}

impl SharedRows {
    /// Fetches the rows of distinct `ids`, of `width` values each, into `out`, as one of so many `callers` of `step`. Calls
    /// `source` at most once, for those ids that no other caller of the step has asked for. Returns how many these are.
    ///
    /// Every caller of a step must call once. A caller waits for rows of others as long as their sources take.
    ///
    /// # Errors
    /// If `out` is not of that length; those of the source, also of another caller's.
    pub fn fetch(
        &self,
        (step, callers): (u64, usize),
        (ids, width): (&[u64], usize),
        out: &mut [f32],
        source: FetchRows<'_>,
    ) -> Result<usize> {
        check_len(out, ids.len(), width)?;
        if callers <= 1 {
            source(ids, out)?;
            return Ok(ids.len());
        }
        let flight = Arc::new(Flight::default());
        let joining = self.join(step, callers);
        let Split { own, places, joined, flights } = split(&joining, ids, &flight);
        // Whichever way it ends: others wait for it, and the step's rows are to go.
        let _ending = Ending { shared: self, flight: &flight, step };
        if !own.is_empty() {
            let mut rows = vec![0.0; own.len() * width];
            source(&own, &mut rows).inspect_err(|error| flight.land(Err(error.clone())))?;
            for (at, &place) in places.iter().enumerate() {
                out[span(place as usize, width)].copy_from_slice(&rows[span(at, width)]);
            }
            flight.land(Ok(rows));
        }
        let mut landed = vec![None; flights.len()];
        for (place, number, at) in joined {
            let number = number as usize;
            let rows = match landed[number] {
                Some(rows) => rows,
                None => *landed[number].insert(flights[number].wait()?),
            };
            let row = &rows[span(at as usize, width)];
            out[span(place as usize, width)].copy_from_slice(row);
        }
        Ok(own.len())
    }

    fn steps(&self) -> MutexGuard<'_, HashMap<u64, Arc<Mutex<Step>>>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, step: u64, callers: usize) -> Arc<Mutex<Step>> {
        let new = || {
            Arc::new(Mutex::new(Step {
                rows: HashMap::new(),
                flights: Vec::new(),
                callers,
                left: callers,
            }))
        };
        self.steps().entry(step).or_insert_with(new).clone()
    }
}

/// Finds out who fetches which of `ids`: those that nobody has asked for come with `flight`.
fn split(step: &Mutex<Step>, ids: &[u64], flight: &Arc<Flight>) -> Split {
    let mut step = step.lock().unwrap_or_else(PoisonError::into_inner);
    let Step { rows, flights, callers, .. } = &mut *step;
    // Nobody comes after the last one.
    let is_last = flights.len() + 1 >= *callers;
    let number = flights.len() as u32;
    let mut split = Split::default();
    for (place, &id) in (0..).zip(ids) {
        if let Some(&(of, at)) = rows.get(&id) {
            split.joined.push((place, of, at));
            continue;
        }
        if !is_last {
            rows.insert(id, (number, split.own.len() as u32));
        }
        split.own.push(id);
        split.places.push(place);
    }
    flights.push(flight.clone());
    split.flights.clone_from(flights);
    split
}

impl Flight {
    /// Hands the rows to those that wait, unless there are some already.
    fn land(&self, rows: Result<Vec<f32>>) {
        // Under the lock: whoever finds none begins to wait under it.
        let _waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        _ = self.rows.set(rows);
        self.landed.notify_all();
    }

    fn wait(&self) -> Result<&[f32]> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match self.rows.get() {
                Some(Ok(rows)) => return Ok(rows),
                Some(Err(error)) => return Err(error.clone()),
                None => {}
            }
            waiting = self.landed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Ends a caller's part in a step.
struct Ending<'a> {
    shared: &'a SharedRows,
    flight: &'a Flight,
    step: u64,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        // After a panic: else it has landed, or nobody asks for it.
        let died = "the thread of another rank that fetched features of the same step died";
        self.flight.land(Err(Error::new(Kind::Limit, died)));
        let mut steps = self.shared.steps();
        let Some(step) = steps.get(&self.step).cloned() else { return };
        let mut step = step.lock().unwrap_or_else(PoisonError::into_inner);
        step.left = step.left.saturating_sub(1);
        if step.left == 0 {
            steps.remove(&self.step);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::scope;
    use std::time::Duration;

    use gnarl_common::rng::Key;

    use super::*;

    const WIDTH: usize = 3;

    fn row(id: u64) -> [f32; WIDTH] {
        [id as f32, 2.0 * id as f32, 0.5]
    }

    fn fill(ids: &[u64], out: &mut [f32]) {
        out.chunks_exact_mut(WIDTH).zip(ids).for_each(|(out, &id)| out.copy_from_slice(&row(id)));
    }

    /// Distinct ids of a caller in a step.
    fn ids(caller: u64, step: u64) -> Vec<u64> {
        let key = Key::new(7).with(caller).with(step);
        let mut ids: Vec<u64> = (0..40).filter(|&id| key.below(id, 3) > 0).collect();
        key.shuffle(&mut ids);
        ids
    }

    /// Callers at their own pace, whose replies come late and in any order.
    #[test]
    fn every_row_of_a_step_is_fetched_once_whoever_comes_when() {
        for callers in [1, 2, 5] {
            let shared = SharedRows::default();
            let fetched = AtomicUsize::new(0);
            let own = AtomicUsize::new(0);
            scope(|scope| {
                for caller in 0..callers as u64 {
                    let shared = &shared;
                    let fetched = &fetched;
                    let own = &own;
                    scope.spawn(move || {
                        for step in 0..30 {
                            let pause = Key::new(caller).below(step, 200);
                            let ids = ids(caller, step);
                            let mut out = vec![0.0; ids.len() * WIDTH];
                            let source = |ids: &[u64], out: &mut [f32]| {
                                std::thread::sleep(Duration::from_micros(pause));
                                fetched.fetch_add(ids.len(), Ordering::Relaxed);
                                fill(ids, out);
                                Ok(())
                            };
                            let of = (step, callers);
                            let found = shared.fetch(of, (&ids, WIDTH), &mut out, &source).unwrap();
                            own.fetch_add(found, Ordering::Relaxed);
                            let expected: Vec<f32> = ids.iter().flat_map(|&id| row(id)).collect();
                            assert_eq!(out, expected);
                        }
                    });
                }
            });
            let union = |step| {
                let all = (0..callers as u64).flat_map(|caller| ids(caller, step));
                all.collect::<std::collections::BTreeSet<_>>().len()
            };
            let distinct: usize = (0..30).map(union).sum();
            assert_eq!(fetched.into_inner(), distinct, "{callers} callers");
            assert_eq!(own.into_inner(), distinct);
            assert!(shared.steps().is_empty(), "a step stayed");
        }
    }

    #[test]
    fn a_failure_reaches_all_who_wait_and_leaves_nothing() {
        let shared = SharedRows::default();
        let fails = |_: &[u64], _: &mut [f32]| {
            std::thread::sleep(Duration::from_millis(20));
            Err(Error::new(Kind::Rank, "no reply"))
        };
        let call = |source: FetchRows<'_>| {
            let mut out = vec![0.0; 2 * WIDTH];
            shared.fetch((1, 2), (&[4, 5], WIDTH), &mut out, source).unwrap_err().to_string()
        };
        let errors = scope(|scope| {
            let all = [scope.spawn(|| call(&fails)), scope.spawn(|| call(&fails))];
            all.map(|one| one.join().unwrap())
        });
        assert!(errors.iter().all(|error| error.contains("no reply")), "{errors:?}");
        assert!(shared.steps().is_empty());
        let died = scope(|scope| {
            let panics = |_: &[u64], _: &mut [f32]| -> Result<()> { panic!("on purpose") };
            let first = scope.spawn(move || call(&panics));
            let died = first.join().is_err();
            died && call(&|_, _| Ok(())).contains("another rank that fetched")
        });
        assert!(died && shared.steps().is_empty());
    }
}
