//! What the sampler of heterogeneous graphs must hold to, by every rule.

use std::collections::HashSet;
use std::path::Path;

use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Dataset, DatasetWriter, IdWidth, Triple};
use gnarl_partition::{PartLayout, PartitionConfig, Parts, partition_dataset};
use gnarl_sample::parts::Rule;
use gnarl_sample::{
    ExactSampler, HeteroBatch, HeteroFanouts, HeteroSampleGraph, HeteroSampler, HeteroScratch,
    LaborSampler, SampleGraph, Sampler, Scratch, UniformSampler, WeightedSampler,
};

const RULES: [Rule; 4] = [Rule::Uniform, Rule::Labor, Rule::Exact, Rule::Weighted];
const NODES: [(&str, usize); 4] = [("user", 60), ("item", 40), ("tag", 9), ("alone", 3)];
const EDGES: [(&str, usize); 5] = [
    ("user:rates:item", 700),
    ("item:rated_by:user", 700),
    ("user:follows:user", 400),
    ("tag:marks:item", 150),
    ("item:has:tag", 150),
];

fn triple(name: &str) -> Triple {
    name.parse().unwrap()
}

fn count(node_type: &str) -> u64 {
    NODES.iter().find(|(name, _)| *name == node_type).unwrap().1 as u64
}

/// Random edges, some repeated, none from or to the last nodes of a type.
fn edges(edge_type: usize) -> Vec<(u32, u32)> {
    let (name, number) = EDGES[edge_type];
    let (t, key) = (triple(name), Key::new(77).with(edge_type as u64));
    let end = |c, node_type| key.below(c, count(node_type) - 2) as u32;
    (0..number as u64).map(|i| (end(2 * i, &t.src), end(2 * i + 1, &t.dst))).collect()
}

/// The graph with its types in the given orders; weights depend on the endpoints of edges.
fn graph_of(nodes: &[usize], edge_types: &[usize]) -> HeteroSampleGraph {
    let mut graph = HeteroSampleGraph::new();
    for &n in nodes {
        graph = graph.with_nodes(NODES[n].0, NODES[n].1).unwrap();
    }
    for &e in edge_types {
        let t = triple(EDGES[e].0);
        let csc = Csc::from_edges(count(&t.dst) as usize, &edges(e));
        let weight = |dst| csc.sources(dst).iter().map(move |&src| weight(e, src, dst));
        let weights: Vec<f32> = (0..csc.num_dst() as u32).flat_map(weight).collect();
        graph = graph.with_edges(&t, csc).unwrap().with_weights(&t, weights.into()).unwrap();
    }
    graph
}

fn weight(edge_type: usize, src: u32, dst: u32) -> f32 {
    Key::new(5).with(edge_type as u64).with(src.into()).unit(dst.into()) as f32 + 0.1
}

fn graph() -> HeteroSampleGraph {
    graph_of(&[0, 1, 2, 3], &[0, 1, 2, 3, 4])
}

fn fanouts() -> HeteroFanouts {
    HeteroFanouts::new(&[4, 3, 2])
        .with(triple("tag:marks:item"), &[-1, 0, 1])
        .with(triple("user:follows:user"), &[0, 2, -1])
}

/// Fan-out of an edge type at a hop, as [`fanouts`] has it; `usize::MAX` for all.
fn fanout(edge_type: usize, hop: usize) -> usize {
    let own = match EDGES[edge_type].0 {
        "tag:marks:item" => [-1, 0, 1],
        "user:follows:user" => [0, 2, -1],
        _ => [4, 3, 2],
    };
    usize::try_from(own[hop]).unwrap_or(usize::MAX)
}

fn sampler(graph: &HeteroSampleGraph, rule: Rule) -> HeteroSampler {
    HeteroSampler::new(graph, &fanouts(), rule).unwrap()
}

/// Calls `check` with batches of users, items and nodes without edges, by every rule.
fn for_each_batch(mut check: impl FnMut(&HeteroSampleGraph, &[u32], &HeteroBatch)) {
    let (graph, mut scratch) = (graph(), HeteroScratch::new());
    for rule in RULES {
        let sampler = sampler(&graph, rule);
        for node_type in ["user", "item", "alone"] {
            let train: Vec<u32> = (0..count(node_type) as u32).collect();
            for seeds in sampler.epoch(&train, 7, Key::new(2)) {
                let key = Key::new(1).with(3);
                check(
                    &graph,
                    &seeds,
                    &sampler.sample(node_type, &seeds, key, &mut scratch).unwrap(),
                );
            }
        }
    }
}

