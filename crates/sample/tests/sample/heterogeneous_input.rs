//! What heterogeneous graphs and their sampler refuse, and the smallest they take.

use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Triple};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroFanouts, HeteroSampleGraph, HeteroSampler, HeteroScratch};

fn triple(name: &str) -> Triple {
    name.parse().unwrap()
}

#[test]
fn what_cannot_be_sampled_is_told() {
    let (t, back) = (triple("user:rates:item"), triple("item:rated_by:user"));
    let graph =
        HeteroSampleGraph::new().with_nodes("user", 3).unwrap().with_nodes("item", 2).unwrap();
    let graph = graph.with_edges(&t, Csc::from_edges(2, &[(0, 1), (2, 1)])).unwrap();
    let graph = graph.with_edges(&back, Csc::from_edges(3, &[(1, 0), (1, 2)])).unwrap();
    let make = |fanouts: &HeteroFanouts| {
        HeteroSampler::new(&graph, fanouts, Rule::Uniform).map(drop).unwrap_err()
    };
    for (fanouts, text) in [
        (HeteroFanouts::new(&[]), "at least one fan-out"),
        (HeteroFanouts::new(&[2, -2]), "invalid fan-out '-2' of edge type user:rates:item"),
        (HeteroFanouts::new(&[2]).with(t.clone(), &[2, 2]), "user:rates:item: expected 1, found 2"),
        (
            HeteroFanouts::new(&[2]).with(triple("user:rated:item"), &[1]),
            "unknown edge type 'user:rated:item'\nhint: there are: user:rates:item, item:rated_by",
        ),
    ] {
        let error = make(&fanouts);
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(text), "{error}");
    }
    let sampler = HeteroSampler::new(&graph, &HeteroFanouts::new(&[2]), Rule::Uniform).unwrap();
    let sample = |node_type: &str, seed| {
        let mut scratch = HeteroScratch::new();
        sampler.sample(node_type, &[seed], Key::new(1), &mut scratch).unwrap_err().to_string()
    };
    assert!(sample("user", 3).starts_with("seed 3 is not one of the 3 nodes of type 'user'"));
    assert!(sample("users", 0).contains("hint: there are: user, item"));
    let batch = sampler.sample("user", &[0], Key::new(1), &mut HeteroScratch::new()).unwrap();
    assert!(batch.fuse(&HeteroSampleGraph::new()).is_err());
}

#[test]
fn weights_are_asked_for_where_they_decide() {
    let (a, b) = (triple("v:a:v"), triple("v:b:v"));
    let lists = || Csc::from_edges(4, &[(1, 0), (2, 0), (3, 0)]);
    let graph =
        HeteroSampleGraph::new().with_nodes("v", 4).unwrap().with_edges(&a, lists()).unwrap();
    let graph = graph.with_edges(&b, lists()).unwrap();
    let graph = graph.with_weights(&a, vec![1.0, 0.0, 2.0].into()).unwrap();
    let make = |of_b: i64| {
        let fanouts = HeteroFanouts::new(&[2]).with(b.clone(), &[of_b]);
        HeteroSampler::new(&graph, &fanouts, Rule::Weighted)
    };
    let error = make(1).unwrap_err().to_string();
    assert!(
        error.starts_with("edge type v:b:v has no weights to sample by\nhint: take all"),
        "{error}"
    );
    let batch =
        make(-1).unwrap().sample("v", &[0], Key::new(1), &mut HeteroScratch::new()).unwrap();
    let relations = batch.blocks[0].relations();
    assert_eq!(relations.iter().map(|r| r.num_edges()).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(relations[0].weights(), Some(&[1.0, 2.0][..]));
    assert_eq!(relations[1].weights(), None);
    let fused = batch.fuse(&graph).unwrap();
    assert_eq!(fused.blocks[0].block.weights(), Some(&[1.0, 2.0, 1.0, 1.0, 1.0][..]));
}

#[test]
fn types_may_be_empty() {
    let t = triple("none:r:v");
    let graph = HeteroSampleGraph::new().with_nodes("v", 2).unwrap().with_nodes("none", 0).unwrap();
    let sample = |graph: &HeteroSampleGraph| {
        let sampler =
            HeteroSampler::new(graph, &HeteroFanouts::new(&[2, -1]), Rule::Uniform).unwrap();
        sampler.sample("v", &[1], Key::new(1), &mut HeteroScratch::new()).unwrap()
    };
    let without = sample(&graph);
    assert_eq!((without.num_edges(), without.blocks[0].relations().len()), (0, 0));
    assert_eq!(without.fuse(&graph).unwrap().blocks[1].block.num_dst(), 1);
    let graph = graph.with_edges(&t, Csc::from_edges(2, &[])).unwrap();
    let with = sample(&graph);
    assert_eq!(with.blocks[0].relations()[0].indptr(), [0, 0]);
    assert_eq!(with.input_nodes, [vec![1], vec![]]);
}

#[test]
fn wrong_graphs_are_told() {
    let graph = || HeteroSampleGraph::new().with_nodes("v", 3).unwrap().with_nodes("w", 2).unwrap();
    let csc = || Csc::from_edges(3, &[(1, 0)]);
    let text =
        |result: gnarl_common::Result<HeteroSampleGraph>| result.map(drop).unwrap_err().to_string();
    assert_eq!(text(graph().with_nodes("v", 1)), "duplicate node type 'v'");
    let error = text(graph().with_edges(&triple("x:r:v"), csc()));
    assert_eq!(error, "edge type x:r:v: unknown node type 'x'\nhint: there are: v, w");
    let error = text(graph().with_edges(&triple("v:r:w"), csc()));
    assert!(error.starts_with("edge type v:r:w: 2 destination nodes"), "{error}");
    let twice = graph().with_edges(&triple("w:r:v"), csc()).unwrap();
    let error = text(twice.clone().with_edges(&triple("w:r:v"), csc()));
    assert_eq!(error, "duplicate edge type 'w:r:v'");
    let error = text(twice.with_weights(&triple("w:r:v"), Vec::<f32>::new().into()));
    assert!(error.starts_with("edge type w:r:v: 0 edge weights"), "{error}");
    let error = text(graph().with_part_nodes("p", vec![4u64, 7].into(), 3));
    assert_eq!(error, "3 core nodes of type 'p' in a part that has 2");

    // A source that the type does not have.
    let t = triple("w:r:v");
    let outside = graph().with_edges(&t, Csc::from_edges(3, &[(2, 0)])).unwrap();
    assert!(outside.verify().unwrap_err().to_string().starts_with("edge type w:r:v: "));
    for rule in [Rule::Uniform, Rule::Labor, Rule::Exact] {
        let sampler = HeteroSampler::new(&outside, &HeteroFanouts::new(&[1]), rule).unwrap();
        let error = sampler.sample("v", &[0], Key::new(1), &mut HeteroScratch::new()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("sampling edge type w:r:v: in-neighbor lists: source 2"), "{error}");
    }
}
