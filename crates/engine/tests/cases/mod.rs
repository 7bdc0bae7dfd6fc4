//! What every engine must do: each case runs a body on all ranks and judges what came of it.

mod groups;

use std::time::Duration;

use gnarl_common::{Error, Result};
use gnarl_engine::Communicator;

const LONG: Duration = Duration::from_secs(20);

/// What the ranks returned, in order, or the errors of those that failed.
pub type Outcome = std::result::Result<Vec<Vec<f64>>, Vec<String>>;

pub struct Case {
    pub ranks: usize,
    pub deadline: Duration,
    pub body: fn(&dyn Communicator) -> Result<Vec<f64>>,
    pub check: fn(Outcome),
}

/// Calls a macro with the names of all cases.
macro_rules! for_each_case {
    ($call:ident) => {
        $call! {
            all_reduce_adds_in_rank_order,
            all_reduce_of_one_rank_changes_nothing,
            gather_and_broadcast_reach_everyone,
            everyone_gets_what_is_meant_for_it,
            many_rounds_do_not_mix,
            large_messages_arrive_whole,
            a_missing_rank_is_named_before_the_deadline_ends_the_wait,
            the_failing_rank_is_the_one_reported,
            a_panicking_rank_ends_the_run,
            ranks_at_different_stages_are_told,
            another_length_is_told,
            groups_are_of_one_color_in_the_order_of_keys,
            ranks_are_in_several_groups_at_once,
            groups_wait_on_threads_of_their_own,
            a_missing_rank_of_a_group_is_named_by_its_number_in_the_run,
            a_rank_that_fails_in_a_group_ends_all_groups,
            a_group_that_gives_up_ends_the_run,
            a_rank_that_gave_up_completes_nothing,
            ranks_of_a_group_at_different_stages_are_told,
        }
    };
}
pub(crate) use for_each_case;
pub use groups::*;

/// Number `i` of `rank`: sums depend on the order they are added in.
fn value(i: usize, rank: usize) -> f32 {
    0.1 * i as f32 + 1.7 * rank as f32
}

/// How many of some sums differ from those in rank order, for lengths that are sent in one piece,
/// in shares, and in shares of which some are empty.
fn wrong_sums(c: &dyn Communicator) -> Result<Vec<f64>> {
    let mut wrong = 0;
    for length in [0, 1, 1000, 50_001] {
        let mut sums: Vec<f32> = (0..length).map(|i| value(i, c.rank())).collect();
        c.all_reduce_sum("sum", &mut sums)?;
        let right = |i| (0..c.size()).fold(0.0, |sum, rank| sum + value(i, rank));
        wrong += sums.iter().enumerate().filter(|&(i, sum)| *sum != right(i)).count();
    }
    Ok(vec![wrong as f64])
}

pub fn all_reduce_adds_in_rank_order() -> Case {
    let check = |outcome: Outcome| assert_eq!(outcome, Ok(vec![vec![0.0]; 4]));
    Case { ranks: 4, deadline: LONG, body: wrong_sums, check }
}

pub fn all_reduce_of_one_rank_changes_nothing() -> Case {
    let check = |outcome: Outcome| assert_eq!(outcome, Ok(vec![vec![0.0]]));
    Case { ranks: 1, deadline: LONG, body: wrong_sums, check }
}

pub fn gather_and_broadcast_reach_everyone() -> Case {
    let body = |c: &dyn Communicator| {
        let gathered = c.all_gather("ids", &vec![c.rank() as u8; c.rank()])?;
        let mut values = [c.rank() as f32; 3];
        c.broadcast("weights", 2, &mut values)?;
        let mut sums = [1.0, c.rank() as f64];
        c.all_reduce_f64("counts", &mut sums)?;
        let gathered = gathered.concat().into_iter().map(f64::from);
        Ok(gathered.chain(values.map(f64::from)).chain(sums).collect())
    };
    let check = |outcome: Outcome| {
        let right = vec![1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 4.0, 6.0];
        assert_eq!(outcome, Ok(vec![right; 4]));
    };
    Case { ranks: 4, deadline: LONG, body, check }
}

