//! Partitioning in a process of its own, so that its peak memory is its own too.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gnarl_partition::PartitionReport;

/// Runs `gnarl partition DATASET --dry-run` with more `words` in a child process. A failure is
/// returned in a few words that fit into a table.
pub fn dry_run(
    dataset: &Path,
    words: &[String],
    timeout: Duration,
) -> Result<PartitionReport, String> {
    let exe = std::env::current_exe().map_err(|e| format!("no executable: {e}"))?;
    let mut command = Command::new(exe);
    command.arg("partition").arg(dataset).arg("--dry-run").args(words);
    let line = last_line(&mut command, timeout)?;
    serde_json::from_str(&line).map_err(|e| format!("unreadable result: {e}"))
}

/// The last line that `command` prints, or the reason why there is none.
pub fn last_line(command: &mut Command, timeout: Duration) -> Result<String, String> {
    let (out, err) = (Stdio::piped(), Stdio::piped());
    let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
    let mut child = child.map_err(|e| format!("not started: {e}"))?;
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let status = wait(&mut child, timeout);
    let text = |reader: JoinHandle<String>| reader.join().unwrap_or_default();
    let (out, err) = (text(out), text(err));
    if !status?.success() {
        return Err(in_short(&err));
    }
    out.lines().last().map(String::from).ok_or_else(|| "no result".into())
}

/// Reads a pipe to its end concurrently, as the child would block on a full one.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Data before a broken pipe is still useful.
        let _ = pipe.map(|mut p| p.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, timeout: Duration) -> Result<std::process::ExitStatus, String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if start.elapsed() < timeout => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                // The child may have ended meanwhile; either way it is reaped.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("over {} s", timeout.as_secs()));
            }
            Err(e) => return Err(format!("lost: {e}")),
        }
    }
}

/// A short reason of a failure, from the child's stderr.
fn in_short(err: &str) -> String {
    let error = err.lines().find_map(|l| l.strip_prefix("error: ")).or(err.lines().last());
    match error {
        Some(e) if e.contains("MiB are allowed") || e.contains("MemoryError") => {
            "over memory".into()
        }
        Some(e) => e.rsplit(": ").next().unwrap_or(e).replace('|', "/").chars().take(60).collect(),
        None => "killed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_short() {
        let refused = " INFO x\nerror: partitioning g: metis needs 9 MiB for this graph, 8 MiB are allowed\nhint: h";
        assert_eq!(in_short(refused), "over memory");
        assert_eq!(in_short("error: a: b: no | here"), "no / here");
        assert_eq!(in_short(""), "killed");
    }

    #[test]
    fn children_are_heard_and_stopped() {
        let shell = |script: &str, seconds: f64| {
            let mut command = Command::new("sh");
            last_line(command.args(["-c", script]), Duration::from_secs_f64(seconds))
        };
        assert_eq!(shell("echo one; echo two", 60.0), Ok("two".into()));
        assert_eq!(shell("echo 'error: x: why' >&2; exit 1", 60.0), Err("why".into()));
        assert_eq!(shell("exec sleep 60", 0.0), Err("over 0 s".into()));
    }
}
