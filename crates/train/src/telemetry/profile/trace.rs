//! The spans as a file for viewers of traces: objects in the form of Chrome's trace events, which Perfetto reads, too.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::Path;

use gnarl_common::profile::{Kind, Profile};
use gnarl_common::staging::AtomicFile;
use gnarl_common::{Result, ResultExt};
use serde_json::{Value, json};

/// Writes the spans of processes: a rank is a process of the trace. Times of several hosts are apart as their clocks are.
///
/// # Errors
/// If the disk is full.
pub(super) fn write(path: &Path, profiles: &[Profile]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    events(&mut BufWriter::new(&mut file), profiles).at(path)?;
    file.commit()
}

fn events(out: &mut impl Write, profiles: &[Profile]) -> std::io::Result<()> {
    let first = profiles.iter().map(|profile| profile.unix).min().unwrap_or(0);
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut event = {
        let mut separator = "\n";
        move |out: &mut dyn Write, event: &Value| {
            write!(out, "{separator}{event}")?;
            separator = ",\n";
            Ok::<_, std::io::Error>(())
        }
    };
    for profile in profiles {
        let ranks: BTreeSet<usize> = profile.threads.iter().map(|thread| thread.rank).collect();
        for rank in ranks {
            let name = json!({ "name": format!("rank {rank}") });
            event(out, &json!({ "ph": "M", "name": "process_name", "pid": rank, "args": name }))?;
        }
        for (number, thread) in profile.threads.iter().enumerate() {
            event(
                out,
                &json!({
                    "ph": "M",
                    "name": "thread_name",
                    "pid": thread.rank,
                    "tid": number,
                    "args": { "name": thread.name },
                }),
            )?;
        }
        let offset = (profile.unix - first) as f64;
        for span in &profile.spans {
            let sum = &profile.sums[span.sum as usize];
            let seconds = 1e-9 * span.took as f64;
            let args = match sum.kind {
                Kind::Stage => json!({}),
                Kind::Collective => json!({ "bytes": span.work.bytes }),
                Kind::Kernel => json!({
                    "GFLOP/s": 1e-9 * span.work.flops / seconds.max(1e-9),
                    "GB/s": 1e-9 * span.work.bytes / seconds.max(1e-9),
                }),
            };
            event(
                out,
                &json!({
                    "ph": "X",
                    "cat": sum.kind,
                    "name": sum.name,
                    "pid": profile.threads[span.thread as usize].rank,
                    "tid": span.thread,
                    "ts": 1e-3 * (offset + span.start as f64),
                    "dur": 1e-3 * span.took as f64,
                    "args": args,
                }),
            )?;
        }
    }
    writeln!(out, "\n]}}")?;
    out.flush()
}
