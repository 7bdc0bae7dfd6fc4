//! Labels of edges outside of evaluation.

use gnarl_common::{Error, Result};
use gnarl_graph::{Labels, Triple};
use gnarl_nn::heads::EdgeRows;
use gnarl_nn::{Mode, Params, Tape, Tensor};

use super::labels::EdgePrediction;
use super::splits::Split;
use crate::data::batch::gather;
use crate::task::edge_scores::{EdgeBatch, EdgeScores};

impl EdgeScores for EdgePrediction {
    fn triple(&self) -> &Triple {
        &self.splits.triple
    }

    fn num_relations(&self) -> usize {
        1
    }

    fn relation_names(&self) -> &[String] {
        &[]
    }

    fn split(&self, name: &str) -> Result<Option<EdgeBatch>> {
        let of = |Split { edges, rows, times, .. }: &Split| EdgeBatch {
            edges: edges.clone(),
            rows: rows.clone(),
            times: times.clone(),
        };
        Ok(Some(match name {
            "train" => self.train.all()?,
            "valid" => of(&self.splits.valid),
            "test" => of(&self.splits.test),
            _ => return Ok(None),
        }))
    }

    fn reads_rows(&self) -> bool {
        self.features.is_some()
    }

    fn has_several_labels(&self) -> bool {
        matches!(self.splits.valid.labels, Labels::Multi { .. })
    }

    fn score(
        &self,
        params: &Params,
        [heads, tails]: [Tensor; 2],
        batch: &EdgeBatch,
    ) -> Result<Tensor> {
        let mut tape = Tape::new(params, Mode::Eval);
        let features = match &self.features {
            None => None,
            Some(features) => {
                let row = |&row: &u64| {
                    u32::try_from(row).map_err(|_| Error::invalid("edge rows exceed 32 bits"))
                };
                let rows = batch.rows.iter().map(row).collect::<Result<Vec<u32>>>()?;
                Some(gather(features.as_ref(), &rows)?)
            }
        };
        let features = features.as_ref().map(|features| features.on(&mut tape));
        let (heads, tails) = (tape.dense(heads), tape.dense(tails));
        let logits = self.head.forward(&mut tape, EdgeRows { heads, tails, features });
        Ok(tape.take(logits))
    }
}
