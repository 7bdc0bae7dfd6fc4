//! A mapped file is rewritten in place while it is read: nothing that was computed since is taken for a result.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Bench, gnarl, path, succeed};
#[cfg(feature = "mpi")]
use crate::mpi::machines;

/// An inference begins long after its files are open.
const INFERENCE: &str = "inference=sleep(4000)";

/// Starts a command with faults.
fn start(args: &[&str], faults: &str) -> Child {
    let mut command = gnarl();
    command.args(args).env("FAILPOINTS", faults).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary starts")
}

/// Waits until `there` is true.
fn wait(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Changes a value at the end of a file, in place.
fn change(file: &Path) {
    let last = std::fs::read(file).unwrap().pop().unwrap();
    let mut file = File::options().write(true).open(file).unwrap();
    file.seek(SeekFrom::End(-1)).unwrap();
    file.write_all(&[last ^ 1]).unwrap();
}

/// The features of a graph, which are not told to be wrong by what they are.
fn features(graph: &Path) -> PathBuf {
    graph.join("_N.features.npy")
}

/// The errors of a command that maps `file`, which changes then.
fn changed_under(mut child: Child, file: &Path) -> String {
    let maps = format!("/proc/{}/maps", child.id());
    wait("to map the file", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains(path(file)))
    });
    // It is compared when it is opened.
    std::thread::sleep(Duration::from_millis(500));
    change(file);
    told(&child.wait_with_output().unwrap(), file)
}

/// The errors of a command that must have failed because of a file.
fn told(output: &Output, file: &Path) -> String {
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains(&format!("{}: checksum differs", path(file))), "{err}");
    assert!(err.contains("by renaming new ones") && !err.contains("panicked"), "{err}");
    err
}

#[test]
fn an_evaluation_ends_with_the_name_of_the_file() {
    let bench = Bench::new("[train]\nepochs = 1\n");
    bench.train(&[]);
    let child = start(&["eval", path(&bench.run)], INFERENCE);
    changed_under(child, &features(&bench.graph));
}

#[test]
fn an_inference_leaves_no_table() {
    let bench = Bench::new("[train]\nepochs = 1\n");
    bench.train(&[]);
    let out = bench.dir.path().join("out.csv");
    let args = ["infer", path(&bench.run), "--out", path(&out)];
    for ranks in ["1", "2"] {
        let child = start(&[&args[..], &["--ranks", ranks]].concat(), INFERENCE);
        changed_under(child, &features(&bench.graph));
        assert!(!out.exists());
        change(&features(&bench.graph));
    }
    succeed(&args);
}

#[test]
fn no_batches_of_it_are_left() {
    let bench = Bench::new("");
    let out = bench.dir.path().join("batches");
    let args = ["sample", path(&bench.file), "--out", path(&out)];
    let lists = bench.graph.join("_N._E._N.csc.indices.npy");
    changed_under(start(&args, "sample=sleep(500)"), &lists);
    assert!(!out.exists());
    change(&lists);
    succeed(&args);
}

#[test]
fn weights_that_were_trained_on_it_are_not_written() {
    let bench = Bench::new("[train]\nepochs = 100\neval_every = 1\n");
    // About a second an epoch.
    let child = start(&bench.args(&[]), "compute=sleep(50)");
    let model = bench.run.join("model.safetensors");
    wait("the first epoch", || model.exists());
    std::thread::sleep(Duration::from_millis(100));
    let written = || std::fs::metadata(&model).unwrap().modified().unwrap();
    let before = loop {
        let before = written();
        change(&features(&bench.graph));
        if written() == before {
            break before;
        }
        // An epoch has ended between.
        change(&features(&bench.graph));
    };
    told(&child.wait_with_output().unwrap(), &features(&bench.graph));
    assert_eq!(written(), before);
}

/// Runs that panic after some epochs, with nothing written in between.
const PANICKING: &str = "epochs = 1000\neval_every = 1000\ncheckpoint_seconds = 1000\n";
const PANIC: &str = "compute=160*sleep(50)->panic(index out of bounds)";

/// The output of a run that panics over features that changed after its first epoch.
fn panicking(bench: &Bench, command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let metrics = bench.run.join("metrics.jsonl");
    wait("the first epoch", || std::fs::read(&metrics).is_ok_and(|lines| !lines.is_empty()));
    change(&features(&bench.graph));
    child.wait_with_output().unwrap()
}

#[test]
fn a_panic_of_a_rank_is_told_as_the_file() {
    let bench = Bench::new(&format!("[train]\nworkers = 2\n{PANICKING}"));
    let mut command = gnarl();
    let output = panicking(&bench, command.args(bench.args(&[])).env("FAILPOINTS", PANIC));
    let err = told(&output, &features(&bench.graph));
    assert_eq!(err.matches("error: ").count(), 1, "{err}");
}

/// The other rank learns the name, too.
#[cfg(feature = "mpi")]
#[test]
fn a_panic_of_a_process_is_told_as_the_file_by_all() {
    let bench = Bench::new(&format!("[train]\ndeadline_seconds = 30\n{PANICKING}"));
    let args: Vec<String> = bench.args(&["train.engine=mpi"]).into_iter().map(Into::into).collect();
    let output = panicking(&bench, &mut machines(&args, Some((1, PANIC))));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && !err.contains("panicked"), "{err}");
    let told = format!("rank 1 failed: rank 1: {}: checksum", path(&features(&bench.graph)));
    assert!(err.contains(&told), "{err}");
}

#[cfg(feature = "serve")]
#[test]
fn a_server_ends_with_the_name_of_the_file() {
    let bench = Bench::new("");
    let parts = bench.dir.path().join("parts");
    succeed(&["partition", path(&bench.graph), "--parts", "1", "--out", path(&parts)]);
    let child = start(&["serve", path(&parts), "--listen", "127.0.0.1:0"], "");
    changed_under(child, &parts.join("part-0/_N.features.npy"));
}

#[cfg(feature = "serve")]
#[test]
fn a_server_of_a_model_ends_with_the_name_of_the_file() {
    let bench = Bench::new("[train]\nepochs = 1\n");
    bench.train(&[]);
    let child = start(&["serve-model", path(&bench.run), "--listen", "127.0.0.1:0"], "");
    changed_under(child, &features(&bench.graph));
}
