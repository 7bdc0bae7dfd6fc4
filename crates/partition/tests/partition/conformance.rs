//! What every partitioner must do.

use crate::graphs::{Claimed, graphs};
use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::{EdgeStream, MemoryEdges, for_each_edge};
use gnarl_partition::{
    Assignment, Constraint, PartitionOptions, VertexPartitioner, by_name, registry, vertex_cut,
};

fn options(parts: usize, nodes: u64) -> PartitionOptions {
    PartitionOptions { parts, seed: 3, train: (0..nodes / 3).collect(), ..Default::default() }
}

fn partition(p: &dyn VertexPartitioner, edges: &MemoryEdges, parts: usize) -> Assignment {
    let options = options(parts, edges.num_nodes());
    p.partition(&mut edges.clone(), &options).unwrap()
}

#[test]
fn every_node_has_one_part_within_the_balance() {
    for (what, edges) in graphs() {
        for p in registry() {
            for parts in [1, 2, 3, 4, 8] {
                let result = partition(&*p, &edges, parts);
                let nodes = edges.num_nodes();
                assert_eq!((result.parts, result.of.len() as u64), (parts, nodes));
                let sizes = result.sizes();
                let mean = nodes as f64 / parts as f64;
                // Streams of clusters balance to one cluster, METIS near its tolerance; owners are
                // bound to the parts that have their edges.
                let bound = match p.name() {
                    "random" | "range" => mean.ceil(),
                    "grem" | "ldg" | "fennel" => mean.ceil().max((1.05 * mean).floor()),
                    "metis" => 1.35 * mean + 2.0,
                    "knot" => (1.05 * mean).floor().max(mean.ceil()),
                    name if vertex_cut::by_name(name).is_ok() => 3.0 * mean + 2.0,
                    _ => mean + (1.05 * mean).max(1.0),
                };
                let largest = *sizes.iter().max().unwrap() as f64;
                assert!(largest <= bound, "{}, {what}: {sizes:?}", p.name());
            }
        }
    }
}

