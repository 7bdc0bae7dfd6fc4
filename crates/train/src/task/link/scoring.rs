//! Scores of edges outside of evaluation.

use gnarl_common::Result;
use gnarl_graph::Triple;
use gnarl_nn::decoders::{Groups, Side, score};
use gnarl_nn::{Params, Tensor};

use super::links::LinkPrediction;
use crate::task::edge_scores::{EdgeBatch, EdgeScores, Ranking};

impl EdgeScores for LinkPrediction {
    fn triple(&self) -> &Triple {
        &self.edges.triple
    }

    fn num_relations(&self) -> usize {
        self.edges.relations
    }

    fn relation_names(&self) -> &[String] {
        &self.edges.names
    }

    fn split(&self, name: &str) -> Result<Option<EdgeBatch>> {
        let [of_valid, of_test] = &self.edges.times;
        let (edges, times) = match name {
            "train" => {
                let EdgeBatch { edges, times, .. } = self.edges.train.all()?;
                (edges, times)
            }
            "valid" => (self.edges.valid.clone(), of_valid.clone()),
            "test" => (self.edges.test.clone(), of_test.clone()),
            _ => return Ok(None),
        };
        let edges = self.edges.endpoints.in_dataset(edges);
        Ok(Some(EdgeBatch { edges, rows: Vec::new(), times }))
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn score(
        &self,
        params: &Params,
        [heads, tails]: [Tensor; 2],
        batch: &EdgeBatch,
    ) -> Result<Tensor> {
        let (decoder, edges) = (self.decoder.as_ref(), &batch.edges);
        let query = decoder.query(params, Side::Tail, &heads, &edges.relations);
        let candidates = decoder.candidate(params, Side::Tail, &tails);
        let groups = Groups::each(edges.len(), 1);
        Ok(score(decoder.similarity(params), &query, &candidates, &groups))
    }

    fn ranking(&self) -> Option<Ranking<'_>> {
        let first_tail = self.edges.endpoints.first_tail();
        Some(Ranking { decoder: self.decoder.as_ref(), known: self.known.as_ref(), first_tail })
    }
}
