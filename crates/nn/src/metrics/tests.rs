//! One suite over every metric, known values, and naive definitions.

use proptest::prelude::*;

use super::*;

fn value(name: &str, logits: &[f32], classes: usize, targets: Targets<'_>) -> f64 {
    let rows: Vec<u32> = (0..logits.len() / classes).map(|r| r as u32).collect();
    let mut metric = build(name).unwrap();
    metric.update(logits, classes, &rows, targets);
    metric.value()
}

/// Scores in steps of a half, so that ties happen.
fn scores(len: usize) -> impl Strategy<Value = Vec<f32>> {
    proptest::collection::vec((-6i32..6).prop_map(|x| x as f32 / 2.0), len)
}

/// Every pair of a positive and a negative, one by one.
fn naive_auc(scores: &[f32], labels: &[u8]) -> Option<f64> {
    let (mut wins, mut pairs) = (0.0, 0.0);
    for (i, &a) in labels.iter().enumerate() {
        for (j, &b) in labels.iter().enumerate() {
            if a == 1 && b == 0 {
                pairs += 1.0;
                wins += f64::from(u8::from(scores[i] > scores[j]))
                    + 0.5 * f64::from(u8::from(scores[i] == scores[j]));
            }
        }
    }
    (pairs > 0.0).then(|| wins / pairs)
}

/// F1 of one class from precision and recall.
fn naive_f1(predicted: &[bool], actual: &[bool]) -> Option<f64> {
    let both = predicted.iter().zip(actual).filter(|&(&p, &a)| p && a).count() as f64;
    let said = predicted.iter().filter(|&&p| p).count() as f64;
    let there = actual.iter().filter(|&&a| a).count() as f64;
    if said + there == 0.0 {
        return None;
    }
    if both == 0.0 {
        return Some(0.0);
    }
    let (precision, recall) = (both / said, both / there);
    Some(2.0 * precision * recall / (precision + recall))
}

#[test]
fn known_values() {
    // Predictions 0, 1, 1, 2 for classes 0, 1, 2, 2: scikit-learn says 3/4, 3/4 and 7/9.
    let logits = [2.0f32, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.5, -1.0, -2.0, 3.0];
    let targets = Targets::Classes(&[0, 1, 2, 2]);
    assert_eq!(value("accuracy", &logits, 3, targets), 0.75);
    assert_eq!(value("micro-f1", &logits, 3, targets), 0.75);
    assert!((value("macro-f1", &logits, 3, targets) - 7.0 / 9.0).abs() < 1e-12);
    // The example of scikit-learn's roc_auc_score: scores 0.1, 0.4, 0.35, 0.8, labels 0, 0, 1, 1.
    let labels = Targets::Multi(&[0, 0, 1, 1]);
    assert_eq!(value("roc-auc", &[0.1, 0.4, 0.35, 0.8], 1, labels), 0.75);
    // Its average_precision_score of the same: 0.83.
    let precision = value("average-precision", &[0.1, 0.4, 0.35, 0.8], 1, labels);
    assert!((precision - 5.0 / 6.0).abs() < 1e-12);
    let tied = value("average-precision", &[0.5; 4], 1, Targets::Multi(&[0, 1, 0, 0]));
    assert_eq!(tied, 0.25);
    let binary = [0.0f32, 0.1, 0.0, 0.4, 0.0, 0.35, 0.0, 0.8];
    assert_eq!(value("roc-auc", &binary, 2, Targets::Classes(&[0, 0, 1, 1])), 0.75);
}

#[test]
fn nothing_seen_is_zero_and_unknown_names_get_a_hint() {
    for name in names() {
        assert_eq!(build(name).unwrap().value(), 0.0, "{name}");
        assert_eq!(build(name).unwrap().name(), *name);
    }
    let error = build("rocauc").err().unwrap().to_string();
    assert!(error.contains("'roc-auc'"), "{error}");
}

#[test]
fn signed_zeros_tie() {
    assert_eq!(value("roc-auc", &[0.0, -0.0], 1, Targets::Multi(&[1, 0])), 0.5);
}

