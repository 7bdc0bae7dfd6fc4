//! Degrees of some nodes of each type by edge type, from which batches are expected.

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::{Dataset, Manifest, for_each_edge};

/// Nodes of each type whose degrees stand for those of all.
const SAMPLE: u64 = 10_000;

/// A node type.
pub(super) struct NodeType {
    pub nodes: f64,
    /// All nodes over those of the sample.
    scale: f64,
    /// Edge types into the nodes, and the in-degree of each node of the sample.
    pub into: Vec<(usize, Vec<u32>)>,
    /// Edge types out of them, and the out-degrees.
    out: Vec<(usize, Vec<u32>)>,
}

/// The node and edge types of a graph.
pub(super) struct Degrees {
    pub types: Vec<NodeType>,
    /// Number of edges of each edge type.
    pub edges: Vec<f64>,
    /// Edge types into the seeds' node type, and the in-degree of some training nodes.
    seeds: Vec<(usize, Vec<u32>)>,
    /// Number of the seeds' node type.
    target: usize,
}

/// Edges into nodes of all types, and the pairs of a node and an edge type that they are of.
#[derive(Debug, Clone, Default)]
pub(super) struct Drawn {
    /// Edges of each edge type.
    pub edges: Vec<f64>,
    /// Pairs of a node and an edge type that it receives messages over.
    pub groups: f64,
}

impl Degrees {
    /// Counts a dataset whose seeds are some nodes `train` of a type `target`: a pass over the edges, and 4 bytes for
    /// each node of the largest type.
    ///
    /// # Errors
    /// If a file cannot be read, or ids do not fit 32 bits.
    pub fn of(dataset: &Dataset, target: usize, train: &[u32]) -> Result<Self> {
        let manifest = dataset.manifest();
        let samples: Vec<Vec<u64>> = (0..manifest.node_types.len())
            .map(|number| sample(manifest.node_types[number].count, number as u64))
            .collect();
        let mut types: Vec<NodeType> = manifest
            .node_types
            .iter()
            .zip(&samples)
            .map(|(t, sample)| NodeType {
                nodes: t.count as f64,
                scale: t.count as f64 / sample.len().max(1) as f64,
                into: Vec::new(),
                out: Vec::new(),
            })
            .collect();
        let train: Vec<u64> =
            sample(train.len() as u64, 0).into_iter().map(|i| train[i as usize].into()).collect();
        let mut edges = Vec::new();
        let mut seeds = Vec::new();
        for (number, t) in manifest.edge_types.iter().enumerate() {
            let [source, end] = [&t.triple.src, &t.triple.dst].map(|name| position(manifest, name));
            let lists = dataset.csc(&t.triple)?;
            let length = |&node: &u64| (lists.indptr.get(node + 1) - lists.indptr.get(node)) as u32;
            types[end].into.push((number, samples[end].iter().map(length).collect()));
            if end == target {
                seeds.push((number, train.iter().map(length).collect()));
            }
            let mut sent = vec![0u32; manifest.node_types[source].count as usize];
            for_each_edge(&mut dataset.edges_of(&t.triple)?, &mut |u, _| {
                let sent = &mut sent[u as usize];
                *sent = sent.saturating_add(1);
            })?;
            let sent = samples[source].iter().map(|&node| sent[node as usize]).collect();
            types[source].out.push((number, sent));
            edges.push(t.count as f64);
        }
        Ok(Self { types, edges, seeds, target })
    }