/// Everything in a batch, by names of types.
fn contents(batch: &HeteroBatch) -> impl PartialEq + std::fmt::Debug + Send + use<> {
    let schema = &batch.schema;
    let mut nodes: Vec<_> = (0..NODES.len())
        .map(|t| {
            (schema.node_types()[t].clone(), batch.input_nodes[t].clone(), batch.ids[t].clone())
        })
        .collect();
    nodes.sort();
    let of_block = |block: &gnarl_sample::HeteroBlock| {
        let relations = schema.edge_types().iter().zip(block.relations());
        let mut found: Vec<_> = relations
            .map(|(t, r)| {
                let lists = (r.indptr().to_vec(), r.indices().to_vec(), r.degrees().to_vec());
                let weights: Option<Vec<_>> =
                    r.weights().map(|w| w.iter().map(|w| w.to_bits()).collect());
                (t.clone(), r.num_src(), lists, weights)
            })
            .collect();
        found.sort();
        found
    };
    let blocks: Vec<_> = batch.blocks.iter().map(of_block).collect();
    let named = |(node_type, rows): &(usize, Vec<u32>)| {
        (schema.node_types()[*node_type].clone(), rows.clone())
    };
    (nodes, blocks, batch.targets.iter().map(named).collect::<Vec<_>>())
}

#[test]
fn blocks_chain_and_nodes_are_distinct() {
    for_each_batch(|_, seeds, batch| {
        assert_eq!(batch.blocks.len(), 3);
        for pair in batch.blocks.windows(2) {
            assert_eq!(pair[0].num_dst(), pair[1].num_src());
        }
        for (node_type, nodes) in batch.input_nodes.iter().enumerate() {
            assert_eq!(nodes.len(), batch.blocks[0].num_src()[node_type]);
            assert_eq!(nodes.iter().collect::<HashSet<_>>().len(), nodes.len());
        }
        for (block, edge_type) in batch.blocks.iter().flat_map(|b| (0..5).map(move |e| (b, e))) {
            let (src, dst) = batch.schema.ends(edge_type);
            let relation = &block.relations()[edge_type];
            assert_eq!(relation.num_src(), block.num_src()[src]);
            assert_eq!(relation.num_dst(), block.num_dst()[dst]);
        }
        let last = &batch.blocks[2];
        assert_eq!(last.num_dst().iter().sum::<usize>(), seeds.len());
        let [(seed_type, rows)] = &batch.targets[..] else { panic!("seeds are of one type") };
        assert_eq!(&batch.input_nodes[*seed_type][..seeds.len()], seeds);
        assert_eq!(*rows, (0..seeds.len() as u32).collect::<Vec<_>>());
    });
}

#[test]
fn edges_are_the_graphs_and_as_many_as_asked_for() {
    for_each_batch(|graph, _, batch| {
        for (hop, block) in batch.blocks.iter().rev().enumerate() {
            for (edge_type, relation) in block.relations().iter().enumerate() {
                let (src, dst) = batch.schema.ends(edge_type);
                for row in 0..relation.num_dst() {
                    let node = batch.input_nodes[dst][row];
                    let mut left = graph.csc(edge_type).sources(node).to_vec();
                    assert_eq!(relation.degrees()[row] as usize, left.len());
                    let wanted = left.len().min(fanout(edge_type, hop));
                    assert_eq!(relation.sources(row).len(), wanted);
                    let weights = &relation.weights().unwrap()[relation.indptr()[row] as usize..];
                    for (&source, &found) in relation.sources(row).iter().zip(weights) {
                        let source = batch.input_nodes[src][source as usize];
                        let at = left.iter().position(|&v| v == source);
                        left.remove(at.unwrap_or_else(|| panic!("no edge left from {source}")));
                        assert_eq!(found, weight(edge_type, source, node));
                    }
                }
            }
        }
    });
}

#[test]
fn a_batch_depends_on_seeds_and_key_alone() {
    let graph = graph();
    for rule in RULES {
        let (sampler, key) = (sampler(&graph, rule), Key::new(3).with(1));
        let batches = sampler.epoch(&(0..60).collect::<Vec<_>>(), 9, key);
        let draw = |order: Vec<usize>| {
            let mut scratch = HeteroScratch::new();
            let sample = |i: usize| sampler.sample("user", &batches[i], key, &mut scratch).unwrap();
            let mut found: Vec<_> =
                order.iter().copied().zip(order.iter().copied().map(sample)).collect();
            found.sort_by_key(|(i, _)| *i);
            found.iter().map(|(_, batch)| contents(batch)).collect::<Vec<_>>()
        };
        let backward = std::thread::scope(|scope| {
            scope.spawn(|| draw((0..batches.len()).rev().collect())).join().unwrap()
        });
        assert_eq!(draw((0..batches.len()).collect()), backward);
    }
}

