//! Graphs of parts in memory against the whole graph without the other parts.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::blocks::Schema;
use gnarl_graph::{Csc, DEFAULT_NODE_TYPE, Triple};
use gnarl_partition::LoadedBucket;
use gnarl_sample::{
    Buckets, ExactSampler, FullSampler, PartNodes, ResidentGraph, SampleGraph, Sampler, Scratch,
    UniformSampler,
};
use proptest::prelude::*;

type Make = fn(&SampleGraph) -> Box<dyn Sampler>;

/// The types of a graph without types.
fn one_type() -> Arc<Schema> {
    let mut schema = Schema::default();
    schema.add_node_type(DEFAULT_NODE_TYPE);
    schema.add_edge_type(Triple::plain(), 0, 0);
    Arc::new(schema)
}

/// A graph, and the part of each node.
#[derive(Debug)]
struct Divided {
    edges: Vec<(u32, u32)>,
    part: Vec<usize>,
    parts: usize,
}

impl Divided {
    fn nodes(&self, part: usize) -> Vec<u32> {
        (0..self.part.len() as u32).filter(|&v| self.part[v as usize] == part).collect()
    }

    fn row(&self, node: u32) -> u32 {
        let part = self.part[node as usize];
        self.part[..node as usize].iter().filter(|&&other| other == part).count() as u32
    }

    fn loaded(&self, part: usize) -> Arc<PartNodes> {
        let nodes = self.nodes(part);
        let degree = |v: u32| self.edges.iter().filter(|edge| edge.1 == v).count() as u32;
        Arc::new(PartNodes {
            part,
            degrees: vec![nodes.iter().map(|&v| degree(v)).collect::<Vec<_>>().into()],
            ids: vec![nodes.iter().map(|&v| v.into()).collect::<Vec<_>>().into()],
        })
    }

    /// The graph of the edges among some parts, with the degrees of the whole.
    fn among(&self, parts: &[usize]) -> SampleGraph {
        let here = |v: u32| parts.contains(&self.part[v as usize]);
        let edges: Vec<_> =
            self.edges.iter().copied().filter(|&(u, v)| here(u) && here(v)).collect();
        let whole = Csc::from_edges(self.part.len(), &self.edges);
        let nodes = self.part.len();
        let degrees: Vec<u32> = (0..nodes as u32).map(|v| whole.degree(v)).collect();
        let ids: Vec<u64> = (0..nodes as u64).collect();
        let csc = Csc::from_edges(nodes, &edges);
        SampleGraph::with_part(csc, ids.into(), Some(degrees.into()), nodes).unwrap()
    }
}

impl Buckets for Divided {
    fn len(&self, _: usize, bucket: (usize, usize)) -> usize {
        self.read(0, &[bucket]).unwrap()[0].src.len()
    }

