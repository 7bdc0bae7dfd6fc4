use gnarl_common::profile::Kind;
use gnarl_graph::inspect::Overview;
use gnarl_partition::{PartCounts, PartitionManifest, PartitionReport, SourceInfo};
use gnarl_train::evaluation::{ClassCount, ClassScores, Scores};
use gnarl_train::{
    EpochRecord, GraphRecord, ProfileTotals, Rates, Recorded, Stages, Summary, Total, Unmeasured,
};

use super::*;
use crate::page::REPORT;

fn scores(value: f64) -> Scores {
    Scores::from([("accuracy".into(), value)])
}

/// A run of `epochs` that learns, evaluated every third epoch.
fn finished(epochs: usize) -> Recorded {
    let record = |i: usize| {
        let progress = i as f64 / epochs as f64;
        let wobble = 0.03 * ((i * 7919 % 101) as f64 / 101.0 - 0.5);
        let slow = 0.012 + 0.002 * (i * 31 % 17) as f64 / 17.0;
        let evaluated = i % 3 == 1;
        let score = |best: f64| scores(best * (1.0 - (-6.0 * progress).exp()) + wobble);
        EpochRecord {
            epoch: i,
            loss: 1.95 * (-4.0 * progress).exp() + 0.1 + wobble,
            lr: 0.01,
            valid: if evaluated { score(0.87) } else { Scores::new() },
            test: if evaluated { score(0.86) } else { Scores::new() },
            seconds: slow + 0.008,
            stages: Stages {
                sample: 0.006,
                fetch: 0.002,
                wait: 0.001,
                compute: slow,
                reduce: 0.005,
                evaluate: if evaluated { 0.004 } else { 0.0 },
                ..Stages::default()
            },
            sampled_edges: 41_234,
            seeds: 1218,
            ..EpochRecord::default()
        }
    };
    let history: Vec<EpochRecord> = (1..=epochs).map(record).collect();
    let summary = Summary {
        metric: "accuracy".into(),
        test: scores(0.8642),
        valid: scores(0.8711),
        best_epoch: epochs.div_ceil(2),
        epochs,
        epoch_seconds: 0.0213,
        sampled_edges_per_second: 1_254_321.0,
        losses: history.iter().map(|r| r.loss).collect(),
        peak_rss_bytes: 123 << 20,
        parameters: 368_903,
        workers: 2,
        parts: 4,
        run_dir: "runs/cora".into(),
    };
    Recorded { summary, history, finished: true, ..Recorded::new(config(), "runs/r".into()) }
}

fn partition(parts: usize) -> PartitionManifest {
    let edges = |i: usize, j: usize| match i.abs_diff(j) {
        0 => 2100 + (i as u64 * 37 % 400),
        d => 160 / d as u64 + (i * 13 + j * 5) as u64 % 40,
    };
    let part_sizes: Vec<u64> = (0..parts).map(|i| 640 + (i as u64 * 53 % 70)).collect();
    let halo_sizes: Vec<u64> = (0..parts).map(|i| 190 + (i as u64 * 29 % 60)).collect();
    PartitionManifest {
        format: "gnarl-partition".into(),
        version: 1,
        source: SourceInfo { path: "d".into(), name: "cora".into(), fingerprint: "0".repeat(16) },
        algorithm: "spring".into(),
        parameters: serde_json::Value::Null,
        seed: 0,
        parts,
        layout: Default::default(),
        hops: 1,
        node_types: vec![],
        edge_types: vec![],
        part_counts: vec![PartCounts { core: vec![], halo: vec![], edges: vec![] }],
        targets: None,
        cut: (0..parts).map(|i| (0..parts).map(|j| edges(i, j)).collect()).collect(),
        report: PartitionReport {
            algorithm: "spring".into(),
            parts,
            seconds: 0.0042,
            write_seconds: 0.031,
            peak_rss_bytes: 50 << 20,
            replication_factor: 1.31,
            edge_cut: 0.152,
            node_balance: 1.04,
            edge_balance: 1.12,
            train_balance: 1.06,
            train_sizes: part_sizes.iter().map(|n| n / 5).collect(),
            cut_degrees: vec![0, 12, 310, 420, 180, 31, 4],
            part_sizes,
            halo_sizes,
            vertex_cut: None,
        },
    }
}

