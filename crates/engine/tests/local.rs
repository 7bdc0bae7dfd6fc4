//! The local engine under the cases of all engines.

mod cases;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cases::{Case, for_each_case};
use gnarl_common::Result;
use gnarl_engine::{Communicator, local};

fn run(case: &Case) {
    let outcome = local::run(case.ranks, case.deadline, |rank| (case.body)(rank));
    (case.check)(outcome.map_err(|e| vec![e.to_string()]));
}

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(&cases::$name());
        })*
    };
}
for_each_case!(tests);

type Collective = fn(&dyn Communicator) -> Result<()>;

const COLLECTIVES: [Collective; 7] = [
    |c| c.barrier("epoch"),
    |c| c.all_gather("epoch", &[1]).map(drop),
    |c| c.all_to_all("epoch", vec![vec![1]; c.size()]).map(drop),
    |c| c.all_reduce_sum("epoch", &mut [1.0]),
    |c| c.all_reduce_f64("epoch", &mut [1.0]),
    |c| c.broadcast("epoch", 0, &mut [1.0]),
    |c| c.split("epoch", 0, 0).map(drop),
];

/// All ranks come to `collective`, of the run or of their half, after rank 2 gave up. One that is
/// the last to come finds whatever the others left.
fn after_a_failure(halves: bool, collective: Collective) {
    let all_split = Barrier::new(4);
    let failed = Barrier::new(4);
    let completed = AtomicUsize::new(0);
    let outcome = local::run(4, Duration::from_secs(20), |c| {
        let half = c.split("halves", c.rank() / 2, 0)?;
        all_split.wait();
        if c.rank() == 2 {
            half.abort("no memory for slices");
        }
        failed.wait();
        let outcome = collective(if halves { &*half } else { c });
        completed.fetch_add(usize::from(outcome.is_ok()), Ordering::Relaxed);
        outcome
    });
    let error = outcome.expect_err("a rank gave up").to_string();
    assert!(error.contains("rank 2 failed: no memory for slices"), "{error}");
    assert_eq!(completed.into_inner(), 0);
}

#[test]
fn nothing_completes_after_a_failure_is_known() {
    for collective in COLLECTIVES {
        after_a_failure(false, collective);
        after_a_failure(true, collective);
    }
}

/// A rank that goes on after an error of its own leaves nothing that others could complete.
#[test]
fn nothing_completes_after_an_error_that_is_ignored() {
    let failed = Barrier::new(2);
    let completed = AtomicUsize::new(0);
    let outcome = local::run(2, Duration::from_millis(1), |c| {
        if c.rank() == 0 {
            assert!(c.barrier("start").is_err(), "rank 1 does not come");
        }
        failed.wait();
        let ended = c.barrier("start").is_ok();
        completed.fetch_add(usize::from(ended), Ordering::Relaxed);
        Ok(())
    });
    let error = outcome.expect_err("a rank was late").to_string();
    assert!(error.contains("waited 0 s at 'start' for rank 1"), "{error}");
    assert_eq!(completed.into_inner(), 0);
}
