//! What every engine must do with groups of ranks.

use std::time::Duration;

use gnarl_common::{Error, Result};
use gnarl_engine::Communicator;

use super::{Case, LONG, Outcome, told};

pub fn groups_are_of_one_color_in_the_order_of_keys() -> Case {
    let body = |c: &dyn Communicator| {
        // Odd ranks backwards, even ones in their order since their keys are equal.
        let odd = c.rank() % 2;
        let group = c.split("sides", odd, if odd == 1 { c.size() - c.rank() } else { 7 })?;
        let mut out = vec![group.rank() as f64, group.size() as f64];
        let seen = group.all_gather("who", &[c.rank() as u8])?;
        out.extend(seen.concat().into_iter().map(f64::from));
        // Groups go on at their own pace, with messages of all lengths.
        for round in 0..1 + 50 * odd {
            let mut sums = vec![(c.rank() + round) as f32; 20_001];
            group.all_reduce_sum("sum", &mut sums)?;
            let right = (0..c.size()).filter(|rank| rank % 2 == odd).map(|rank| rank + round);
            let right = right.sum::<usize>() as f32;
            out[0] += sums.iter().filter(|sum| **sum != right).count() as f64;
        }
        let mut first = [c.rank() as f32];
        group.broadcast("first", 0, &mut first)?;
        out.push(f64::from(first[0]));
        let give = (0..group.size()).map(|to| vec![(10 * c.rank() + to) as u8]).collect();
        let given = group.all_to_all("rows", give)?;
        out.extend(given.concat().into_iter().map(f64::from));
        c.barrier("together again")?;
        Ok(out)
    };
    let check = |outcome: Outcome| {
        let even = |rank: usize| {
            let own = rank as f64;
            let common = [3.0, 0.0, 2.0, 4.0, 0.0];
            [&[own][..], &common, &[own, 20.0 + own, 40.0 + own]].concat()
        };
        let odd = |rank: usize| {
            let own = rank as f64;
            [&[own, 2.0, 3.0, 1.0, 3.0][..], &[30.0 + own, 10.0 + own]].concat()
        };
        assert_eq!(outcome, Ok(vec![even(0), odd(1), even(1), odd(0), even(2)]));
    };
    Case { ranks: 5, deadline: LONG, body, check }
}

/// Rows and columns of a square of ranks, taken in turn, and a group of a group.
pub fn ranks_are_in_several_groups_at_once() -> Case {
    let body = |c: &dyn Communicator| {
        let (row, column) = (c.rank() / 2, c.rank() % 2);
        let across = c.split("rows", row, column)?;
        let down = c.split("columns", column, row)?;
        let mut out = Vec::new();
        for round in 0..20 {
            for group in [&*across, &*down, c] {
                let mut sum = [(1 << c.rank()) as f32 + round as f32];
                group.all_reduce_sum("sum", &mut sum)?;
                out.push(f64::from(sum[0]) - f64::from(round) * group.size() as f64);
            }
        }
        let alone = across.split("alone", across.rank(), 0)?;
        let mut own = [c.rank() as f32];
        alone.all_reduce_sum("own", &mut own)?;
        let other = out.chunks(3).filter(|round| *round != &out[..3]).count();
        out.truncate(3);
        out.extend([other as f64, alone.size() as f64, f64::from(own[0])]);
        Ok(out)
    };
    let check = |outcome: Outcome| {
        let of = |row: f64, column: f64, rank: f64| vec![row, column, 15.0, 0.0, 1.0, rank];
        let all =
            vec![of(3.0, 5.0, 0.0), of(3.0, 10.0, 1.0), of(12.0, 5.0, 2.0), of(12.0, 10.0, 3.0)];
        assert_eq!(outcome, Ok(all));
    };
    Case { ranks: 4, deadline: LONG, body, check }
}

