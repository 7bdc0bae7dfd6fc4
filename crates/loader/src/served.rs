//! Batches for loaders elsewhere.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use gnarl_common::{Error, Result};
use gnarl_serve::BatchServer;
use serde_json::Value;

use crate::graph::LoaderGraph;
use crate::scratches::Scratches;
use crate::source::{BatchSource, OwnBatches};
use crate::wire::{BatchSpec, batch_reply, request_of};

/// Samplers that are kept for the loaders of clients.
const SAMPLERS: usize = 16;

/// Makes batches of a graph for loaders elsewhere, as those would make them.
pub struct BatchMaker {
    graph: Arc<LoaderGraph>,
    /// Those used last are last.
    samplers: Mutex<Vec<(BatchSpec, Arc<OwnBatches>)>>,
    scratches: Scratches,
    threads: usize,
    made: AtomicU64,
}

impl fmt::Debug for BatchMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchMaker").field("graph", &self.graph).finish_non_exhaustive()
    }
}

impl BatchMaker {
    /// Makes batches of `graph`, at most `threads` at a time.
    pub fn new(graph: Arc<LoaderGraph>, threads: usize) -> Self {
        let samplers = Mutex::new(Vec::new());
        let scratches = Scratches::new(threads);
        Self { graph, samplers, scratches, threads, made: AtomicU64::new(0) }
    }

    /// Number of batches that were made.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    fn source(&self, spec: &Value) -> Result<Arc<OwnBatches>> {
        let spec = BatchSpec::read(spec)?;
        let mut samplers = self.samplers.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match samplers.iter().position(|(known, _)| *known == spec) {
            Some(at) => samplers.remove(at).1,
            None => Arc::new(spec.batches(&self.graph, self.threads)?),
        };
        if samplers.len() == SAMPLERS {
            samplers.remove(0);
        }
        samplers.push((spec, found.clone()));
        Ok(found)
    }
}

impl BatchServer for BatchMaker {
    fn batch(&self, spec: &Value, request: &Value, lists: &[RecordBatch]) -> Result<RecordBatch> {
        let [lists] = lists else {
            return Err(Error::invalid(format!("{} messages of a request", lists.len())));
        };
        let source = self.source(spec)?;
        let request = request_of(request, lists)?;
        request.check(source.sampler().graph())?;
        if source.sampler().is_timed() != request.times.is_some() {
            return Err(Error::invalid(
                "examples have times if, and only if, they are sampled in time",
            ));
        }
        let mut scratch = self.scratches.take();
        let batch = source.batch(&request, &mut scratch);
        self.scratches.give_back(scratch);
        let reply = batch_reply(batch?)?;
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use gnarl_common::Kind;
    use gnarl_common::rng::Key;
    use gnarl_graph::generate::{Attributes, CommunityOptions, community};
    use gnarl_sample::HeteroFanouts;
    use gnarl_sample::parts::Rule;

    use super::*;
    use crate::endpoints::{EdgeKind, Ends, LeftOut};
    use crate::negatives::Negatives;
    use crate::options::LoaderOptions;
    use crate::request::{Around, BatchRequest};
    use crate::wire::request_message;

    fn maker() -> (tempfile::TempDir, BatchMaker) {
        let dir = tempfile::tempdir().unwrap();
        let attributes = Attributes { features: 2, classes: 2, ..Default::default() };
        let options =
            CommunityOptions { nodes: 100, communities: 2, attributes, ..Default::default() };
        let dataset = community(&options, &dir.path().join("graph")).unwrap().dataset;
        let graph = LoaderGraph::open(&dataset).unwrap();
        (dir, BatchMaker::new(Arc::new(graph), 1))
    }

    fn spec_of(maker: &BatchMaker, fanouts: &[i64]) -> Value {
        let fanouts = HeteroFanouts::new(fanouts);
        let options = LoaderOptions::default();
        BatchSpec::of(&maker.graph, (&fanouts, Rule::Uniform), &options).message()
    }

    fn spec(maker: &BatchMaker) -> Value {
        spec_of(maker, &[3, 2])
    }

    #[test]
    fn other_versions_and_endless_hops_are_refused() {
        let (_dir, maker) = maker();
        let (head, lists) = request_message(&nodes(0, &[5, 9])).unwrap();
        let ask = |spec: &Value| maker.batch(spec, &head, std::slice::from_ref(&lists));
        let mut older = spec(&maker);
        older["version"] = "0.0.1".into();
        let error = ask(&older).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains("gnarl 0.0.1 asks a server of"), "{error}");
        older = serde_json::json!({ "version": "9.0.0", "shape": "new" });
        assert!(ask(&older).unwrap_err().to_string().contains("gnarl 9.0.0"));
        let mut others = spec(&maker);
        others["parts"] = 7.into();
        assert!(ask(&others).unwrap_err().to_string().contains("another partition"));
        let long = spec_of(&maker, &[1; 65]);
        assert!(ask(&long).unwrap_err().to_string().contains("65 hops"));
        assert_eq!(maker.made(), 0);
        ask(&spec(&maker)).unwrap();
        assert_eq!(maker.made(), 1);
    }

