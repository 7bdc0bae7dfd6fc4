//! Suggestions for unknown names.

use crate::error::Error;

/// Least similarity of a suggestion.
const LIKELY: f64 = 0.75;

/// The one of `known` that is most similar to `name`, if any is similar enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|other| (similarity(name, other), other));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score >= LIKELY).map(|(_, other)| other)
}

/// Similarity from 0 to 1, ignoring case and separators.
fn similarity(name: &str, known: &str) -> f64 {
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let (name, known) = (plain(name), plain(known));
    let alike = strsim::jaro_winkler(&name, &known);
    // A part of a name, as `auc` of `roc-auc`, or a longer form of it.
    let part_of = |part: &str| part == name || part.len() > 3 && name.starts_with(part);
    let within = known.split('-').any(part_of)
        || known.len() > 3 && name.contains(&known)
        || name.len() > 3 && known.contains(&name);
    if within { alike.max(0.95) } else { alike }
}

/// A usage error for a `what` that is not among `known`, with the nearest as a hint.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let all = known.join(", ");
    Error::usage(format!("unknown {what} '{name}'")).hint(
        match nearest(name, known.iter().copied()) {
            Some(nearest) => format!("did you mean '{nearest}'? Known: {all}"),
            None => format!("known: {all}"),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_guessed() {
        let metrics = ["accuracy", "micro-f1", "macro-f1", "roc-auc", "average-precision"];
        let cases = [
            ("auc", "roc-auc"),
            ("acc", "accuracy"),
            ("micro_f1", "micro-f1"),
            ("ROC AUC", "roc-auc"),
            ("precision", "average-precision"),
        ];
        for (name, meant) in cases {
            assert_eq!(nearest(name, metrics), Some(meant), "{name}");
        }
        assert_eq!(
            nearest("links", ["node-classification", "link-prediction"]),
            Some("link-prediction")
        );
        assert_eq!(nearest("spirng", ["spring", "range", "random"]), Some("spring"));
        assert_eq!(nearest("graphsage", ["gat", "gcn", "sage"]), Some("sage"));
        assert_eq!(nearest("xyz", metrics), None);
        let text = unknown("metric", "xyz", &metrics).to_string();
        assert!(text.contains("\nhint: known: accuracy, "), "{text}");
    }
}