#[test]
fn the_order_of_types_does_not_matter() {
    let (graph, turned) = (graph(), graph_of(&[2, 3, 1, 0], &[4, 2, 0, 3, 1]));
    for (rule, node_type) in RULES.into_iter().flat_map(|r| [(r, "user"), (r, "item")]) {
        let draw = |graph| {
            let mut scratch = HeteroScratch::new();
            sampler(graph, rule).sample(node_type, &[3, 1, 20], Key::new(8), &mut scratch).unwrap()
        };
        assert_eq!(contents(&draw(&graph)), contents(&draw(&turned)));
    }
}

/// What is drawn over an edge type does not depend on what is taken over others; but edge types
/// with the same lists draw apart.
#[test]
fn edge_types_draw_independently() {
    let star: Vec<_> = (1..200).map(|v| (v, 0)).collect();
    let mut graph = HeteroSampleGraph::new().with_nodes("v", 200).unwrap();
    for name in ["v:a:v", "v:b:v"] {
        graph = graph.with_edges(&triple(name), Csc::from_edges(200, &star)).unwrap();
    }
    for rule in [Rule::Uniform, Rule::Labor, Rule::Exact] {
        let draw = |of_a: i64| {
            let fanouts = HeteroFanouts::new(&[5]).with(triple("v:a:v"), &[of_a]);
            let sampler = HeteroSampler::new(&graph, &fanouts, rule).unwrap();
            let batch = sampler.sample("v", &[0], Key::new(2), &mut HeteroScratch::new()).unwrap();
            [0, 1].map(|edge_type| {
                let sources = batch.blocks[0].relations()[edge_type].sources(0);
                sources.iter().map(|&s| batch.input_nodes[0][s as usize]).collect::<Vec<_>>()
            })
        };
        let ([none, alone], [a, b]) = (draw(0), draw(5));
        assert!(none.is_empty());
        assert_eq!(alone, b);
        assert_ne!(a, b);
    }
}

#[test]
fn one_type_gives_what_samplers_without_types_give() {
    let edges: Vec<_> = (edges(2).into_iter()).flat_map(|(u, v)| [(u, v), (v, u)]).collect();
    let csc = || Csc::from_edges(60, &edges);
    let weights: Vec<f32> = (0..edges.len()).map(|i| Key::new(6).unit(i as u64) as f32).collect();
    let plain = SampleGraph::new(csc()).unwrap().with_weights(weights.clone().into()).unwrap();
    let t = triple("user:follows:user");
    let typed = HeteroSampleGraph::new().with_nodes("user", 60).unwrap();
    let typed = typed.with_edges(&t, csc()).unwrap().with_weights(&t, weights.into()).unwrap();
    let samplers: [(Rule, Box<dyn Sampler>); 4] = [
        (Rule::Uniform, Box::new(UniformSampler::new(&plain, &[5, -1, 3]).unwrap())),
        (Rule::Labor, Box::new(LaborSampler::new(&plain, &[5, -1, 3]).unwrap())),
        (Rule::Exact, Box::new(ExactSampler::new(&plain, &[5, -1, 3]).unwrap())),
        (Rule::Weighted, Box::new(WeightedSampler::new(&plain, &[5, -1, 3]).unwrap())),
    ];
    for (rule, plain) in samplers {
        let sampler = HeteroSampler::new(&typed, &HeteroFanouts::new(&[5, -1, 3]), rule).unwrap();
        let (seeds, key) = ([7, 3, 7, 59, 0], Key::new(9).with(2));
        let expected = plain.sample(&seeds, key, &mut Scratch::new()).unwrap();
        let found = sampler.sample("user", &seeds, key, &mut HeteroScratch::new()).unwrap();
        assert_eq!(found.input_nodes, std::slice::from_ref(&expected.input_nodes));
        assert_eq!(found.targets, [(0, expected.targets.clone())]);
        let fused = found.fuse(&typed).unwrap();
        assert_eq!(fused.targets, expected.targets);
        for ((typed, fused), plain) in found.blocks.iter().zip(&fused.blocks).zip(&expected.blocks)
        {
            let relation = &typed.relations()[0];
            assert_eq!(relation.indptr(), plain.indptr());
            assert_eq!(relation.indices(), plain.indices());
            assert_eq!(relation.weights(), plain.weights());
            assert_eq!(relation.degrees(), &plain.degrees()[..plain.num_dst()]);
            assert_eq!(relation.transpose().edge, plain.transpose().edge);
            let fused = &fused.block;
            assert_eq!((fused.indptr(), fused.indices()), (plain.indptr(), plain.indices()));
            assert_eq!((fused.ids(), fused.degrees()), (plain.ids(), plain.degrees()));
            assert_eq!(fused.weights(), plain.weights());
        }
    }
}

