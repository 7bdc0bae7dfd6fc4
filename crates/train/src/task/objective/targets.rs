//! Targets of the examples of a batch or a split.

use gnarl_graph::Labels;

/// Labels of some examples, in their order, as losses take them.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// One class per example.
    Classes(Vec<u32>),
    /// A row of 0 and 1 per example, one column per label.
    Multi(Vec<f32>),
    /// One number per example.
    Values(Vec<f32>),
}

impl Targets {
    /// The labels of the examples `places`, which all have one.
    pub fn of(labels: &Labels, places: &[u32]) -> Self {
        match labels {
            Labels::Single { classes, .. } => {
                let class = |&place: &u32| classes[place as usize].max(0) as u32;
                Self::Classes(places.iter().map(class).collect())
            }
            Labels::Multi { values, tasks } => {
                let row = |&place: &u32| &values[place as usize * tasks..][..*tasks];
                Self::Multi(places.iter().flat_map(row).map(|&b| f32::from(b)).collect())
            }
            Labels::Values { values } => {
                Self::Values(places.iter().map(|&place| values[place as usize]).collect())
            }
        }
    }
}
