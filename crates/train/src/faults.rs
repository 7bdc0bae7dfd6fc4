//! Where tests disturb a rank. Built with the cargo feature `faults`, a rank does at each stage what the
//! environment variable `FAILPOINTS` says, in the words of the crate `fail`: `compute=sleep(50)` makes
//! every batch slow, `sample=6*off->return` kills the process (as `kill -9` does) at the seventh batch.
//! Without the feature nothing is left of it.

/// The rank has come to `stage`.
#[cfg(feature = "faults")]
pub(crate) fn reached(stage: &str) {
    static READ: std::sync::Once = std::sync::Once::new();
    // What the environment says holds to the end of the process.
    READ.call_once(|| std::mem::forget(fail::FailScenario::setup()));
    fail::fail_point!(stage, |_| die());
}

/// The rank has come to `stage`.
#[cfg(not(feature = "faults"))]
pub(crate) fn reached(_stage: &str) {}

/// Ends the process at once; nothing is tidied away.
#[cfg(feature = "faults")]
fn die() {
    let me = std::process::id().to_string();
    let killed = std::process::Command::new("kill").args(["-9", &me]).status();
    panic!("could not be killed: {killed:?}");
}
