//! `gnarl import`, format by format, and what it says of bad files.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::{fail, path, succeed};
use tempfile::TempDir;

/// A directory of input files.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(&path).unwrap().write_all(bytes.as_ref()).unwrap();
        path
    }

    fn npy(&self, name: &str, descr: &str, shape: &str, values: &[u8]) -> PathBuf {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{dict:<117}\n").bytes());
        bytes.extend(values);
        self.write(name, bytes)
    }

    fn integers(&self, name: &str, shape: &str, values: &[i64]) -> PathBuf {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.npy(name, "<i8", shape, &bytes)
    }

    fn edges(&self) -> PathBuf {
        self.integers("edges.npy", "(2, 3)", &[0, 1, 3, 1, 2, 0])
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }

    /// Imports; nodes and edges made.
    fn import(&self, args: &[&str]) -> (u64, u64) {
        let out = self.out();
        let value = succeed(&[&["import"], args, &["--force", "--out", path(&out)]].concat());
        assert!(out.join("dataset.json").exists());
        succeed(&["inspect", path(&out), "--verify"]);
        (value["nodes"].as_u64().unwrap(), value["edges"].as_u64().unwrap())
    }

    /// An import that must be refused with all of `parts` in its message, leaving nothing.
    fn refuse(&self, args: &[&str], parts: &[&str]) {
        let text = fail(&[&["import"], args, &["--out", path(&self.out())]].concat(), 1);
        parts.iter().for_each(|part| assert!(text.contains(part), "no '{part}' in: {text}"));
        for entry in std::fs::read_dir(self.0.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.starts_with("out") && !name.contains("tmp"), "{name} was left behind");
        }
    }
}

#[test]
fn npy_arrays() {
    let files = Files::new();
    let (edges, train) = (files.edges(), files.integers("t.npy", "(2,)", &[0, 2]));
    let labels = files.integers("y.npy", "(4,)", &[0, 1, 1, -1]);
    let split = format!("train={}", train.display());
    let made = files.import(&[
        "npy",
        "--edges",
        path(&edges),
        "--labels",
        path(&labels),
        "--split",
        &split,
        "--symmetrize",
    ]);
    assert_eq!(made, (4, 6));
}

#[test]
fn text_tables() {
    let files = Files::new();
    let csv = files.write("e.csv", "src,dst\n0,1\n1,2\n");
    assert_eq!(files.import(&["csv", "--edges", path(&csv)]), (3, 2));
    let tsv = files.write("e.tsv", "ann\tbob\nbob\tcid\n");
    assert_eq!(files.import(&["tsv", "--edges", path(&tsv)]), (3, 2));
}

#[test]
fn parquet_tables() {
    let files = Files::new();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/cora");
    let made = files.import(&[
        "parquet",
        "--edges",
        path(&dir.join("edges.parquet")),
        "--nodes",
        path(&dir.join("nodes.parquet")),
        "--src",
        "sourceNodeId",
        "--dst",
        "targetNodeId",
        "--id",
        "nodeId",
        "--label",
        "subject",
        "--features",
        "features",
        "--symmetrize",
    ]);
    assert_eq!(made, (2708, 10_556));
}

#[test]
fn triples() {
    let files = Files::new();
    let train = files.write("train.txt", "a\tlikes\tb\nb\tlikes\tc\n");
    let test = files.write("test.txt", "c\tlikes\ta\n");
    let made = files.import(&["triples", "--train", path(&train), "--test", path(&test)]);
    assert_eq!(made, (3, 3));
}

#[test]
fn graphbolt_folders() {
    let files = Files::new();
    files.write("g/e.csv", "0,1\n1,2\n3,0\n");
    let yaml = "graph: {nodes: [{num: 4}], edges: [{format: csv, path: e.csv}]}\n\
                feature_data: [{domain: edge, name: w, format: numpy, path: w.npy}]\n";
    let yaml = files.write("g/metadata.yaml", yaml);
    let folder = yaml.parent().unwrap();
    assert_eq!(files.import(&["graphbolt", path(folder)]), (4, 3));
    let out = files.0.path().join("second");
    let args = ["import", "graphbolt", path(&yaml), "--out", path(&out)];
    let output = crate::common::gnarl().args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("edge feature 'w' is left out"), "{text}");
}

#[test]
fn ogb_folders() {
    let files = Files::new();
    let gz = |name: &str, text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        files.write(&format!("g/{name}.csv.gz"), encoder.finish().unwrap())
    };
    gz("raw/edge", "0,1\n1,2\n3,0\n");
    gz("raw/num-node-list", "4\n");
    gz("raw/num-edge-list", "3\n");
    for (name, ids) in [("train", "0\n1\n"), ("valid", "2\n"), ("test", "3\n")] {
        gz(&format!("split/time/{name}"), ids);
    }
    let root = files.0.path().join("g");
    let import = ["ogb", "--root", path(&root), "--split", "time", "--add-inverse"];
    assert_eq!(files.import(&import), (4, 6));
    std::fs::remove_dir_all(files.out()).unwrap();
    gz("raw/num-edge-list", "4\n");
    files.refuse(&import, &["edge.csv.gz", "3 edges, 4 are stated"]);
}

#[test]
fn bad_tables_are_named_by_line() {
    let files = Files::new();
    let csv = |args: &[&str], bytes: &[u8], parts: &[&str]| {
        let table = files.write("e.csv", bytes);
        files.refuse(&[&["csv", "--edges", path(&table)], args].concat(), parts);
    };
    csv(&["--ids", "string"], b"a,b\nc,\xff\n", &["e.csv: line 2", "UTF-8"]);
    csv(&[], b"0,1\n1,2,3\n", &["e.csv: line 2", "3 fields"]);
    csv(&["--num-nodes", "3"], b"0,1\n-1,2\n", &["e.csv: line 2", "-1 is negative"]);
    let nodes = files.write("n.csv", "id,label\n0,1\n1,7\n");
    let labelled = ["--nodes", path(&nodes), "--num-classes", "3"];
    csv(&labelled, b"0,1\n", &["n.csv: line 3", "label 7", "classes, 3"]);
    let nodes = files.write("x.csv", "id,x\n0,1\n1,nan\n");
    let features = ["--nodes", path(&nodes), "--features", "x"];
    csv(&features, b"0,1\n", &["x.csv: line 3: column 'x': the feature is missing"]);
}

#[test]
fn bad_arrays_are_named_by_row() {
    let files = Files::new();
    let npy = |args: &[&str], parts: &[&str]| {
        let edges = files.edges();
        files.refuse(&[&["npy", "--edges", path(&edges)], args].concat(), parts);
    };
    let labels = files.integers("y.npy", "(4,)", &[0, 1, 5, -1]);
    npy(&["--labels", path(&labels), "--num-classes", "3"], &["y.npy: row 2", "label 5"]);
    let values: Vec<u8> = [1.0, f32::NAN, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let features = files.npy("x.npy", "<f4", "(4, 1)", &values);
    npy(&["--features", path(&features)], &["x.npy: row 1, column 0", "NaN"]);
    let (a, b) = (files.integers("a.npy", "(1,)", &[2]), files.integers("b.npy", "(1,)", &[2]));
    let splits = [format!("train={}", a.display()), format!("test={}", b.display())];
    npy(&["--split", &splits[0], "--split", &splits[1]], &["node 2", "train and test"]);
    let negative = files.integers("bad.npy", "(2, 2)", &[0, -3, 1, 1]);
    files.refuse(&["npy", "--edges", path(&negative)], &["bad.npy: row 1", "-3 is negative"]);
}
