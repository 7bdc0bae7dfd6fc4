//! A mistake as a row of a table: input files, a command, and what it must say.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::gnarl;

/// What the mistake is, the files it is made with, the command after `gnarl`, its exit code, and
/// parts of what it says on stdout and stderr. `OUT` in a command is a folder that is new.
pub type Case<'a> = (&'a str, &'a [(&'a str, &'a [u8])], &'a str, i32, &'a [&'a str]);

/// Runs all cases, each in a folder of its own, and reports every one that fails.
pub fn check(cases: &[Case<'_>]) {
    let wrong: Vec<String> = cases.iter().filter_map(|case| run(case).err()).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn run((what, files, command, code, says): &Case<'_>) -> Result<(), String> {
    let dir = tempfile::tempdir().expect("a folder for tests");
    for (name, bytes) in *files {
        std::fs::write(dir.path().join(name), bytes).expect("the test's folder is writable");
    }
    let words = command.split(' ').map(|word| if word == "OUT" { "out" } else { word });
    let output = gnarl().current_dir(dir.path()).args(words).output().expect("the binary starts");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    let mut faults: Vec<String> = says
        .iter()
        .filter(|part| !text.contains(**part))
        .map(|part| format!("no '{part}'"))
        .collect();
    if output.status.code() != Some(*code) {
        faults.push(format!("exit code {:?}, not {code}", output.status.code()));
    }
    if text.contains("panicked") {
        faults.push("a panic on user input".into());
    }
    if *code != 0 {
        let left = names(dir.path()).into_iter().filter(|n| files.iter().all(|(f, _)| f != n));
        faults.extend(left.map(|name| format!("{name} was left behind")));
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(format!("- {what}: {}\n  $ gnarl {command}\n{text}", faults.join(", "))),
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the test's folder is readable");
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// An npy file of the type `descr`.
pub fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{dict:<117}\n").bytes());
    bytes.extend(values);
    bytes
}

/// An npy file of 64-bit integers.
pub fn integers(shape: &str, values: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    npy("<i8", shape, &bytes)
}

/// An npy file of single-precision numbers.
pub fn floats(shape: &str, values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    npy("<f4", shape, &bytes)
}

/// Text compressed with gzip.
pub fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("writes to memory");
    encoder.finish().expect("writes to memory")
}

/// Text in UTF-16 with its byte order mark.
pub fn utf16(text: &str) -> Vec<u8> {
    [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// A Parquet table of edges, `sourceNodeId` and `targetNodeId`.
pub fn parquet() -> Vec<u8> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/cora");
    std::fs::read(path.join("edges.parquet")).expect("examples are there")
}
