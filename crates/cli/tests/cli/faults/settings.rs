//! Ranks have different settings.

use super::Divided;
use crate::common::gnarl;
use crate::mpi::{launcher, text};

fn told(divided: &Divided) {
    let args = divided.args(&divided.parts, "ranks", &["train.engine=mpi"]);
    let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "exec {} {} --set train.seed=$OMPI_COMM_WORLD_RANK",
        gnarl().get_program().display(),
        words.join(" ")
    );
    let output = launcher(2).args(["sh", "-c", &script]).output().unwrap();
    assert!(!output.status.success());
    let err = text(&output.stderr);
    assert!(err.contains("rank 1 on ") && err.contains("'seed = 1', not 'seed = 0'"), "{err}");
    assert!(!divided.bench.run.exists(), "nothing is written");
}

#[test]
fn ranks_of_typed_parts_with_different_settings_are_told() {
    told(&Divided::typed("epochs = 2"));
}

#[test]
fn ranks_that_predict_edges_with_different_settings_are_told() {
    told(&Divided::links("epochs = 2", &["--algorithm", "spring"]));
}
