//! Fault injection for tests. Built with the cargo feature `faults`, a rank executes at each stage
//! the action of the environment variable `FAILPOINTS`, in the syntax of the crate `fail`:
//! `compute=sleep(50)` makes every batch slow, `sample=6*off->return` kills the process (as `kill
//! -9` does) at the seventh batch. Without the feature it compiles to nothing.

/// Marks that the rank has reached `stage`.
#[cfg(feature = "faults")]
pub(crate) fn reached(stage: &str) {
    static READ: std::sync::Once = std::sync::Once::new();
    // The environment's actions stay in effect to the end of the process.
    READ.call_once(|| std::mem::forget(fail::FailScenario::setup()));
    fail::fail_point!(stage, |_| die());
}

/// Marks that the rank has reached `stage`.
#[cfg(not(feature = "faults"))]
pub(crate) fn reached(_stage: &str) {}

/// Kills the process without any cleanup.
#[cfg(feature = "faults")]
fn die() {
    let me = std::process::id().to_string();
    let killed = std::process::Command::new("kill").args(["-9", &me]).status();
    panic!("could not be killed: {killed:?}");
}