    fn nodes(node_type: usize, nodes: &[u32]) -> BatchRequest {
        let around = Around::Nodes { node_type, nodes: nodes.to_vec() };
        BatchRequest { places: vec![0, 1], key: Key::new(1), around, times: None }
    }

    fn edges(negatives: Negatives, ends: [&[u32]; 4], left_out: Option<LeftOut>) -> BatchRequest {
        let [sources, destinations, negative_sources, negative_destinations] =
            ends.map(<[u32]>::to_vec);
        let ends = Ends { sources, destinations, negative_sources, negative_destinations };
        let of = EdgeKind { source_type: 0, destination_type: 0, negatives, left_out };
        let around = Around::Edges(of, ends);
        BatchRequest { places: vec![0, 1], key: Key::new(1), around, times: None }
    }

    fn ask(maker: &BatchMaker, request: &BatchRequest) -> Result<RecordBatch> {
        let (head, lists) = request_message(request)?;
        assert_eq!(request_of(&head, &lists)?, *request, "a message says all of a request");
        maker.batch(&spec(maker), &head, &[lists])
    }

    #[test]
    fn requests_that_do_not_fit_the_graph_are_refused() {
        let (_dir, maker) = maker();
        assert!(ask(&maker, &nodes(0, &[5, 99])).is_ok());
        let pairs = Negatives::Pairs(0.5);
        let reversed = Some(LeftOut { edge_type: 0, reversed: Some(0) });
        assert!(ask(&maker, &edges(pairs, [&[1, 2], &[3, 4], &[5], &[6]], reversed)).is_ok());
        let triplets = Negatives::Destinations(2);
        let unknown = Some(LeftOut { edge_type: 0, reversed: Some(1) });
        let timed = BatchRequest { times: Some(vec![1, 2]), ..nodes(0, &[5, 9]) };
        let none = BatchRequest { places: vec![], ..nodes(0, &[]) };
        for (request, message) in [
            (none, "no examples"),
            (nodes(0, &[5, 100]), "node 100 of type '_N', which has 100"),
            (nodes(0, &[5]), "2 examples has 1 nodes"),
            (nodes(1, &[5, 6]), "no node type 1"),
            (timed, "if, and only if, they are sampled in time"),
            (edges(pairs, [&[1], &[3, 4], &[], &[]], None), "has 1 sources"),
            (edges(pairs, [&[1, 2], &[3], &[], &[]], None), "has 1 destinations"),
            (edges(pairs, [&[1, 2], &[3, 4], &[5], &[]], None), "has 1 sources of negatives"),
            (edges(triplets, [&[1, 2], &[3, 4], &[], &[5]], None), "has 1 negatives"),
            (edges(triplets, [&[1, 2], &[3, 4], &[], &[5, 6, 7, 100]], None), "node 100"),
            (edges(Negatives::None, [&[1, 2], &[3, 4], &[], &[5]], None), "has 1 negatives"),
            (edges(pairs, [&[1, 2], &[3, 4], &[5], &[6]], unknown), "no edge type 1"),
        ] {
            let error = ask(&maker, &request).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidInput, "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn other_messages_are_refused() {
        let (_dir, maker) = maker();
        let (head, lists) = request_message(&nodes(0, &[5, 9])).unwrap();
        let mut wrong = spec(&maker);
        wrong["rule"] = "best".into();
        let one = std::slice::from_ref(&lists);
        assert!(maker.batch(&wrong, &head, one).is_err());
        assert!(maker.batch(&Value::Null, &head, one).is_err());
        assert!(maker.batch(&spec(&maker), &Value::Null, one).is_err());
        assert!(maker.batch(&spec(&maker), &head, &[]).is_err());
        let columns = [0, 0].map(|_| lists.column(0).clone());
        let swapped = RecordBatch::try_from_iter(["places", "sources"].into_iter().zip(columns));
        let error = maker.batch(&spec(&maker), &head, &[swapped.unwrap()]).unwrap_err();
        assert!(error.to_string().contains("lacks the list 'nodes'"), "{error}");
        let numbers = Arc::new(arrow_array::Int64Array::from(vec![1]));
        let plain =
            RecordBatch::try_from_iter([("places", numbers.clone() as _), ("nodes", numbers as _)]);
        let error = maker.batch(&spec(&maker), &head, &[plain.unwrap()]).unwrap_err();
        assert!(error.to_string().contains("invalid list 'nodes'"), "{error}");
    }

    #[test]
    fn samplers_used_last_are_kept() {
        let (_dir, maker) = maker();
        let of = |hop: i64| spec_of(&maker, &[hop]);
        let first = maker.source(&of(1)).unwrap();
        for hop in 2..=SAMPLERS as i64 {
            maker.source(&of(hop)).unwrap();
        }
        assert!(Arc::ptr_eq(&first, &maker.source(&of(1)).unwrap()));
        maker.source(&of(99)).unwrap();
        assert!(Arc::ptr_eq(&first, &maker.source(&of(1)).unwrap()), "2 is gone in its place");
        assert_eq!(maker.samplers.lock().unwrap().len(), SAMPLERS);
    }
}