#[test]
fn seeds_of_two_types_have_the_neighbors_of_each_alone() {
    let (graph, key, mut scratch) = (graph(), Key::new(4), HeteroScratch::new());
    let types = ["user", "item"].map(|name| graph.schema().node_type(name).unwrap());
    let seeds = [&[5u32, 1, 9][..], &[2, 0]];
    for rule in RULES.into_iter().filter(|rule| *rule != Rule::Labor) {
        let sampler = sampler(&graph, rule);
        let both = [(types[0], seeds[0]), (types[1], seeds[1])];
        let batch = sampler.sample_types(&both, key, &mut scratch).unwrap();
        assert_eq!(batch.targets, [(types[0], vec![0, 1, 2]), (types[1], vec![0, 1])]);
        let rows = batch.fuse(&graph).unwrap().targets;
        assert_eq!(rows.iter().collect::<HashSet<_>>().len(), 5);
        for (node_type, seeds) in both {
            let name = &graph.schema().node_types()[node_type];
            let alone = sampler.sample(name, seeds, key, &mut scratch).unwrap();
            assert_eq!(heard(&batch, node_type), heard(&alone, node_type), "{rule:?}");
        }
    }
    let twice = [(types[0], seeds[0]), (types[0], seeds[1])];
    let error = sampler(&graph, Rule::Uniform).sample_types(&twice, key, &mut scratch);
    assert!(error.unwrap_err().to_string().contains("duplicate seeds of type 'user'"));
}

/// For each seed of a type whom it hears over each edge type.
fn heard(batch: &HeteroBatch, node_type: usize) -> Vec<Vec<(usize, u64)>> {
    let last = &batch.blocks[batch.blocks.len() - 1];
    let of = |dst: usize| {
        let relations = last.relations().iter().enumerate();
        let relations = relations.filter(|(e, _)| batch.schema.ends(*e).1 == node_type);
        let sources = relations.flat_map(|(e, relation)| {
            let ids = &batch.ids[batch.schema.ends(e).0];
            relation.sources(dst).iter().map(move |&src| (e, ids[src as usize]))
        });
        sources.collect()
    };
    (0..last.num_dst()[node_type]).map(of).collect()
}

#[test]
fn fused_blocks_hold_the_edges_of_all_types() {
    for_each_batch(|graph, _, batch| {
        let fused = batch.fuse(graph).unwrap();
        // Type and node of each row.
        let rows: Vec<(usize, usize)> = (fused.segments.iter())
            .flat_map(|s| s.nodes.clone().map(|node| (s.node_type, node)))
            .collect();
        assert_eq!(rows.len(), batch.input_nodes.iter().map(Vec::len).sum::<usize>());
        assert_eq!(rows.iter().collect::<HashSet<_>>().len(), rows.len());
        let (seed_type, seeds) = &batch.targets[0];
        for (&target, &seed) in fused.targets.iter().zip(seeds) {
            assert_eq!(rows[target as usize], (*seed_type, seed as usize));
        }
        let ids = fused.blocks[0].block.ids();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        for (fused, typed) in fused.blocks.iter().zip(&batch.blocks) {
            let block = &fused.block;
            assert_eq!(block.num_src(), typed.num_src().iter().sum::<usize>());
            assert_eq!(block.num_dst(), typed.num_dst().iter().sum::<usize>());
            assert_eq!(block.num_edges(), typed.num_edges());
            let mut met: Vec<usize> = vec![0; 5];
            for dst in 0..block.num_dst() {
                let list = block.indptr()[dst] as usize..block.indptr()[dst + 1] as usize;
                assert!(fused.edge_types[list.clone()].is_sorted());
                for edge in list {
                    let edge_type = usize::from(fused.edge_types[edge]);
                    let (src_type, dst_type) = batch.schema.ends(edge_type);
                    let (relation, at) =
                        (&typed.relations()[edge_type], fused.edges[edge] as usize);
                    let src = relation.indices()[at] as usize;
                    assert_eq!(rows[block.indices()[edge] as usize], (src_type, src));
                    assert_eq!(rows[dst].0, dst_type);
                    assert!(relation.indptr()[rows[dst].1] as usize <= at);
                    assert!(at < relation.indptr()[rows[dst].1 + 1] as usize);
                    assert_eq!(block.weights().unwrap()[edge], relation.weights().unwrap()[at]);
                    met[edge_type] += 1;
                }
            }
            let expected: Vec<_> = typed.relations().iter().map(|r| r.num_edges()).collect();
            assert_eq!(met, expected);
        }
        let block = &fused.blocks[0].block;
        for (&(node_type, node), &degree) in rows.iter().zip(block.degrees()) {
            let node = batch.input_nodes[node_type][node];
            let into = (0..5).filter(|&e| batch.schema.ends(e).1 == node_type);
            assert_eq!(degree, into.map(|e| graph.csc(e).degree(node)).sum::<u32>());
        }
    });
}