    fn read(&self, _: usize, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>> {
        let read = |&(i, j): &(usize, usize)| {
            let of = |v: u32| self.part[v as usize];
            let mut rows: Vec<_> =
                self.edges.iter().filter(|&&(u, v)| (of(u), of(v)) == (i, j)).collect();
            rows.sort_by_key(|&&(u, v)| (v, u));
            LoadedBucket {
                src: rows.iter().map(|edge| self.row(edge.0)).collect(),
                dst: rows.iter().map(|edge| self.row(edge.1)).collect(),
            }
        };
        Ok(wanted.iter().map(read).collect())
    }
}

/// The places of `resident` with `parts` in them: those that are there stay where they are.
fn placed(
    resident: &ResidentGraph,
    parts: &[usize],
    loaded: &dyn Fn(usize) -> Arc<PartNodes>,
) -> Vec<Option<Arc<PartNodes>>> {
    let mut places = resident.places().to_vec();
    for place in &mut places {
        if place.as_ref().is_some_and(|nodes| !parts.contains(&nodes.part)) {
            *place = None;
        }
    }
    for &part in parts {
        if resident.place_of(part).is_none() {
            let free = places.iter_mut().find(|place| place.is_none()).unwrap();
            *free = Some(loaded(part));
        }
    }
    places
}

/// Samplers draw from `resident` what they draw from the whole graph without the other parts.
fn check(graph: &Divided, resident: &ResidentGraph, parts: &[usize]) {
    let (here, all) = (resident.sample_graph().unwrap(), graph.among(parts));
    here.verify().unwrap();
    assert_eq!(here.num_edges(), all.num_edges());
    let nodes: Vec<u32> = parts.iter().flat_map(|&part| graph.nodes(part)).collect();
    let local = |v: u32| {
        let place = resident.place_of(graph.part[v as usize]).unwrap() as u32;
        place * resident.stride(0) + graph.row(v)
    };
    let of = |sampler: &dyn Sampler, seeds: &[u32], graph: &SampleGraph| {
        let batch = sampler.sample(seeds, Key::new(3), &mut Scratch::new()).unwrap();
        let ids: Vec<u64> = batch.input_nodes.iter().map(|&v| graph.id(v)).collect();
        let edges: Vec<Vec<Vec<u32>>> = batch
            .blocks
            .iter()
            .map(|block| (0..block.num_dst()).map(|v| block.sources(v).to_vec()).collect())
            .collect();
        (ids, edges)
    };
    for seeds in nodes.chunks(7) {
        let own: Vec<u32> = seeds.iter().map(|&v| local(v)).collect();
        let samplers: [Make; 3] = [
            |graph| Box::new(UniformSampler::new(graph, &[2, 3]).unwrap()),
            |graph| Box::new(ExactSampler::new(graph, &[2, 3]).unwrap()),
            |graph| Box::new(FullSampler::new(graph, 2).unwrap()),
        ];
        for sampler in samplers {
            assert_eq!(of(&*sampler(&here), &own, &here), of(&*sampler(&all), seeds, &all));
        }
    }
}

prop_compose! {
    fn divided()(nodes in 1usize..40, parts in 1usize..6)(
        edges in prop::collection::vec((0..nodes as u32, 0..nodes as u32), 0..200),
        part in prop::collection::vec(0..parts, nodes),
        parts in Just(parts),
    ) -> Divided {
        Divided { edges, part, parts }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_graph_in_memory_is_the_whole_without_other_parts(
        graph in divided(),
        turns in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..4), 1..6),
    ) {
        let stride = (0..graph.parts).map(|part| graph.nodes(part).len()).max().unwrap_or(0);
        let mut resident = ResidentGraph::new(one_type(), 3, &[stride]).unwrap();
        let mut fixed = resident.clone().fixed();
        for turn in turns {
            let mut parts: Vec<usize> = turn.iter().map(|at| at.index(graph.parts)).collect();
            parts.sort_unstable();
            parts.dedup();
            let places = placed(&resident, &parts, &|part| graph.loaded(part));
            // Without ids beside the lists before.
            fixed = fixed.with(places.clone(), &graph).unwrap();
            check(&graph, &fixed, &parts);
            resident = resident.with(places, &graph).unwrap();
            check(&graph, &resident, &parts);
        }
    }
}

