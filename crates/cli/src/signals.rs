//! Signals: an orderly shutdown, and limits that become errors.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use gnarl_common::staging::interrupt;
use gnarl_common::{Error, Kind, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output::launched;

/// Time for work that stops by itself to do so. Schedulers send SIGKILL 30 s after SIGTERM.
const GRACE: Duration = Duration::from_secs(15);

/// Installs handlers of SIGINT and SIGTERM that end the process without leaving incomplete output:
/// at once, or, where work stops at a good moment by itself, then. A second signal ends it at once.
///
/// # Errors
/// If the system does not let this process handle signals.
pub fn start() -> Result<()> {
    let failed = |e| Error::new(Kind::Io, format!("cannot handle signals: {e}"));
    // With any handler, a write beyond the limit on file sizes is an error that names the file,
    // instead of the end of the process without a word.
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map_err(failed)?;
    #[cfg(unix)]
    crate::shortened::start()?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (heard, hear) = channel();
    let forward = move || signals.forever().try_for_each(|signal| heard.send(signal));
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(forward)
        .and_then(|_| std::thread::Builder::new().name("end".into()).spawn(move || end(&hear)))
        .map_err(failed)?;
    Ok(())
}

/// Waits for a signal, and ends the process.
fn end(signals: &Receiver<i32>) {
    let Ok(signal) = signals.recv() else { return };
    // Asked first: work that stops at the request may be done before anyone looks again.
    let stops = interrupt::stops();
    interrupt::request(signal);
    if let Some(when) = stops {
        say(&format!(
            "{}: stopping {when}, after {} s in any case; once more to stop at once",
            name(signal),
            GRACE.as_secs()
        ));
        // Either a second signal or the end of the grace period; work that stops by itself exits
        // before.
        let _ = signals.recv_timeout(GRACE);
    }
    let folders = interrupt::abandon();
    let mut text = format!("{}: ended early", name(signal));
    for folder in &folders {
        text += &format!("; removed {}, which was not whole", folder.display());
    }
    if let Some(advice) = interrupt::advice() {
        text += &format!("\nhint: {advice}");
    }
    say(&text);
    std::process::exit(128 + signal);
}

/// Blocks if the process is being ended: errors of other threads would be misleading then.
pub fn wait_if_ending() {
    while interrupt::abandoned() {
        std::thread::park();
    }
}

/// The exit code of an error.
pub fn exit_code(error: &Error) -> u8 {
    match interrupt::requested() {
        Some(signal) if error.kind() == Kind::Interrupted => 128 + signal as u8,
        _ => error.exit_code(),
    }
}

/// Prints a line on stderr, on the first of several processes only.
fn say(text: &str) {
    if launched("RANK").unwrap_or(0) == 0 {
        // There is nobody left to tell that the terminal is gone.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        SIGINT => "interrupted",
        _ => "terminated",
    }
}
