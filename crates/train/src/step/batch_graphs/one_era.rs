//! The parts of one era, for batches that others asked for.

use gnarl_common::Result;

use super::BatchGraphs;
use super::era::{Era, EraSource};
use crate::data::batch::BatchSpec;
use crate::data::resident::NodesInMemory;
use crate::data::seeds::Seeds;
use crate::encoder::{Encoder, Outputs};
use crate::task::{Sharing, Task};

/// The parts of one era.
pub(crate) struct OneEra<'a, E: Encoder> {
    pub source: &'a EraSource,
    pub era: &'a Era<E>,
}

impl<E: Encoder> BatchGraphs<E> for OneEra<'_, E> {
    type Held = ();

    fn hold(&self, _: &BatchSpec) -> Result<()> {
        Ok(())
    }

    fn encoder<'s>(&'s self, (): &'s ()) -> (&'s E, &'s E::Sampler) {
        self.era.encoder()
    }

    fn nodes<'s>(&'s self, (): &'s ()) -> Option<&'s NodesInMemory> {
        Some(self.era.nodes())
    }

    fn seeds(&self, (): &(), seeds: Seeds) -> Result<Seeds> {
        self.era.seeds(self.source, seeds)
    }

    fn outputs(&self, (): &(), outputs: Outputs) -> Outputs {
        self.era.outputs(self.source, outputs)
    }

    fn model(&self, _: usize) -> &E {
        self.era.encoder().0
    }

    /// None: compute workers have the schedule.
    fn schedule<T: Task>(&self, _: &T, _: usize, _: usize, _: Sharing) -> Vec<BatchSpec> {
        Vec::new()
    }
}