/// More lists than one task merges.
#[test]
fn many_lists_are_merged_in_pieces() {
    let nodes = 30_000u32;
    let key = Key::new(9);
    let draw =
        |i: u64| (key.below(2 * i, nodes.into()) as u32, key.below(2 * i + 1, nodes.into()) as u32);
    let edges: Vec<(u32, u32)> = (0..60_000).map(draw).collect();
    let part: Vec<usize> = (0..nodes).map(|v| (v as usize * 7 + 3) % 3).collect();
    let graph = Divided { edges, part, parts: 3 };
    let whole = Csc::from_edges(nodes as usize, &graph.edges);
    let loaded = |part: usize| {
        let nodes: Vec<u32> = (0..nodes).filter(|&v| graph.part[v as usize] == part).collect();
        Arc::new(PartNodes {
            part,
            ids: vec![nodes.iter().map(|&v| v.into()).collect::<Vec<_>>().into()],
            degrees: vec![nodes.iter().map(|&v| whole.degree(v)).collect::<Vec<_>>().into()],
        })
    };
    let mut row = vec![0; nodes as usize];
    let mut counts = [0; 3];
    for v in 0..nodes as usize {
        row[v] = counts[graph.part[v]];
        counts[graph.part[v]] += 1;
    }
    struct Listed<'a>(&'a Divided, Vec<u32>);
    impl Buckets for Listed<'_> {
        fn len(&self, _: usize, bucket: (usize, usize)) -> usize {
            self.read(0, &[bucket]).unwrap()[0].src.len()
        }

        fn read(&self, _: usize, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>> {
            let read = |&(i, j): &(usize, usize)| {
                let of = |v: u32| self.0.part[v as usize];
                let edges = self.0.edges.iter().filter(|&&(u, v)| (of(u), of(v)) == (i, j));
                let mut rows: Vec<(u32, u32)> =
                    edges.map(|&(u, v)| (self.1[v as usize], self.1[u as usize])).collect();
                rows.sort_unstable();
                let (dst, src) = rows.into_iter().unzip();
                LoadedBucket { src, dst }
            };
            Ok(wanted.iter().map(read).collect())
        }
    }
    let buckets = Listed(&graph, row);
    let mut resident = ResidentGraph::new(one_type(), 3, &[10_000]).unwrap();
    for parts in [vec![0, 1], vec![1, 2], vec![0, 1, 2]] {
        let places = placed(&resident, &parts, &loaded);
        resident = resident.with(places, &buckets).unwrap();
    }
    let found = resident.sample_graph().unwrap();
    found.verify().unwrap();
    for local in 0..found.num_nodes() as u32 {
        let sources = found.sources(local).unwrap().iter().map(|&u| found.id(u) as u32);
        assert_eq!(sources.collect::<Vec<_>>(), whole.sources(found.id(local) as u32));
    }
}

/// Node types of the sources and of the destinations of each edge type.
const ENDS: [(usize, usize); 3] = [(0, 0), (1, 0), (0, 1)];
/// Nodes of each type; no part has a third of those of the second.
const COUNTS: [u32; 2] = [60, 9];

/// The part of a node of a type.
fn part_of(node_type: usize, node: u32) -> usize {
    [(node as usize * 7 + 1) % 3, node as usize % 2][node_type]
}

/// The nodes of a type in a part.
fn nodes_of(node_type: usize, part: usize) -> Vec<u32> {
    (0..COUNTS[node_type]).filter(|&node| part_of(node_type, node) == part).collect()
}

/// Edges of each type.
struct OfTypes(Vec<Vec<(u32, u32)>>);

impl OfTypes {
    fn loaded(&self, part: usize) -> Arc<PartNodes> {
        let ids = |t: usize| nodes_of(t, part).into_iter().map(u64::from).collect::<Vec<_>>();
        let degrees = |e: usize| -> Vec<u32> {
            let into = |v: u32| self.0[e].iter().filter(|edge| edge.1 == v).count() as u32;
            nodes_of(ENDS[e].1, part).into_iter().map(into).collect()
        };
        Arc::new(PartNodes {
            part,
            ids: (0..2).map(|t| ids(t).into()).collect(),
            degrees: (0..3).map(|e| degrees(e).into()).collect(),
        })
    }
}

impl Buckets for OfTypes {
    fn len(&self, edge_type: usize, bucket: (usize, usize)) -> usize {
        self.read(edge_type, &[bucket]).unwrap()[0].src.len()
    }

