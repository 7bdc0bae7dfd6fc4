//! The numbers of one run.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It trained.
    Trained(Numbers),
    /// It was refused as a combination that is not supported, with this reason.
    Refused(String),
}

/// Numbers of a finished run, all digits kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// Of each epoch.
    losses: Vec<f64>,
    /// By split and metric.
    scores: BTreeMap<String, f64>,
    /// Of the tensors' bytes, whatever their names and order.
    weights: String,
}

/// The difference between two outcomes.
pub enum Change {
    /// None.
    None,
    /// One that does not count as a difference.
    Noted(String),
    /// One that needs a reason.
    Broken(String),
}

impl Outcome {
    /// Whether there are numbers.
    pub fn is_trained(&self) -> bool {
        matches!(self, Self::Trained(_))
    }

    /// The change from `self` to `now`, numbers being equal within `tolerance`, or bit by bit without one.
    pub fn change(&self, now: &Self, tolerance: Option<f64>) -> Change {
        match (self, now) {
            (Self::Trained(before), Self::Trained(now)) => before.change(now, tolerance),
            (Self::Trained(_), Self::Refused(reason)) => {
                Change::Broken(format!("refused now: {reason}"))
            }
            (Self::Refused(reason), Self::Trained(_)) => {
                Change::Noted(format!("trains now; was refused: {reason}"))
            }
            (Self::Refused(before), Self::Refused(now)) if before != now => {
                Change::Noted(format!("refused with other words: {now}"))
            }
            (Self::Refused(_), Self::Refused(_)) => Change::None,
        }
    }
}

impl Numbers {
    /// Reads the result line of a command and the folder of its run.
    pub fn read(result: &Value, folder: &Path) -> Result<Self> {
        let losses = result["losses"].as_array().context("the result has no losses")?;
        let losses = losses.iter().map(|x| x.as_f64().context("a loss")).collect::<Result<_>>()?;
        let mut scores = BTreeMap::new();
        for split in ["valid", "test"] {
            flatten(split, &result[split], &mut scores);
        }
        scores.insert("best_epoch".into(), result["best_epoch"].as_f64().unwrap_or(0.0));
        let file = folder.join("model.safetensors");
        let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
        Ok(Self { losses, scores, weights: digest(&bytes)? })
    }

    fn change(&self, now: &Self, tolerance: Option<f64>) -> Change {
        let Some(tolerance) = tolerance else {
            return if self == now { Change::None } else { Change::Broken(self.differences(now)) };
        };
        let near = |a: f64, b: f64| (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-3);
        let losses = self.losses.len() == now.losses.len()
            && self.losses.iter().zip(&now.losses).all(|(&a, &b)| near(a, b));
        if losses { Change::None } else { Change::Broken(self.differences(now)) }
    }

    fn differences(&self, now: &Self) -> String {
        let mut found = Vec::new();
        if self.losses != now.losses {
            found.push(format!("losses {:?}, were {:?}", now.losses, self.losses));
        }
        for (name, before) in &self.scores {
            match now.scores.get(name) {
                Some(score) if score == before => {}
                score => found.push(format!("{name} {score:?}, was {before}")),
            }
        }
        for name in now.scores.keys().filter(|name| !self.scores.contains_key(*name)) {
            found.push(format!("{name} is new"));
        }
        if self.weights != now.weights {
            found.push("weights".into());
        }
        found.join("; ")
    }
}

fn flatten(name: &str, value: &Value, out: &mut BTreeMap<String, f64>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(&format!("{name}.{key}"), value, out);
            }
        }
        Value::Number(number) => {
            out.insert(name.into(), number.as_f64().unwrap_or(f64::NAN));
        }
        _ => {}
    }
}

fn digest(bytes: &[u8]) -> Result<String> {
    let tensors = SafeTensors::deserialize(bytes)?;
    let mut sums: Vec<u32> =
        tensors.iter().map(|(_, tensor)| crc32fast::hash(tensor.data())).collect();
    sums.sort_unstable();
    let all: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    Ok(format!("{:08x}", crc32fast::hash(&all)))
}
