//! Output: logs, progress and results.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gnarl_common::Error;
use gnarl_train::telemetry::pulse::every_minute;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::time::ChronoUtc;
use tracing_subscriber::prelude::*;

/// Logs go to stderr; `RUST_LOG` refines the level of `verbose`. Of several processes the first
/// logs progress, the others only warnings and errors. Lines have timestamps where they go to a
/// file, and on a terminal a progress bar replaces heartbeat messages.
pub fn start_logging(verbose: u8) {
    let level = match verbose {
        0 if launched("RANK").unwrap_or(0) > 0 => LevelFilter::WARN,
        0 => LevelFilter::INFO,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let asked = std::env::var("RUST_LOG").ok().filter(|asked| !asked.is_empty());
    let asked = asked.map(|asked| asked.parse::<Targets>().map_err(|e| format!("'{asked}': {e}")));
    let asked_for = matches!(asked, Some(Ok(_)));
    let (filter, refused) = match asked {
        Some(Ok(filter)) => (filter, None),
        Some(Err(refused)) => (Targets::new().with_default(level), Some(refused)),
        None => (Targets::new().with_default(level), None),
    };
    let terminal = std::io::stderr().is_terminal();
    // An explicit `RUST_LOG` is left as it is.
    let filter = match asked_for {
        false if terminal => filter.with_target("gnarl_train::telemetry::pulse", LevelFilter::OFF),
        _ => filter,
    };
    let lines = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(std::io::stderr)
        .with_ansi(terminal && std::env::var_os("NO_COLOR").is_none())
        .with_target(false);
    match terminal {
        true => lines.without_time().finish().with(filter).init(),
        false => {
            let clock = ChronoUtc::new("%Y-%m-%dT%H:%M:%SZ".into());
            lines.with_timer(clock).finish().with(filter).init();
        }
    }
    if let Some(refused) = refused {
        tracing::warn!(
            "RUST_LOG is ignored, {refused}; expected a level or a list such as gnarl_train=debug"
        );
    }
}

/// The environment of a launcher of parallel processes: this process's `RANK`, or the `SIZE` of the
/// group.
pub fn launched(what: &str) -> Option<u32> {
    let read = |prefix| std::env::var(format!("{prefix}_{what}")).ok()?.parse().ok();
    ["OMPI_COMM_WORLD", "PMI"].into_iter().find_map(read)
}

/// Shows progress of a long step: a spinner with the elapsed time and the bytes written so far.
/// Where stderr is no terminal, a line every minute.
pub fn while_busy<T>(what: &str, out: &Path, work: impl FnOnce() -> T) -> T {
    let spinner = ProgressBar::new_spinner();
    if !std::io::stderr().is_terminal() {
        return every_minute(|| format!("{what} {}", out.display()), work);
    }
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
        spinner.set_style(style);
    }
    let done = AtomicBool::new(false);
    let out = out.to_path_buf();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let written = HumanBytes(unfinished_size(&out));
                spinner.set_message(format!("{what} {}: {written} written", out.display()));
                spinner.tick();
                std::thread::sleep(Duration::from_millis(100));
            }
            spinner.finish_and_clear();
        });
        // Also on a panic in the work, or the spinner would never stop.
        let _end = SetOnDrop(&done);
        work()
    })
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes written so far of the output that will appear at `out`.
fn unfinished_size(out: &Path) -> u64 {
    let name = format!("{}.tmp-", out.file_name().unwrap_or_default().to_string_lossy());
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = std::fs::read_dir(parent.unwrap_or(Path::new("."))) else { return 0 };
    let ours = entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(&name));
    ours.map(|entry| folder_size(&entry.path())).sum()
}

/// Bytes of the files in a folder and its subfolders; 0 if it does not exist.
fn folder_size(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => folder_size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// Prints the result as one line of JSON on stdout, and returns the exit code; of several cooperating processes only one
/// has a result.
pub fn print_result(result: &Value) -> u8 {
    if result.is_null() {
        return 0;
    }
    match writeln!(std::io::stdout(), "{result}") {
        Ok(()) => 0,
        // A closed pipe is no failure: the reader has seen enough.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(e) => {
            eprintln!("error: cannot write the result: {e}");
            1
        }
    }
}

/// Prints a part of the result as a line on stdout, at once.
pub fn stream(line: &impl Display) {
    let mut out = std::io::stdout().lock();
    // Whoever reads no more has seen enough.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Prints an error with its hint on stderr.
pub fn print_error(error: &Error) {
    eprintln!("error: {error}");
}

/// A result as JSON.
pub fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
