//! Numbers that JSON cannot represent: infinities and NaN are written as `null`, and read as NaN.

use serde::{Deserialize, Deserializer};

use crate::evaluation::Scores;

/// Reads a number.
pub(crate) fn float<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

/// Reads named numbers.
pub(crate) fn floats<'de, D: Deserializer<'de>>(from: D) -> Result<Scores, D::Error> {
    let read = std::collections::BTreeMap::<String, Option<f64>>::deserialize(from)?;
    Ok(read.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

/// Reads a list of numbers.
pub(crate) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let read = Vec::<Option<f64>>::deserialize(from)?;
    Ok(read.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

#[cfg(test)]
mod tests {
    use crate::evaluation::Evaluation;

    #[test]
    fn scores_that_are_no_numbers_are_read_back() {
        let scores = [("auc".to_string(), f64::NAN), ("mrr".to_string(), 0.5)];
        let found =
            Evaluation { valid: scores.into(), valid_loss: f64::INFINITY, ..Default::default() };
        let text = serde_json::to_string(&found).unwrap();
        let back: Evaluation = serde_json::from_str(&text).unwrap();
        assert!(back.valid["auc"].is_nan() && back.valid["mrr"] == 0.5, "{text}");
        assert!(back.valid_loss.is_nan(), "{text}");
    }
}
