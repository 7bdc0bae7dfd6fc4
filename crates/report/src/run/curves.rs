//! Loss and scores over the epochs.

use gnarl_train::evaluation::Scores;
use gnarl_train::{EpochRecord, Recorded};

use crate::page::lines::{Line, Points, figure};

/// The loss curve, and the score curves if there were evaluations.
pub(super) fn learning(run: &Recorded) -> String {
    let history = &run.history;
    let mut out = String::from("<div class=\"pair\">");
    out += &figure("Mean training loss", &[line("loss", "training", loss(run))], None);
    if let Some(name) = metric(run) {
        let title = format!("Score: {}", name.replace('_', " "));
        let best = (run.summary.best_epoch > 0).then_some(run.summary.best_epoch);
        let lines = [
            line("loss", "training", scores(run, |r| &r.train)),
            line("valid", "validation", scores(run, |r| &r.valid)),
            line("test", "test", scores(run, |r| &r.test)),
        ];
        out += &figure(&title, &lines, best);
    }
    out += &figure("Learning rate", &[line("rate", "rate", rates(run))], None);
    out +=
        &figure("Norm of the gradient, before clipping", &[line("rate", "norm", norms(run))], None);
    out += "</div>";
    let lost = history.iter().filter(|r| !r.loss.is_finite()).count();
    if lost > 0 {
        out += &format!(
            "<p class=\"warn\">The loss of {lost} of {} epochs is not a finite number: try a smaller \
             <code>train.lr</code>, or <code>train.clip_norm</code>.</p>",
            history.len()
        );
    }
    out
}

fn line(class: &'static str, name: &str, points: Points) -> Line {
    Line { class, name: name.into(), points }
}

/// The loss of each epoch.
pub(crate) fn loss(run: &Recorded) -> Points {
    run.history.iter().map(|r| (r.epoch as f64, r.loss)).collect()
}

/// The learning rate of each epoch.
fn rates(run: &Recorded) -> Points {
    run.history.iter().map(|r| (r.epoch as f64, r.lr.into())).collect()
}

/// The norm of the gradient in each epoch that has one.
fn norms(run: &Recorded) -> Points {
    let norm = |r: &EpochRecord| r.grad_norm.map(|norm| (r.epoch as f64, norm));
    run.history.iter().filter_map(norm).collect()
}

/// The metric's name, if there were evaluations.
pub(super) fn metric(run: &Recorded) -> Option<&str> {
    let summary = &run.summary;
    let scores = [&summary.valid, &summary.test].into_iter();
    let epochs = run.history.iter().flat_map(|r| [&r.valid, &r.test]);
    let used = scores.chain(epochs).any(|scores| scores.contains_key(&summary.metric));
    used.then_some(summary.metric.as_str())
}

/// The scores that decide, of the epochs that were evaluated.
pub(crate) fn scores(run: &Recorded, of: impl Fn(&EpochRecord) -> &Scores) -> Points {
    let metric = &run.summary.metric;
    let value = |r: &EpochRecord| of(r).get(metric).map(|&v| (r.epoch as f64, v));
    run.history.iter().filter_map(value).collect()
}
