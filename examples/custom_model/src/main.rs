//! A model of one's own, trained on a generated graph:
//! `cargo run --release -p example-custom-model`.

mod model;
mod training;

use std::path::Path;

use gnarl::graph::Result;
use gnarl::graph::generate::{Attributes, CommunityOptions, community};
use gnarl::graph::rng::Key;
use gnarl::nn::ParamsBuilder;
use gnarl::train::config::DatasetSection;
use gnarl::train::{evaluate, task};

use model::{ResidualMean, Sizes};

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("gnarl-custom-model-{}", std::process::id()));
    let result = example(&dir, 20);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(|e| gnarl::graph::Error::io(&dir, e))?;
    }
    let (losses, test) = result?;
    println!(
        "loss of the first epoch {:.3}, of the last {:.3}",
        losses[0],
        losses[losses.len() - 1]
    );
    println!("test accuracy {test:.3}");
    Ok(())
}

/// Trains on a graph made in `dir`; the losses of all epochs, and the test accuracy.
fn example(dir: &Path, epochs: u64) -> Result<(Vec<f64>, f64)> {
    let attributes = Attributes {
        features: 16,
        classes: 8,
        train: 0.3,
        valid: 0.2,
        test: 0.5,
        ..Attributes::default()
    };
    let options = CommunityOptions {
        nodes: 2000,
        communities: 8,
        average_degree: 12.0,
        attributes,
        ..CommunityOptions::default()
    };
    community(&options, dir)?;
    let (_, _, task) = task::whole(&DatasetSection { path: dir.into(), ..Default::default() })?;

    let classes = task.labels.outputs();
    let sizes = Sizes { input: task.width(), hidden: 32, classes, layers: 2 };
    let mut builder = ParamsBuilder::new(Key::new(1));
    let model = ResidualMean::new(&sizes, 0.2, &mut builder);
    let mut params = builder.build();

    let losses = training::train(&model, &mut params, &task, epochs)?;
    let scores = evaluate::evaluate(&model, &params, [task.as_ref()], "accuracy")?;
    Ok((losses, scores.test["accuracy"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_learns_and_repeats_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (losses, test) = example(&dir.path().join("first"), 8).unwrap();
        assert!(losses[7] < 0.6 * losses[0], "{losses:?}");
        // Guessing scores 1/8; features alone, about 0.5.
        assert!(test > 0.7, "test accuracy {test}");
        assert_eq!(example(&dir.path().join("again"), 8).unwrap(), (losses, test));
    }
}