    fn read(&self, edge_type: usize, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>> {
        let (src, dst) = ENDS[edge_type];
        let row = |t: usize, v: u32| {
            nodes_of(t, part_of(t, v)).binary_search(&v).expect("it is in its part") as u32
        };
        let read = |&(i, j): &(usize, usize)| {
            let here = |edge: &&(u32, u32)| (part_of(src, edge.0), part_of(dst, edge.1)) == (i, j);
            let edges = self.0[edge_type].iter().filter(here);
            let mut rows: Vec<_> = edges.map(|&(u, v)| (row(dst, v), row(src, u))).collect();
            rows.sort_unstable();
            let (dst, src) = rows.into_iter().unzip();
            LoadedBucket { src, dst }
        };
        Ok(wanted.iter().map(read).collect())
    }
}

#[test]
fn lists_of_several_types_are_those_of_the_whole_without_other_parts() {
    let mut schema = Schema::default();
    ["a", "b"].into_iter().for_each(|name| schema.add_node_type(name));
    for (name, (src, dst)) in ["a:x:a", "b:y:a", "a:z:b"].into_iter().zip(ENDS) {
        schema.add_edge_type(name.parse().unwrap(), src, dst);
    }
    let edge = |e: usize, i: u64| {
        let node = |t: usize, draw: u64| Key::new(e as u64).below(draw, COUNTS[t].into()) as u32;
        (node(ENDS[e].0, 2 * i), node(ENDS[e].1, 2 * i + 1))
    };
    let graph = OfTypes((0..3).map(|e| (0..150).map(|i| edge(e, i)).collect()).collect());
    let largest = [0, 1].map(|t| (0..3).map(|part| nodes_of(t, part).len()).max().unwrap());
    let mut resident = ResidentGraph::new(schema.into(), 2, &largest).unwrap();
    for parts in [vec![0, 1], vec![1, 2], vec![2, 0], vec![0]] {
        let places = placed(&resident, &parts, &|part| graph.loaded(part));
        resident = resident.with(places, &graph).unwrap();
        let found = resident.hetero_sample_graph().unwrap();
        found.verify().unwrap();
        let mut seen = 0;
        for (e, (src, dst)) in ENDS.into_iter().enumerate() {
            for local in 0..found.num_nodes(dst) as u32 {
                let id = found.id(dst, local);
                let mut expected: Vec<u64> = graph.0[e]
                    .iter()
                    .filter(|edge| u64::from(edge.1) == id && parts.contains(&part_of(src, edge.0)))
                    .map(|edge| edge.0.into())
                    .collect();
                expected.sort_unstable();
                let list = found.csc(e).sources(local);
                let list: Vec<u64> = list.iter().map(|&source| found.id(src, source)).collect();
                assert_eq!(list, expected, "{parts:?}, type {e}, node {id}");
                seen += list.len();
            }
        }
        assert_eq!(seen, resident.num_edges());
    }
}

#[test]
fn wrong_buckets_are_refused() {
    struct Wrong(LoadedBucket, usize);
    impl Buckets for Wrong {
        fn len(&self, _: usize, _: (usize, usize)) -> usize {
            self.1
        }

        fn read(&self, _: usize, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>> {
            Ok(vec![self.0.clone(); wanted.len()])
        }
    }
    let nodes =
        |part| PartNodes { part, ids: vec![vec![0, 1].into()], degrees: vec![vec![1, 0].into()] };
    let empty = ResidentGraph::new(one_type(), 1, &[2]).unwrap();
    let made = |src: Vec<u32>, dst: Vec<u32>, len: usize| {
        let buckets = Wrong(LoadedBucket { src, dst }, len);
        empty.with(vec![Some(Arc::new(nodes(0)))], &buckets).map(|graph| graph.num_edges())
    };
    assert_eq!(made(vec![1], vec![0], 1).unwrap(), 1);
    for (src, dst, len) in [(vec![2], vec![0], 1), (vec![0], vec![2], 1), (vec![0], vec![1], 2)] {
        let text = made(src, dst, len).unwrap_err().to_string();
        assert!(text.contains("partition the graph again"), "{text}");
    }
    assert!(ResidentGraph::new(one_type(), 1 << 20, &[1 << 20]).is_err());
}
