//! What `knot` promises beyond the conformance suite: several loads balanced, little cut.

use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::{EdgeStream, MemoryEdges, for_each_edge};
use gnarl_partition::{
    Assignment, Constraint, Grem, Knot, Metis, PartitionOptions, VertexPartitioner,
};

/// `groups` communities of 500 nodes, some nodes with many more edges than others, every fifth
/// edge to anywhere; the last tenth of the nodes has no edges.
fn communities(groups: u64) -> MemoryEdges {
    let (nodes, key) = (500 * groups, Key::new(4));
    let end = |i: u64, from: u64, range: u64| {
        from + key.with(i).below(0, range).min(key.with(i).below(1, range))
    };
    let edges = (0..6 * nodes).flat_map(move |i| {
        let group = 500 * key.with(i).below(2, groups);
        let u = end(3 * i, group, 500);
        let v = if i % 5 == 0 { end(3 * i + 1, 0, nodes) } else { end(3 * i + 2, group, 500) };
        [(u, v), (v, u)]
    });
    MemoryEdges::new(nodes + nodes / 9, edges.collect::<Vec<_>>()).unwrap()
}

fn cut(edges: &MemoryEdges, of: &[u16]) -> u64 {
    let mut cut = 0;
    for_each_edge(&mut edges.clone(), &mut |u, v| {
        cut += u64::from(of[u as usize] != of[v as usize]);
    })
    .unwrap();
    cut
}

fn largest_over_mean(loads: &[u64]) -> f64 {
    let total: u64 = loads.iter().sum();
    *loads.iter().max().unwrap() as f64 * loads.len() as f64 / total as f64
}

/// Largest over mean of nodes, in-edges and training nodes.
fn balances(edges: &MemoryEdges, result: &Assignment, train: &[u64]) -> [f64; 3] {
    let mut loads = vec![0; result.parts];
    for_each_edge(&mut edges.clone(), &mut |_, v| loads[result.of[v as usize] as usize] += 1)
        .unwrap();
    let mut trained = vec![0; result.parts];
    train.iter().for_each(|&v| trained[result.of[v as usize] as usize] += 1);
    [&result.sizes(), &loads, &trained].map(|loads| largest_over_mean(loads))
}

#[test]
fn nodes_edges_and_training_nodes_are_balanced_at_once() {
    let edges = communities(12);
    // Training nodes in a corner: a cut that looks at nodes alone gives them to few parts.
    let train: Vec<u64> = (0..2000).collect();
    for parts in [2, 3, 5, 8] {
        let options = PartitionOptions { parts, train: train.clone(), ..Default::default() };
        let result = Knot.partition(&mut edges.clone(), &options).unwrap();
        let found = balances(&edges, &result, &train);
        assert!(found.iter().all(|&b| b <= 1.051), "{parts} parts: {found:?}");
    }
}