#[test]
fn equal_sizes_differ_by_at_most_one() {
    for (_, edges) in graphs() {
        for p in registry().iter().filter(|p| ["random", "range"].contains(&p.name())) {
            let sizes = partition(&**p, &edges, 7).sizes();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_or_runs() {
    for (what, edges) in graphs() {
        for p in registry() {
            let first = partition(&*p, &edges, 4);
            for threads in [1, 2, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let again = pool.install(|| partition(&*p, &edges, 4));
                assert_eq!(first, again, "{}, {what}, {threads} threads", p.name());
            }
        }
    }
}

#[test]
fn as_many_parts_as_nodes_are_possible() {
    let edges = MemoryEdges::new(6, [(0, 1), (1, 2), (3, 4)]).unwrap();
    for p in registry() {
        let result = p.partition(&mut edges.clone(), &options(6, 6)).unwrap();
        assert!(result.of.iter().all(|&part| part < 6), "{}", p.name());
    }
}

#[test]
fn impossible_requests_are_refused() {
    let edges = MemoryEdges::new(6, [(0, 1), (1, 2), (3, 4)]).unwrap();
    let empty = MemoryEdges::new(0, []).unwrap();
    for p in registry() {
        let refuse = |edges: &MemoryEdges, options: PartitionOptions| {
            p.partition(&mut edges.clone(), &options).unwrap_err().kind()
        };
        assert_eq!(refuse(&edges, options(0, 6)), Kind::Usage);
        assert_eq!(refuse(&edges, options(7, 6)), Kind::Usage);
        assert_eq!(refuse(&empty, options(1, 0)), Kind::InvalidInput);
        assert_eq!(refuse(&edges, PartitionOptions { balance: 0.5, ..options(2, 6) }), Kind::Usage);
    }
}

#[test]
fn communities_are_found() {
    // Four cliques of 16 on a ring of single edges.
    let clique = |c: u64| (0..16).flat_map(move |i| (0..i).map(move |j| (16 * c + i, 16 * c + j)));
    let bridges = (0..4).map(|c| (16 * c, 16 * ((c + 1) % 4) + 1));
    let edges: Vec<_> = (0..4).flat_map(clique).chain(bridges).collect();
    let edges: Vec<_> = edges.into_iter().flat_map(|(u, v)| [(u, v), (v, u)]).collect();
    let stream = MemoryEdges::new(64, edges.clone()).unwrap();
    for p in registry().iter().filter(|p| ["knot", "spring", "grem", "metis"].contains(&p.name())) {
        // Without training nodes, whose balance would work against the cliques.
        let options = PartitionOptions { train: Vec::new(), ..options(4, 64) };
        let result = p.partition(&mut stream.clone(), &options).unwrap();
        let cut = edges.iter().filter(|&&(u, v)| result.of[u as usize] != result.of[v as usize]);
        assert!(cut.count() <= 8, "{}: {:?}", p.name(), result.of);
        assert_eq!(result.sizes(), [16; 4], "{}", p.name());
    }
}

#[test]
fn graphs_beyond_memory_or_index_width_are_refused() {
    let bounded = ["knot", "spring", "grem", "metis", "ldg", "fennel"];
    for p in registry().iter().filter(|p| bounded.contains(&p.name())) {
        for memory in [1 << 30, u64::MAX] {
            let options = PartitionOptions { memory, ..Default::default() };
            let error = p.partition(&mut Claimed(1 << 33), &options).unwrap_err();
            assert_eq!(error.kind(), Kind::Limit, "{error}");
        }
    }
}

/// Nodes, in-edges and training nodes of the largest part over the mean.
fn imbalances(edges: &MemoryEdges, result: &Assignment, train: &[u64]) -> [f64; 3] {
    let mut into = vec![0; result.parts];
    for_each_edge(&mut edges.clone(), &mut |_, v| into[result.of[v as usize] as usize] += 1)
        .unwrap();
    let mut trained = vec![0; result.parts];
    train.iter().for_each(|&v| trained[result.of[v as usize] as usize] += 1);
    [result.sizes(), into, trained].map(|loads| {
        let total: u64 = loads.iter().sum();
        *loads.iter().max().unwrap() as f64 * result.parts as f64 / total as f64
    })
}

#[test]
fn grem_balances_edges_of_power_law_graphs_and_splits_on_request() {
    let key = Key::new(5);
    // A fifth of all edges lead to 60 of 3000 nodes, every other node has none.
    let node = |i: u64, n: f64| (key.unit(i).powi(2) * n) as u64 * 2;
    let edges = (0..40_000).map(|i| (node(2 * i, 1500.0), node(2 * i + 1, 1500.0)));
    let edges = MemoryEdges::new(3000, edges).unwrap();
    let grem = by_name("grem").unwrap();
    for (parts, passes) in [(2, 4), (3, 2), (8, 4), (20, 4), (4, 1)] {
        let constraints = (passes == 1).then_some(vec![Constraint::Edges]);
        let options = PartitionOptions { passes, constraints, ..options(parts, 3000) };
        let result = grem.partition(&mut edges.clone(), &options).unwrap();
        let [nodes, into, _] = imbalances(&edges, &result, &options.train);
        assert!(nodes <= 1.05 && into <= 1.055, "{parts} parts: {nodes}, {into}");
        assert_eq!(grem.partition(&mut edges.clone(), &options).unwrap(), result);
        let all = vec![Constraint::Edges, Constraint::Train];
        let options = PartitionOptions { constraints: Some(all), ..options };
        let result = grem.partition(&mut edges.clone(), &options).unwrap();
        let found = imbalances(&edges, &result, &options.train);
        assert!(found.iter().all(|&b| b <= 1.055), "{parts} parts: {found:?}");
        let options = PartitionOptions { constraints: Some(vec![Constraint::Nodes]), ..options };
        let result = grem.partition(&mut edges.clone(), &options).unwrap();
        assert!(imbalances(&edges, &result, &options.train)[0] <= 1.05);
    }
}

#[test]
fn a_hub_beyond_a_part_breaks_nothing() {
    // All of 400 nodes lead to the first; a ring besides.
    let ring = (0..400).map(|v| (v, (v + 1) % 400));
    let edges = MemoryEdges::new(400, ring.chain((1..400).map(|v| (v, 0)))).unwrap();
    for constraints in [None, Some(vec![Constraint::Edges, Constraint::Train])] {
        let options = PartitionOptions { constraints, ..options(8, 400) };
        let result = by_name("grem").unwrap().partition(&mut edges.clone(), &options).unwrap();
        assert!(result.sizes().iter().all(|&size| size <= 52), "{:?}", result.sizes());
    }
}
