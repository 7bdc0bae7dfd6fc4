//! Training on some parts at a time.

use std::net::SocketAddr;
use std::path::PathBuf;

use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// The order in which parts come into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Deal {
    /// Each part once an epoch.
    Nodes,
    /// Each part with each other once an epoch.
    Pairs,
}

/// `[disaggregated]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DisaggregatedSection {
    /// Slots that parts are dealt to: so many parts are replaced at a time.
    pub slots: usize,
    /// Parts of each slot in memory at a time; 0 takes a quarter of those that it is dealt.
    pub resident: usize,
    /// Order in which parts come into memory; if absent, see [`RunConfig::deal`](crate::RunConfig::deal).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deal: Option<Deal>,
    /// Batch workers to wait for before the first step; with 0 the ranks prepare their batches themselves.
    pub batch_workers: usize,
    /// Address at which the first rank listens for batch workers; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address of a coordinator that runs by itself, which the ranks find batch workers by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<String>,
    /// File with the token of coordinators and batch workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The certificate, in PEM, of coordinators and batch workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Its private key, in PEM, for the coordinator of the first rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

impl Default for DisaggregatedSection {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            slots: 1,
            resident: 0,
            deal: None,
            batch_workers: 0,
            listen,
            join: None,
            token_file: None,
            certificate: None,
            key: None,
        }
    }
}

impl DisaggregatedSection {
    /// Parts of each slot in memory at a time, where there are `parts` in all; by default at `least` so many.
    pub(super) fn resident_of(&self, parts: usize, least: usize) -> usize {
        let dealt = parts.div_ceil(self.slots.max(1)).max(1);
        match self.resident {
            0 => dealt.div_ceil(4).max(least).min(dealt),
            resident => resident.min(dealt),
        }
    }

    /// The settings that decide on what batches hold, the others at their defaults.
    pub fn of_batches(&self) -> Self {
        let Self { slots, resident, deal, .. } = *self;
        Self { slots, resident, deal, ..Self::default() }
    }

    /// Refuses no slots, a coordinator without batch workers, and a key without its certificate.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] with the key.
    pub fn check(&self) -> Result<()> {
        if self.slots == 0 {
            return Err(Error::usage(
                "invalid disaggregated.slots '0': expected a positive number",
            ));
        }
        if self.batch_workers == 0 && self.join.is_some() {
            return Err(Error::usage("disaggregated.join requires disaggregated.batch_workers")
                .hint("the number of batch workers to wait for before the first step, such as 2"));
        }
        if self.key.is_some() && self.certificate.is_none() {
            return Err(Error::usage("disaggregated.key requires disaggregated.certificate"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_in_memory_unless_it_is_said() {
        let section = |slots, resident| DisaggregatedSection {
            slots,
            resident,
            ..DisaggregatedSection::default()
        };
        assert_eq!(section(1, 0).resident_of(16, 1), 4);
        assert_eq!(section(2, 0).resident_of(16, 1), 2);
        assert_eq!(section(1, 0).resident_of(3, 1), 1);
        assert_eq!(section(1, 99).resident_of(16, 1), 16);
        assert_eq!(section(3, 5).resident_of(16, 1), 5);
        assert_eq!(section(1, 0).resident_of(3, 2), 2);
        assert_eq!(section(4, 0).resident_of(4, 2), 1);
        assert!(section(0, 1).check().is_err());
    }

    #[test]
    fn a_coordinator_without_batch_workers_is_refused() {
        let mut section =
            DisaggregatedSection { join: Some("http://c:1".into()), ..Default::default() };
        let error = section.check().unwrap_err().to_string();
        assert!(error.contains("disaggregated.batch_workers"), "{error}");
        section.batch_workers = 2;
        section.check().unwrap();
        section.key = Some("k.pem".into());
        let error = section.check().unwrap_err().to_string();
        assert!(error.contains("disaggregated.certificate"), "{error}");
    }
}