fn write(out: &Path) -> Dataset {
    let mut writer = DatasetWriter::create(out, IdWidth::U32).unwrap();
    for (name, count) in NODES {
        writer.add_node_type(name, count as u64);
    }
    for (e, (name, _)) in EDGES.into_iter().enumerate() {
        let t = triple(name);
        let mut list = writer.edge_writer(&t, None).unwrap();
        let mut weights = writer.edge_column::<f32>(&t, "weight", &[]).unwrap();
        for (src, dst) in edges(e) {
            list.push(&[src.into()], &[dst.into()]).unwrap();
            weights.push(&[weight(e, src, dst)]).unwrap();
        }
        let mut columns = list.finish().unwrap();
        columns.push(weights.finish().unwrap());
        writer.add_edge_type(t, columns);
    }
    writer.finish(Default::default()).unwrap()
}

/// Seeds' neighbors over each edge type, in dataset ids.
fn neighbors(batch: &HeteroBatch) -> Vec<Vec<(u64, u64)>> {
    let of = |(e, relation): (usize, &gnarl_sample::Relation)| {
        let (src, dst) = batch.schema.ends(e);
        let list = |row| {
            relation
                .sources(row)
                .iter()
                .map(move |&s| (batch.ids[src][s as usize], batch.ids[dst][row]))
        };
        (0..relation.num_dst()).flat_map(list).collect()
    };
    batch.blocks[0].relations().iter().enumerate().map(of).collect()
}

#[test]
fn datasets_and_their_parts_draw_what_the_graph_does() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("whole"));
    let config = PartitionConfig {
        algorithm: "random".into(),
        parts: Parts::Count(3),
        layout: PartLayout::EdgeCut,
        ..Default::default()
    };
    let parts = partition_dataset(&dataset, &config, &dir.path().join("parts")).unwrap().0;
    let (memory, whole) = (graph(), HeteroSampleGraph::open(&dataset).unwrap());
    whole.verify().unwrap();
    let fanouts = HeteroFanouts::new(&[3]);
    for part in 0..3 {
        let part = HeteroSampleGraph::open(&parts.part(part).unwrap()).unwrap();
        part.verify().unwrap();
        for (rule, node_type) in RULES.into_iter().flat_map(|rule| (0..4).map(move |t| (rule, t))) {
            let name = NODES[node_type].0;
            let own: Vec<u32> = (0..part.core(node_type) as u32).collect();
            let ids: Vec<u32> = own.iter().map(|&v| part.id(node_type, v) as u32).collect();
            let draw = |graph, seeds: &[u32]| {
                let sampler = HeteroSampler::new(graph, &fanouts, rule).unwrap();
                sampler.sample(name, seeds, Key::new(4), &mut HeteroScratch::new()).unwrap()
            };
            let (in_part, in_whole) = (draw(&part, &own), draw(&whole, &ids));
            assert_eq!(neighbors(&in_part), neighbors(&in_whole), "{} of {name}", rule.name());
            assert_eq!(contents(&in_whole), contents(&draw(&memory, &ids)));
            for (a, b) in in_part.blocks[0].relations().iter().zip(in_whole.blocks[0].relations()) {
                assert_eq!((a.degrees(), a.weights()), (b.degrees(), b.weights()));
            }
            let [a, b] = [(&in_part, &part), (&in_whole, &whole)].map(|(b, g)| b.fuse(g).unwrap());
            let (a, b) = (&a.blocks[0].block, &b.blocks[0].block);
            assert_eq!((a.ids(), a.degrees()), (b.ids(), b.degrees()));
        }
    }
}
