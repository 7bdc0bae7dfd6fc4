//! Builds without object stores.

use super::RUN;
use crate::common::{Bench, fail, path};

#[test]
fn they_say_so() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let run = path(&bench.run);
    for args in [
        &["infer", run, "--out", "s3://bucket/nodes.parquet"][..],
        &["infer", run, "--out", "nodes.csv", "--dataset", "s3://bucket/graph"],
        &["inspect", "s3://bucket/graph"],
        &["train", path(&bench.file), "--set", "dataset.path=s3://bucket/graph"],
    ] {
        let text = fail(args, 2);
        assert!(text.contains(": this build lacks object stores"), "{args:?}: {text}");
        assert!(text.contains("s3://bucket/") && text.contains("--features cloud"), "{text}");
    }
}
