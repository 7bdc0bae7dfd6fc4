//! Title, headline and figures of a run.

use gnarl_config::{RunConfig, Strategy};
use gnarl_nn::metrics::smaller_is_better;
use gnarl_train::Recorded;
use gnarl_train::evaluation::Scores;

use super::curves::metric;
use crate::page::text::{self, bytes, count, digits, escape, large, percent, seconds};

/// `GraphSAGE on cora`, as plain text.
pub(super) fn title(config: &RunConfig) -> String {
    format!("{} on {}", trained(config), dataset(config))
}

/// The model, or the decoder where there is none.
fn trained(config: &RunConfig) -> &str {
    if config.model.name == "none" { config.decoder.of_links() } else { &config.model.name }
}

/// The last name of the dataset's path.
fn dataset(config: &RunConfig) -> String {
    let path = &config.dataset.path;
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into())
}

/// The page's head: model, dataset, training strategy.
pub(super) fn headline(run: &Recorded) -> String {
    let config = &run.config;
    let summary = &run.summary;
    let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let strategy = match config.train.strategy {
        Strategy::Gradient => "synchronous gradients".to_string(),
        Strategy::Average if config.train.sync_every == 1 => "weights averaged every epoch".into(),
        Strategy::Average => format!("weights averaged every {} epochs", config.train.sync_every),
        Strategy::Tensor => "tensor parallelism on the whole graph".into(),
        Strategy::Disaggregated => "synchronous gradients on the parts in memory".into(),
        Strategy::Auto => "the fastest strategy".into(),
    };
    let size = match config.model.name.as_str() {
        "none" => format!("embeddings of width {}", config.embedding.dim),
        _ if config.model.decoupled => {
            let (layers, hops) = (config.model.layers, config.model.blocks());
            format!("{}, {}", plural(layers, "dense layer"), plural(hops, "propagation"))
        }
        _ => plural(config.model.layers, "layer"),
    };
    let so_far = match run.finished {
        true => String::new(),
        false => {
            let state = if run.stopped { "the run ended after epoch" } else { "epoch" };
            format!(
                "<p class=\"verdict\"><strong>Not finished</strong>: {state} {} of at most {}.</p>",
                run.history.len(),
                config.train.epochs
            )
        }
    };
    let parts = match &run.partition {
        Some(made) => format!("{} by {}", plural(made.parts, "part"), made.algorithm),
        None if run.finished => "graph not partitioned".into(),
        // A partition elsewhere is not known before the end.
        None => plural(run.history.len(), "epoch") + " so far",
    };
    format!(
        "<header><h1>{} <span>on</span> {}</h1><p>{} · {} · {} · {}</p></header>{so_far}\n",
        escape(trained(config)),
        escape(&dataset(config)),
        size,
        strategy,
        plural(summary.workers, "worker"),
        escape(&parts),
    )
}

/// The most important numbers.
pub(super) fn tiles(run: &Recorded) -> String {
    let summary = &run.summary;
    let name = metric(run).unwrap_or("score").replace('_', " ");
    let mut tiles = vec![
        (score(&summary.test, &summary.metric), format!("test {name}")),
        (score(&summary.valid, &summary.metric), format!("validation {name}")),
        (summary.best_epoch.to_string(), format!("best epoch of {}", summary.epochs)),
        (seconds(summary.epoch_seconds), "median epoch".into()),
    ];
    if summary.sampled_edges_per_second > 0.0 {
        tiles.push((large(summary.sampled_edges_per_second), "sampled edges a second".into()));
    }
    let tile = |(value, name): &(String, String)| {
        format!("<div><b>{}</b><span>{}</span></div>", escape(value), escape(name))
    };
    format!("<div class=\"tiles\">{}</div>\n", tiles.iter().map(tile).collect::<String>())
}

/// A score with four digits: `0.8642`.
fn score(scores: &Scores, metric: &str) -> String {
    match scores.get(metric) {
        Some(v) if v.is_finite() => format!("{v:.4}"),
        _ => "–".into(),
    }
}

/// All figures, exact.
pub(super) fn table(run: &Recorded) -> String {
    let s = &run.summary;
    let mut rows = vec![
        ("Epochs trained", s.epochs.to_string()),
        ("Best epoch", s.best_epoch.to_string()),
        ("Median epoch", seconds(s.epoch_seconds)),
        ("Training, evaluation not included", seconds(run.history.iter().map(|r| r.seconds).sum())),
        ("Sampled edges", count(run.history.iter().map(|r| r.sampled_edges).sum())),
        ("Sampled edges a second", count(s.sampled_edges_per_second as u64)),
        ("Workers", s.workers.to_string()),
        ("Parts", s.parts.to_string()),
        ("Folder", s.run_dir.display().to_string()),
    ];
    if run.finished {
        rows.push(("Weights", count(s.parameters as u64)));
        rows.push(("Peak resident memory", bytes(s.peak_rss_bytes)));
    }
    if let Some(sent) = run.history.last().and_then(|r| r.exchanged_bytes) {
        let both = format!("{} forward, {} backward", bytes(sent.forward), bytes(sent.backward));
        rows.insert(6, ("Exchanged an epoch", both));
    }
    if let Some(balance) = run.history.last().and_then(|r| r.balance) {
        let bytes = balance.bytes.map_or(String::new(), |bytes| format!(", bytes sent {bytes:.3}"));
        let text = format!(
            "edges {:.3}{bytes}, compute {:.2}, communication {:.2}",
            balance.edges, balance.compute, balance.communication
        );
        rows.push(("Largest worker over the mean, last epoch", text));
    }
    if let Some(last) = s.losses.last() {
        rows.insert(2, ("Last training loss", digits(*last)));
    }
    let training = run.history.iter().find(|r| r.epoch == s.best_epoch).map(|r| &r.train);
    let sets = training.map(|scores| ("Training", scores)).into_iter();
    for (set, scores) in sets.chain([("Validation", &s.valid), ("Test", &s.test)]) {
        for (name, value) in scores {
            let share = match smaller_is_better(name) {
                true => String::new(),
                false => format!(" ({})", percent(*value)),
            };
            rows.insert(0, (set, format!("{} {value:.6}{share}", name.replace('_', " "))));
        }
    }
    text::rows(&rows)
}