fn config() -> RunConfig {
    let mut config = RunConfig::default();
    config.dataset.path = "examples/data/cora".into();
    config.train.workers = 2;
    config
}

/// Rejects a page whose elements do not nest, whose attributes are not quoted, or that has an
/// ampersand or angle bracket outside its markup.
pub(crate) fn check_xml(page: &str) {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    let mut open: Vec<&str> = Vec::new();
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at]);
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        assert!(tag.matches('"').count().is_multiple_of(2) && !tag.contains('<'), "<{tag}>");
        let name = tag.trim_matches('/').split_whitespace().next().expect("a tag has a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closing tags nest");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    check_text(rest);
    assert!(open.is_empty(), "left open: {open:?}");
}

fn check_text(text: &str) {
    for after in text.split('&').skip(1) {
        let entity = after.split(';').next().unwrap_or_default();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&entity), "&{entity}");
    }
}

/// The page, checked for the properties of every page.
fn checked(run: &Recorded) -> String {
    let page = page(run);
    check_xml(&page);
    assert!(!page.contains("NaN") && !page.contains("=\"inf"), "numbers are numbers");
    let links = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!links.contains("://") && !links.contains("<script"), "nothing is fetched");
    assert!(page.len() < 600_000, "{} bytes", page.len());
    page
}

