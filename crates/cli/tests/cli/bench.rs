//! `gnarl bench partition` and `gnarl bench load`

use crate::common::{community, fail, path, succeed};

#[test]
fn partitioners_are_compared_row_by_row() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let table = dir.path().join("table.md");
    let bench = ["bench", "partition", "--data", path(dir.path()), "--dataset", path(&graph)];
    let out = ["--out", path(&table), "--parts", "2,5000", "--algorithms"];
    let result = succeed(&[&bench[..], &out, &["spring --tau-vol 9,random,metis"]].concat());
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert!(rows[0]["report"]["replication_factor"].as_f64().unwrap() >= 1.0);
    assert!(rows[0]["report"]["peak_rss_bytes"].as_u64().unwrap() > 0);
    let text = std::fs::read_to_string(&table).unwrap();
    for shown in
        ["## graph", "| spring --tau-vol 9 | 2 |", "cannot partition 2000 nodes", "| random | "]
    {
        assert!(text.contains(shown), "no '{shown}' in:\n{text}");
    }
    let unknown = [&bench[..], &out, &["mettis"]].concat();
    assert!(fail(&unknown, 2).contains("did you mean 'metis'"));
}

#[test]
fn folders_of_arrays_become_graphs() {
    let dir = tempfile::tempdir().unwrap();
    let array = |name: &str, descr: &str, shape: &str, bytes: Vec<u8>| {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let file = dir.path().join("data").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let header = [b"\x93NUMPY\x01\x00\x76\x00", format!("{dict:<117}\n").as_bytes()].concat();
        std::fs::write(file, [header, bytes].concat()).unwrap();
    };
    let narrow = |ids: &[u32]| ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>();
    let wide = |ids: &[u64]| ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>();
    array("plain/edges.npy", "<u4", "(2, 3)", narrow(&[0, 1, 2, 1, 2, 3]));
    array("plain/train_idx.npy", "<i8", "(1,)", wide(&[2]));
    array("triples/triples.npy", "<i8", "(2, 3)", wide(&[0, 7, 1, 2, 7, 3]));
    array("typed/edges__a__to__b.npy", "<u4", "(2, 2)", narrow(&[0, 1, 2, 3]));
    std::fs::create_dir_all(dir.path().join("data/none")).unwrap();
    let (data, table) = (dir.path().join("data"), dir.path().join("table.md"));
    let args = ["bench", "partition", "--data", path(&data), "--out", path(&table)];
    let more = ["--parts", "2", "--algorithms", "range"];
    let result = succeed(&[&args[..], &more].concat());
    let rows = result["rows"].as_array().unwrap();
    let sizes = |i: usize| rows[i]["report"]["part_sizes"].to_string();
    assert_eq!([sizes(0), sizes(1), sizes(2)], ["[2,2]", "[2,2]", "[3,3]"]);
    assert_eq!(rows[0]["report"]["train_sizes"].to_string(), "[0,1]");
}

#[test]
fn the_parts_of_a_vertex_cut_share_the_load() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let cut = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let args = ["partition", path(&graph), "--parts", "3", "--algorithm", name, "--out"];
        succeed(&[&args[..], &[path(&out)], more].concat());
        out
    };
    let (shared, owned) = (cut("adadne", &["--layout", "vertex-cut"]), cut("spring", &[]));
    let table = dir.path().join("load.md");
    let bench = ["bench", "load", path(&shared), path(&owned), "--out", path(&table)];
    let small = ["--batches", "3", "--batch-size", "60", "--fanouts", "5,-1"];
    let rows = succeed(&[&bench[..], &small].concat());
    let ratio = |row: usize| rows[row]["edges"].as_f64().unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    assert_eq!(
        (&rows[1]["partition"], &rows[1]["seeds"]),
        (&"adadne".into(), &"all of part 0".into())
    );
    assert!(ratio(0) >= 1.0 && ratio(0) < 1.5 && ratio(2) >= 1.0, "{rows}");
    assert_eq!(std::fs::read_to_string(&table).unwrap().lines().count(), 3 + 4 + 1);
    let shares = [&bench[..], &small, &["--rule", "uniform"]].concat();
    assert_eq!(succeed(&shares).as_array().unwrap().len(), 4);
    let text = fail(&["bench", "load", path(&shared), "--rule", "lucky"], 2);
    assert!(text.contains("there are: uniform, labor, exact, weighted"), "{text}");
    assert!(rows[0].get("bytes_sent").is_none(), "{rows}");
    if cfg!(feature = "serve") {
        bytes_follow_edges(&[&bench[..], &small, &["--served"]].concat(), &rows);
    }
}

/// Served parts are asked for the same as those of this process, and send at least eight bytes an edge.
fn bytes_follow_edges(bench: &[&str], here: &serde_json::Value) {
    let served = succeed(bench);
    for (here, served) in here.as_array().unwrap().iter().zip(served.as_array().unwrap()) {
        assert_eq!(here["sent"], served["sent"]);
        let numbers = |name: &str| -> Vec<u64> {
            served[name].as_array().unwrap().iter().map(|all| all.as_u64().unwrap()).collect()
        };
        let edges = numbers("sent");
        let replies = numbers("bytes_sent");
        assert!(edges.iter().zip(&replies).all(|(edges, bytes)| *bytes > 8 * edges), "{served}");
        assert!(numbers("bytes_received").iter().all(|&bytes| bytes > 0), "{served}");
    }
}
