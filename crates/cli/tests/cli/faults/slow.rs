//! A rank is slow, or stuck.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{Divided, numbers};
use crate::metrics::{Running, free, listen, value};
use crate::mpi::{machines, result, text};

#[test]
fn a_slow_rank_changes_no_number_and_shows_in_the_metrics() {
    let divided = Divided::new("epochs = 5\ndeadline_seconds = 60");
    let [first, second] = free();
    let listen = listen(first);
    let args = divided.args(&divided.parts, "ranks", &["train.engine=mpi", &listen]);
    let undisturbed = numbers(&result(&machines(&args, None).output().unwrap()));
    let mut run = machines(&args, Some((1, "compute=sleep(50)")));
    let child = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut run = Running(child);
    let spent = |page: &str, rank: usize, stage: &str| {
        value(page, &format!("gnarl_stage_seconds_total{{rank=\"{rank}\",stage=\"{stage}\"}}"))
    };
    let ready = |page: &str| value(page, "gnarl_epoch{rank=\"0\"}") >= Some(2.0);
    let fast = run.page(first, ready);
    let slow = run.page(second, |page| value(page, "gnarl_epoch{rank=\"1\"}") >= Some(2.0));
    // Ten batches an epoch: the slow one computes, the other waits for it.
    assert!(spent(&slow, 1, "compute") > Some(0.5), "{slow}");
    assert!(spent(&fast, 0, "reduce") > Some(0.5), "{fast}");
    assert!(spent(&fast, 0, "reduce") > spent(&slow, 1, "reduce"), "{fast}{slow}");
    let mut out = String::new();
    std::io::Read::read_to_string(&mut run.0.stdout.take().unwrap(), &mut out).unwrap();
    assert_eq!(numbers(&serde_json::from_str(&out).unwrap()), undisturbed);
}

/// Long before whoever is stuck wakes.
const SOON: Duration = Duration::from_secs(40);

/// The deadline is two seconds; ranks that fail give others as long to tell what they know.
#[test]
fn a_stuck_rank_is_named_soon_after_the_deadline_and_the_run_goes_on() {
    let divided = Divided::new("epochs = 12\ndeadline_seconds = 2");
    let args = divided.args(&divided.parts, "ranks", &["train.engine=mpi"]);
    let with = |how: &str| [&args[..], &[how.to_string()]].concat();
    let undisturbed = numbers(&result(&machines(&args, None).output().unwrap()));
    let mut how = "--restart";
    // Who is stuck where, and where the other waits.
    for (rank, fault, stage) in [
        (1, "fetch=35*off->sleep(600000)", "gradients"),
        (0, "compute=25*off->sleep(600000)", "gradients"),
        (1, "evaluate=1*off->sleep(600000)", "inference: nodes to request"),
        (0, "checkpoint=1*off->sleep(600000)", "gradients"),
    ] {
        let start = Instant::now();
        let output = machines(&with(how), Some((rank, fault))).output().unwrap();
        let err = text(&output.stderr);
        assert!(!output.status.success(), "{fault}: {err}");
        assert!(start.elapsed() < SOON, "{fault}: {:?}", start.elapsed());
        let said = format!("rank {} waited 2 s at '{stage}' for rank {rank}", 1 - rank);
        assert!(err.contains(&said), "{fault}: {err}");
        how = "--resume";
    }
    assert_eq!(numbers(&result(&machines(&with(how), None).output().unwrap())), undisturbed);
}