#[test]
fn a_run_with_everything() {
    let dir = tempfile::tempdir().unwrap();
    let done = Recorded { partition: Some(partition(4)), ..finished(100) };
    write_run_report(dir.path(), &done).unwrap();
    let written = std::fs::read_to_string(dir.path().join(REPORT)).unwrap();
    let page = checked(&done);
    assert_eq!(written, page);
    for shown in [
        "sage <span>on</span> cora",
        "0.8642",
        "0.8711",
        "123 MiB",
        "368\u{202f}903",
        "Bound by <strong>compute</strong>",
        "of the epoch computing",
        "best validation: epoch 50",
        "15.2 %",
        "1.31",
        "part 3: 131 own training nodes",
        "part 3: 528 other own nodes",
        "degree 4–7: 420 nodes",
        "fanouts",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn relations_have_a_table() {
    let row = |i: usize| gnarl_train::RelationScores {
        relation: format!("is <part> {i}"),
        edges: 1000 - i,
        mrr: 0.4321,
        sides: [0.25, 0.75],
        ..Default::default()
    };
    let mut done = Recorded { relations: (0..2).map(row).collect(), ..finished(3) };
    done.config.model.name = "none".into();
    let page = checked(&done);
    for shown in ["distmult <span>on</span> cora", "is &lt;part&gt; 1", "0.4321", "0.7500"] {
        assert!(page.contains(shown), "{shown}");
    }
    assert!(!page.contains("less frequent"));
    done.relations = (0..1000).map(row).collect();
    assert!(checked(&done).contains("700 less frequent relations"));
}

#[test]
fn profiles_have_tables_of_kernels_stages_and_collectives() {
    let span = |rank: usize, kind, name: &str| Total {
        rank,
        kind,
        name: name.into(),
        count: 1200,
        seconds: 0.5,
        longest: 0.01,
        gflops: 20.0,
        gbps: 3.0,
    };
    let rates = Rates { threads: 2, gflops: 80.0, gather_gbps: 6.0 };
    let spans = [0, 1].into_iter().flat_map(|rank| {
        [
            Total { seconds: 1.25, ..span(rank, Kind::Stage, "compute") },
            span(rank, Kind::Kernel, "matrix product"),
            span(rank, Kind::Collective, "gradients <of> all"),
        ]
    });
    let profile = ProfileTotals { seconds: 4.0, rates, left: 7, spans: spans.collect() };
    let page = checked(&Recorded { profile: Some(profile), ..finished(3) });
    assert!(page.contains("<h2>Profile</h2>") && page.contains("not the last 7"));
    // Of both ranks, at a quarter of the rate of products and half of that of sums.
    let kernel = "<th>matrix product</th><td>2,400</td><td>1.00 s</td><td>10.0 ms</td><td>20.0</td><td>25.0 %</td><td>3.0</td><td>50.0 %</td>";
    let of_digits = |text: &str| text.replace(['\u{202f}', '\u{2009}', ','], "");
    assert!(of_digits(&page).contains(&of_digits(kernel)), "{page}");
    assert!(page.contains("Kernels take 40.0"), "{page}");
    assert_eq!(page.matches("gradients &lt;of&gt; all").count(), 2);
    assert!(!checked(&finished(3)).contains("<h2>Profile</h2>"));
}

#[test]
fn a_single_epoch_without_validation() {
    let mut done = finished(1);
    done.history[0].valid.clear();
    done.history[0].test.clear();
    done.summary.valid.clear();
    done.summary.test.clear();
    let page = checked(&done);
    assert!(page.contains("<circle") && !page.contains("Score:"));
}

#[test]
fn losses_that_are_no_numbers() {
    let mut done = finished(20);
    for (i, record) in done.history.iter_mut().enumerate().skip(10) {
        record.loss = if i % 2 == 0 { f64::NAN } else { f64::INFINITY };
    }
    done.summary.losses = done.history.iter().map(|r| r.loss).collect();
    assert!(checked(&done).contains("of 10 of 20 epochs"));
    done.history.iter_mut().for_each(|r| r.loss = f64::NAN);
    checked(&done);
}

#[test]
fn thousands_of_epochs_and_parts_stay_small() {
    let done = Recorded { partition: Some(partition(1000)), ..finished(2000) };
    let page = checked(&done);
    assert!(page.contains("means of 20 epochs") && page.contains("32 neighboring parts"));
}

#[test]
fn nothing_trained() {
    let mut done = finished(1);
    done.history.clear();
    done.summary.losses.clear();
    done.summary.epochs = 0;
    checked(&done);
}

#[test]
fn names_cannot_become_markup() {
    let mut done = finished(3);
    done.config.model.name = "<script>alert(1)</script>".into();
    done.config.dataset.path = "a&b\"><b>'".into();
    done.summary.run_dir = "runs/<i>&".into();
    done.summary.test = Scores::from([("<u>".into(), 0.5)]);
    // Two classes, of which one has no name, and pairs of more.
    done.classes = Some(ClassScores {
        split: "<s>".into(),
        classes: vec![ClassCount { support: 3, predicted: 2, correct: 1 }; 2],
        confused: vec![(0, 1, 1), (0, 2, 9), (7, 0, 9)],
    });
    done.graph = Some(GraphRecord {
        overview: Overview {
            nodes: vec![("<p>".into(), 3), ("&".into(), 3)],
            classes: vec![3, 2],
            ..Overview::default()
        },
        class_names: vec!["<b>&".into()],
        of: "<nodes>".into(),
        ..GraphRecord::default()
    });
    let page = checked(&done);
    assert!(!page.contains("Homophily"), "none, and of an earlier version no reason");
    let graph = done.graph.as_mut().expect("a graph");
    graph.unmeasured = Some(Unmeasured::NoEdges);
    assert!(checked(&done).contains("no edge joins two labeled nodes"));
    assert!(page.contains("Of &lt;s&gt; examples") && page.contains("&lt;b&gt;&amp;"));
    assert!(!page.contains("<td class=\"wrong strong\""), "pairs of other classes have no cell");
    // Many classes have pairs in place of the matrix.
    if let Some(found) = &mut done.classes {
        found.classes.resize(30, ClassCount::default());
    }
    checked(&done);
}
