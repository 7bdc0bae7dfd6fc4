//! One suite for every engine: each test runs a body on all ranks of the engine under test.

use std::time::Duration;

use gnarl_engine::{Communicator, local};
use gnarl_graph::{Error, Kind};

const LONG: Duration = Duration::from_secs(20);

#[test]
fn all_reduce_adds_in_rank_order() {
    for size in 1..=5 {
        let sums = local::run(size, LONG, |c| {
            let mut v: Vec<f32> = (0..1000).map(|i| 0.1 * i as f32 + c.rank() as f32).collect();
            c.all_reduce_sum("sum", &mut v)?;
            Ok(v)
        })
        .unwrap();
        let mut expected = vec![0f32; 1000];
        for rank in 0..size {
            for (i, e) in expected.iter_mut().enumerate() {
                *e += 0.1 * i as f32 + rank as f32;
            }
        }
        assert!(sums.iter().all(|s| *s == expected), "{size} ranks");
    }
}

#[test]
fn gather_and_broadcast_reach_everyone() {
    let all = local::run(4, LONG, |c| {
        let gathered = c.all_gather("ids", &vec![c.rank() as u8; c.rank()])?;
        let mut values = [c.rank() as f32; 3];
        c.broadcast("weights", 2, &mut values)?;
        let mut sum = [1.0, c.rank() as f64];
        c.all_reduce_f64("counts", &mut sum)?;
        Ok((gathered, values, sum))
    })
    .unwrap();
    for (gathered, values, sum) in all {
        assert_eq!(gathered, [vec![], vec![1], vec![2, 2], vec![3, 3, 3]]);
        assert_eq!(values, [2.0; 3]);
        assert_eq!(sum, [4.0, 6.0]);
    }
}

#[test]
fn many_rounds_do_not_mix() {
    let sums = local::run(3, LONG, |c| {
        let mut total = 0.0;
        for round in 0..2000 {
            let mut v = [(round * (c.rank() + 1)) as f32];
            c.all_reduce_sum("round", &mut v)?;
            total += v[0];
        }
        Ok(total)
    })
    .unwrap();
    assert!(sums.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn a_missing_rank_is_named_before_the_deadline_ends_the_wait() {
    let error = local::run(3, Duration::from_millis(200), |c| {
        if c.rank() == 1 {
            return Ok(());
        }
        c.barrier("start")
    })
    .unwrap_err();
    assert_eq!(error.kind(), Kind::Rank);
    let text = error.to_string();
    assert!(text.contains("'start'") && text.contains("for rank 1"), "{text}");
}

#[test]
fn the_failing_rank_is_the_one_reported() {
    let error = local::run(3, LONG, |c| match c.rank() {
        2 => Err(Error::invalid("part-2 is damaged")),
        _ => c.barrier("load"),
    })
    .unwrap_err();
    assert_eq!(error.to_string(), "part-2 is damaged");
}

#[test]
fn a_panicking_rank_ends_the_run() {
    let error = local::run(2, LONG, |c| {
        if c.rank() == 0 {
            std::panic::resume_unwind(Box::new("index out of bounds"));
        }
        c.barrier("epoch")
    })
    .unwrap_err();
    assert_eq!(error.to_string(), "rank 0 panicked: index out of bounds");
}

#[test]
fn ranks_at_different_stages_are_told() {
    let error = local::run(2, LONG, |c| match c.rank() {
        0 => c.barrier("train"),
        _ => c.barrier("evaluate"),
    })
    .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("'train'") && text.contains("'evaluate'"), "{text}");
}