/// Ranks come to their groups in different orders, which would never meet on one thread.
pub fn groups_wait_on_threads_of_their_own() -> Case {
    let body = |c: &dyn Communicator| {
        let group = c.split("beside", 0, c.rank())?;
        let rounds = |c: &dyn Communicator, first: bool| -> Result<f64> {
            let mut sum = [0.0f32];
            for round in 0..100 {
                if first {
                    std::thread::sleep(Duration::from_micros(100));
                }
                let mut one = [(c.rank() + round) as f32];
                c.all_reduce_sum("round", &mut one)?;
                sum[0] += one[0];
            }
            Ok(f64::from(sum[0]))
        };
        let late = c.rank() == 0;
        let (a, b) = std::thread::scope(|scope| {
            let beside = scope.spawn(|| rounds(&*group, late));
            (rounds(c, !late), beside.join().expect("no panic"))
        });
        Ok(vec![a?, b?])
    };
    let check = |outcome: Outcome| {
        let sum = 100.0 * 3.0 + 3.0 * 4950.0;
        assert_eq!(outcome, Ok(vec![vec![sum; 2]; 3]));
    };
    Case { ranks: 3, deadline: LONG, body, check }
}

pub fn a_missing_rank_of_a_group_is_named_by_its_number_in_the_run() -> Case {
    let body = |c: &dyn Communicator| {
        let group = c.split("sides", c.rank() % 2, 0)?;
        if c.rank() != 3 {
            group.barrier("layer 2")?;
        }
        Ok(vec![])
    };
    let check = |outcome: Outcome| told(outcome, &["rank 1 waited", "'layer 2'", "for rank 3"]);
    Case { ranks: 4, deadline: Duration::from_secs(2), body, check }
}

pub fn a_rank_that_fails_in_a_group_ends_all_groups() -> Case {
    let body = |c: &dyn Communicator| {
        let group = c.split("sides", c.rank() / 2, 0)?;
        match c.rank() {
            3 => Err(Error::invalid("part-3 is damaged")),
            1 => c.barrier("epoch").map(|()| vec![]),
            _ => group.barrier("slices").map(|()| vec![]),
        }
    };
    let check = |outcome: Outcome| {
        let errors = outcome.expect_err("a rank failed");
        assert!(errors.iter().all(|error| error.contains("part-3 is damaged")), "{errors:?}");
    };
    Case { ranks: 4, deadline: LONG, body, check }
}

pub fn a_group_that_gives_up_ends_the_run() -> Case {
    let body = |c: &dyn Communicator| {
        let group = c.split("sides", c.rank() / 2, 0)?;
        if c.rank() == 2 {
            group.abort("no memory for slices");
        }
        c.barrier("epoch").map(|()| vec![])
    };
    let check = |outcome: Outcome| told(outcome, &["rank 2 failed: no memory for slices"]);
    Case { ranks: 4, deadline: LONG, body, check }
}

/// A rank alone in its group waits for nobody; even there nothing ends well, and no other rank does
/// by returning without a word.
pub fn a_rank_that_gave_up_completes_nothing() -> Case {
    let body = |c: &dyn Communicator| {
        let alone = c.split("alone", c.rank(), 0)?;
        if c.rank() == 1 {
            alone.abort("no memory for slices");
            let completed = [
                alone.barrier("epoch").is_ok(),
                alone.all_reduce_sum("epoch", &mut [1.0]).is_ok(),
                alone.all_to_all("epoch", vec![vec![]]).is_ok(),
                alone.broadcast("epoch", 0, &mut [1.0]).is_ok(),
            ];
            if completed.contains(&true) {
                return Err(Error::invalid(format!("it went on: {completed:?}")));
            }
        }
        Ok(vec![])
    };
    let check = |outcome: Outcome| {
        let errors = outcome.expect_err("a rank gave up");
        let reason = "rank 1 failed: no memory for slices";
        assert!(errors.iter().all(|error| error.contains(reason)), "{errors:?}");
    };
    Case { ranks: 3, deadline: LONG, body, check }
}

pub fn ranks_of_a_group_at_different_stages_are_told() -> Case {
    let body = |c: &dyn Communicator| {
        let group = c.split("sides", c.rank() / 2, 0)?;
        group.barrier(if c.rank() == 3 { "gather" } else { "split" }).map(|()| vec![])
    };
    let check = |outcome: Outcome| told(outcome, &["'gather'", "'split'"]);
    Case { ranks: 4, deadline: LONG, body, check }
}