proptest! {
    #[test]
    fn merged_ranks_equal_one_rank(logits in scores(60), cut in 0usize..20,
                                   labels in proptest::collection::vec(0u32..3, 20)) {
        for name in names() {
            let rows: Vec<u32> = (0..20).collect();
            let mut parts = [build(name).unwrap(), build(name).unwrap()];
            parts[0].update(&logits, 3, &rows[..cut], Targets::Classes(&labels[..cut]));
            parts[1].update(&logits, 3, &rows[cut..], Targets::Classes(&labels[cut..]));
            let mut merged = build(name).unwrap();
            parts.iter().for_each(|part| merged.merge(&part.state()));
            let whole = value(name, &logits, 3, Targets::Classes(&labels));
            prop_assert_eq!(merged.value().to_bits(), whole.to_bits(), "{}", name);
        }
    }

    #[test]
    fn auc_is_the_share_of_ordered_pairs(
        scores in scores(24), labels in proptest::collection::vec(0u8..2, 24)
    ) {
        let column = |c: usize| -> (Vec<f32>, Vec<u8>) {
            (c..24).step_by(2).map(|i| (scores[i], labels[i])).unzip()
        };
        let areas: Vec<f64> =
            [column(0), column(1)].iter().filter_map(|(s, l)| naive_auc(s, l)).collect();
        let naive = areas.iter().sum::<f64>() / areas.len().max(1) as f64;
        let fast = value("roc-auc", &scores, 2, Targets::Multi(&labels));
        prop_assert!((fast - naive).abs() < 1e-12, "{} {}", fast, naive);
    }

    #[test]
    fn f1_is_the_harmonic_mean(
        logits in scores(45), labels in proptest::collection::vec(0u8..2, 45)
    ) {
        let class = |c: usize| -> (Vec<bool>, Vec<bool>) {
            (c..45).step_by(3).map(|i| (logits[i] > 0.0, labels[i] == 1)).unzip()
        };
        let scores: Vec<f64> = (0..3).filter_map(|c| naive_f1(&class(c).0, &class(c).1)).collect();
        let naive = scores.iter().sum::<f64>() / scores.len().max(1) as f64;
        let macro_f1 = value("macro-f1", &logits, 3, Targets::Multi(&labels));
        prop_assert!((macro_f1 - naive).abs() < 1e-12);
        let predicted: Vec<bool> = logits.iter().map(|&x| x > 0.0).collect();
        let actual: Vec<bool> = labels.iter().map(|&y| y == 1).collect();
        let micro = naive_f1(&predicted, &actual).unwrap_or(0.0);
        prop_assert!((value("micro-f1", &logits, 3, Targets::Multi(&labels)) - micro).abs() < 1e-12);
        let right = predicted.iter().zip(&actual).filter(|(p, a)| p == a).count();
        let accuracy = value("accuracy", &logits, 3, Targets::Multi(&labels));
        prop_assert_eq!(accuracy, right as f64 / 45.0);
    }
}

#[test]
fn errors_of_numbers() {
    let score = |name: &str, predicted: &[f32], targets: &[f32]| {
        let mut metric = build_of_values(name).unwrap();
        let rows: Vec<u32> = (0..targets.len() as u32).collect();
        metric.update(predicted, 1, &rows, Targets::Values(targets));
        (metric.state(), metric.value())
    };
    for name in names_of_values() {
        assert_eq!(build_of_values(name).unwrap().name(), *name);
        assert_eq!(score(name, &[], &[]).1, 0.0);
        assert!(smaller_is_better(name) && build(name).is_err());
        let (first, _) = score(name, &[1.0, 5.5], &[1.25, -2.0]);
        let (second, _) = score(name, &[0.1], &[3.0]);
        let mut merged = build_of_values(name).unwrap();
        merged.merge(&second);
        merged.merge(&first);
        let whole = score(name, &[1.0, 5.5, 0.1], &[1.25, -2.0, 3.0]).1;
        assert_eq!(merged.value().to_bits(), whole.to_bits(), "{name}");
    }
    assert_eq!(score("mae", &[1.0, -2.0], &[2.0, 1.0]).1, 2.0);
    assert_eq!(score("rmse", &[1.0, -2.0], &[2.0, 1.0]).1, 5f64.sqrt());
    assert!(!smaller_is_better("accuracy"));
    let error = build_of_values("rsme").err().unwrap().to_string();
    assert!(error.contains("'rmse'"), "{error}");
}