    /// Expected draws for so many seeds, and for those other nodes that `reached` draws over each edge type have hit, a
    /// node's chance being in proportion to its out-degree. `fanout` bounds the neighbors of a node by edge type; the share
    /// `near` of them is there.
    pub fn draw(
        &self,
        seeds: f64,
        (reached, share, near): (&[f64], f64, f64),
        fanout: &dyn Fn(usize) -> f64,
    ) -> Drawn {
        let mut drawn = Drawn { edges: vec![0.0; self.edges.len()], groups: 0.0 };
        let mut add = |relation: usize, degree: u32, nodes: f64| {
            let taken = (near * f64::from(degree)).min(fanout(relation));
            drawn.edges[relation] += nodes * taken;
            // None of them may be there.
            let any = 1.0 - (1.0 - near).powi(degree.min(1 << 20) as i32);
            drawn.groups += if taken > 0.0 { nodes * any } else { 0.0 };
        };
        for (relation, degrees) in &self.seeds {
            let each = seeds / degrees.len().max(1) as f64;
            degrees.iter().for_each(|&degree| add(*relation, degree, each));
        }
        for (number, t) in self.types.iter().enumerate() {
            let hit = self.hit(t, (reached, share));
            let others = share * t.scale * self.others(number, seeds, share);
            for (relation, degrees) in &t.into {
                let both = degrees.iter().zip(&hit);
                both.for_each(|(&degree, &hit)| add(*relation, degree, others * hit));
            }
        }
        drawn
    }

    /// Expected distinct nodes of each type: so many seeds, and those that `reached` draws have hit.
    pub fn nodes(&self, seeds: f64, (reached, share): (&[f64], f64)) -> Vec<f64> {
        let of = |(number, t): (usize, &NodeType)| {
            let hit: f64 = self.hit(t, (reached, share)).iter().sum();
            let own = if number == self.target { seeds } else { 0.0 };
            own + self.others(number, seeds, share) * share * t.scale * hit
        };
        self.types.iter().enumerate().map(of).collect()
    }

    /// Expected pairs of a node and an edge type that some of `drawn` edges of each type come from.
    pub fn senders(&self, drawn: &[f64], share: f64) -> f64 {
        let of = |t: &NodeType| -> f64 {
            let pairs = t.out.iter().map(|(relation, degrees)| {
                let rate = self.rate(*relation, drawn, share);
                degrees.iter().map(|&degree| 1.0 - (-rate * f64::from(degree)).exp()).sum::<f64>()
            });
            share * t.scale * pairs.sum::<f64>()
        };
        self.types.iter().map(of).sum()
    }

    /// Pairs of a node and an edge type in the whole graph: with edges into the node, and with edges out of it.
    pub fn pairs(&self) -> (f64, f64) {
        let some = |of: &Vec<(usize, Vec<u32>)>, scale: f64| -> f64 {
            let nodes = of.iter().flat_map(|(_, degrees)| degrees).filter(|&&degree| degree > 0);
            scale * nodes.count() as f64
        };
        let (into, out) =
            (|t: &NodeType| some(&t.into, t.scale), |t: &NodeType| some(&t.out, t.scale));
        (self.types.iter().map(into).sum(), self.types.iter().map(out).sum())
    }

    /// Chance of each node of the sample to be hit.
    fn hit(&self, t: &NodeType, (reached, share): (&[f64], f64)) -> Vec<f64> {
        let count = t.into.first().or(t.out.first()).map_or(0, |(_, degrees)| degrees.len());
        let mut expected = vec![0.0; count];
        for (relation, degrees) in &t.out {
            let rate = self.rate(*relation, reached, share);
            for (expected, &degree) in expected.iter_mut().zip(degrees) {
                *expected += rate * f64::from(degree);
            }
        }
        expected.into_iter().map(|draws| 1.0 - (-draws).exp()).collect()
    }

    /// Draws per edge of a share of the graph.
    fn rate(&self, relation: usize, draws: &[f64], share: f64) -> f64 {
        draws[relation] / (share * self.edges[relation]).max(1.0)
    }

    /// Share of the nodes of type `number` that are no seeds.
    fn others(&self, number: usize, seeds: f64, share: f64) -> f64 {
        let seeds = if number == self.target { seeds } else { 0.0 };
        (1.0 - seeds / (share * self.types[number].nodes).max(1.0)).max(0.0)
    }
}

fn position(manifest: &Manifest, name: &str) -> usize {
    manifest.node_types.iter().position(|t| t.name == name).unwrap_or_default()
}

/// Some of `count` nodes, one of each of equally long ranges.
fn sample(count: u64, stream: u64) -> Vec<u64> {
    let key = Key::new(0).with(stream);
    let some = count.min(SAMPLE);
    let from = |i: u64| i * count / some;
    (0..some).map(|i| from(i) + key.below(i, from(i + 1) - from(i))).collect()
}