pub fn everyone_gets_what_is_meant_for_it() -> Case {
    let body = |c: &dyn Communicator| {
        // Nothing, a few bytes and many, in both directions.
        let length = |from: usize, to: usize| [0, 3, 5000][(from + 2 * to) % 3];
        let outgoing =
            (0..c.size()).map(|to| vec![(10 * c.rank() + to) as u8; length(c.rank(), to)]);
        let found = c.all_to_all("rows", outgoing.collect())?;
        let right = |from: usize| vec![(10 * from + c.rank()) as u8; length(from, c.rank())];
        let wrong = found.iter().enumerate().filter(|&(from, bytes)| *bytes != right(from)).count();
        let refused = c.all_to_all("too few", vec![]).is_err();
        Ok(vec![found.len() as f64, wrong as f64, f64::from(u8::from(refused))])
    };
    let check = |outcome: Outcome| assert_eq!(outcome, Ok(vec![vec![4.0, 0.0, 1.0]; 4]));
    Case { ranks: 4, deadline: LONG, body, check }
}

pub fn many_rounds_do_not_mix() -> Case {
    let body = |c: &dyn Communicator| {
        let mut total = 0.0;
        for round in 0..2000 {
            let mut v = [(round * (c.rank() + 1)) as f32];
            c.all_reduce_sum("round", &mut v)?;
            total += v[0] as f64;
        }
        Ok(vec![total])
    };
    let check = |outcome: Outcome| assert_eq!(outcome, Ok(vec![vec![6.0 * 1999.0 * 1000.0]; 3]));
    Case { ranks: 3, deadline: LONG, body, check }
}

pub fn large_messages_arrive_whole() -> Case {
    // Two frames of the MPI engine, from one rank only.
    let body = |c: &dyn Communicator| {
        let length = if c.rank() == 1 { (1 << 26) + 12_345 } else { 0 };
        let bytes: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        let all = c.all_gather("part", &bytes)?;
        let wrong = all[1].iter().enumerate().filter(|&(i, &byte)| byte != (i % 251) as u8).count();
        Ok(vec![all[0].len() as f64, all[1].len() as f64, wrong as f64])
    };
    let check = |outcome: Outcome| {
        assert_eq!(outcome, Ok(vec![vec![0.0, (1 << 26) as f64 + 12_345.0, 0.0]; 2]));
    };
    Case { ranks: 2, deadline: LONG, body, check }
}

/// One of the errors has all of the words.
fn told(outcome: Outcome, words: &[&str]) {
    let errors = outcome.expect_err("the run fails");
    let told = |error: &String| words.iter().all(|word| error.contains(word));
    assert!(errors.iter().any(told), "{errors:?}");
}

pub fn a_missing_rank_is_named_before_the_deadline_ends_the_wait() -> Case {
    let body = |c: &dyn Communicator| {
        if c.rank() != 1 {
            c.barrier("start")?;
        }
        Ok(vec![])
    };
    let check = |outcome: Outcome| told(outcome, &["'start'", "for rank 1"]);
    // Processes on a busy machine may start this far apart.
    Case { ranks: 3, deadline: Duration::from_secs(2), body, check }
}

pub fn the_failing_rank_is_the_one_reported() -> Case {
    let body = |c: &dyn Communicator| match c.rank() {
        2 => Err(Error::invalid("part-2 is damaged")),
        _ => c.barrier("load").map(|()| vec![]),
    };
    let check = |outcome: Outcome| {
        let errors = outcome.expect_err("a rank failed");
        assert!(errors.iter().any(|error| error == "part-2 is damaged"), "{errors:?}");
        assert!(errors.iter().all(|error| error.contains("part-2 is damaged")), "{errors:?}");
    };
    Case { ranks: 3, deadline: LONG, body, check }
}

pub fn a_panicking_rank_ends_the_run() -> Case {
    let body = |c: &dyn Communicator| {
        if c.rank() == 0 {
            std::panic::resume_unwind(Box::new("index out of bounds"));
        }
        c.barrier("epoch").map(|()| vec![])
    };
    let check = |outcome: Outcome| told(outcome, &["rank 0 panicked: index out of bounds"]);
    Case { ranks: 2, deadline: LONG, body, check }
}

pub fn ranks_at_different_stages_are_told() -> Case {
    let body = |c: &dyn Communicator| {
        c.barrier(if c.rank() == 0 { "train" } else { "evaluate" }).map(|()| vec![])
    };
    let check = |outcome: Outcome| told(outcome, &["'train'", "'evaluate'"]);
    Case { ranks: 2, deadline: LONG, body, check }
}

pub fn another_length_is_told() -> Case {
    let body = |c: &dyn Communicator| {
        c.all_reduce_sum("gradients", &mut vec![0.0; 2 + c.rank()]).map(|()| vec![])
    };
    let check = |outcome: Outcome| told(outcome, &["another number of values", "'gradients'"]);
    Case { ranks: 2, deadline: LONG, body, check }
}