#[test]
fn what_is_left_out_is_not_balanced() {
    let edges = communities(12);
    let train: Vec<u64> = (0..500).collect();
    let constraints = Some(vec![Constraint::Nodes]);
    let options = PartitionOptions { parts: 4, train, constraints, ..Default::default() };
    let result = Knot.partition(&mut edges.clone(), &options).unwrap();
    let [nodes, _, train] = balances(&edges, &result, &options.train);
    assert!(nodes <= 1.051 && train > 2.0, "{nodes} {train}");
    let options = PartitionOptions { constraints: Some(vec![Constraint::Test]), ..options };
    let error = Knot.partition(&mut edges.clone(), &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
}

/// Training nodes without edges would all go to the part of a community without training nodes.
#[test]
fn training_nodes_without_edges_do_not_overfill_a_part() {
    let edges = communities(12);
    let train = (500..edges.num_nodes()).collect();
    let constraints = Some(vec![Constraint::Nodes, Constraint::Edges]);
    let options = PartitionOptions { parts: 12, train, constraints, ..Default::default() };
    let found = Knot.partition(&mut edges.clone(), &options).unwrap();
    let [nodes, ..] = balances(&edges, &found, &options.train);
    assert!(nodes <= 1.051, "{nodes}");
}

#[test]
fn it_cuts_no_more_than_metis_does() {
    let edges = communities(12);
    for parts in [4, 6] {
        let options = PartitionOptions { parts, ..Default::default() };
        let run = |p: &dyn VertexPartitioner| p.partition(&mut edges.clone(), &options).unwrap();
        let (knot, metis) = (run(&Knot), run(&Metis));
        let (ours, theirs) = (cut(&edges, &knot.of), cut(&edges, &metis.of));
        assert!(ours as f64 <= 1.02 * theirs as f64, "{parts} parts: {ours} against {theirs}");
    }
}

#[test]
fn with_the_same_constraints_it_cuts_no_more_than_grem_and_metis() {
    let edges = communities(12);
    for constraints in [vec![Constraint::Nodes], vec![Constraint::Nodes, Constraint::Edges]] {
        for parts in [4, 6] {
            let constraints = Some(constraints.clone());
            let options = PartitionOptions { parts, constraints, ..Default::default() };
            let run = |p: &dyn VertexPartitioner| {
                let found = p.partition(&mut edges.clone(), &options).unwrap();
                cut(&edges, &found.of)
            };
            let [knot, grem, metis] = [&Knot as &dyn VertexPartitioner, &Grem, &Metis].map(run);
            assert!(knot <= grem && knot <= metis, "{parts} parts: {knot}, {grem}, {metis}");
        }
    }
}

/// Neither `grem` nor METIS has room, and lists are built a range at a time.
#[test]
fn little_memory_suffices() {
    let edges = communities(12);
    let memory = 60 * edges.num_nodes();
    let options = PartitionOptions { parts: 4, memory, ..Default::default() };
    assert_eq!(Grem.partition(&mut edges.clone(), &options).unwrap_err().kind(), Kind::Limit);
    let found = Knot.partition(&mut edges.clone(), &options).unwrap();
    let [nodes, in_edges, _] = balances(&edges, &found, &[]);
    assert!(nodes <= 1.051 && in_edges <= 1.051, "{nodes} {in_edges}");
    let random = edges.num_edges() as f64 * 0.75;
    assert!((cut(&edges, &found.of) as f64) < 0.5 * random);
    let options = PartitionOptions { memory: memory - 1, ..options };
    assert_eq!(Knot.partition(&mut edges.clone(), &options).unwrap_err().kind(), Kind::Limit);
}

/// Parts of hardly a node each.
#[test]
fn there_may_be_nearly_as_many_parts_as_nodes() {
    let ring: Vec<_> = (0..300).map(|v| (v, (v + 1) % 300)).collect();
    for edges in [communities(1), MemoryEdges::new(300, ring).unwrap()] {
        let nodes = edges.num_nodes() as usize;
        for parts in [nodes, nodes - 1, nodes / 2, nodes / 4] {
            let options = PartitionOptions { parts, ..Default::default() };
            let found = Knot.partition(&mut edges.clone(), &options).unwrap();
            let most = nodes.div_ceil(parts).max(105 * nodes / (100 * parts));
            let largest = *found.sizes().iter().max().unwrap();
            assert!(largest as usize <= most, "{parts} parts of {nodes} nodes: {largest}");
        }
    }
}

/// Large enough for passes of several pieces at once.
#[test]
fn partitions_do_not_depend_on_the_number_of_threads() {
    let edges = communities(220);
    // Each list has the out-edges, in both directions.
    assert!(edges.num_edges() > 1 << 20);
    let options = PartitionOptions { parts: 4, ..Default::default() };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Knot.partition(&mut edges.clone(), &options).unwrap().of)
    };
    let one = run(1);
    assert!(run(3) == one);
    assert!(
        cut(&edges, &one) < cut(&edges, &Grem.partition(&mut edges.clone(), &options).unwrap().of)
    );
}

#[test]
fn directed_and_repeated_edges_count_as_often_as_they_are_there() {
    // A path whose edges are there five times, but for the single ones every hundred nodes: cut
    // there, four parts are equal.
    let repeated = |v: u64| if v % 100 == 99 { 1 } else { 5 };
    let path = (0..399).flat_map(|v| std::iter::repeat_n((v, v + 1), repeated(v)));
    let edges = MemoryEdges::new(400, path.collect::<Vec<_>>()).unwrap();
    let options = PartitionOptions { parts: 4, ..Default::default() };
    let result = Knot.partition(&mut edges.clone(), &options).unwrap();
    assert_eq!(cut(&edges, &result.of), 3, "{:?}", result.of);
}

/// Components that shrink to single nodes have no edges left that could bring them together.
#[test]
fn components_stay_whole() {
    let ring = |c: u64| (0..6).map(move |i| (6 * c + i, 6 * c + (i + 1) % 6));
    let edges: Vec<_> = (0..3000).flat_map(ring).flat_map(|(u, v)| [(u, v), (v, u)]).collect();
    let edges = MemoryEdges::new(18_000, edges).unwrap();
    for parts in [4, 7] {
        let options = PartitionOptions { parts, ..Default::default() };
        let result = Knot.partition(&mut edges.clone(), &options).unwrap();
        assert_eq!(cut(&edges, &result.of), 0, "{parts} parts: {:?}", result.sizes());
        assert!(largest_over_mean(&result.sizes()) <= 1.051);
    }
}
