//! Orders, caches, budgets and ranks change no row.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};
use gnarl_engine::{Communicator, local};
use gnarl_infer::order::NodeOrder;
use gnarl_infer::rows::{Before, Cache};
use gnarl_infer::{
    Budget, EvenOwners, Inference, LayerFolder, Layers, Owners, PartOwners, Parts, Peers,
};
use gnarl_nn::Tensor;

/// Two types of nodes with lists of any type: hubs, isolated nodes, and edges given several times. A layer adds the rows of
/// a list to twice the own one; the first rows are made of numbers.
struct Sums {
    lists: Vec<Vec<Vec<(usize, u32)>>>,
    layers: usize,
    /// Ranges until a computation fails.
    left: AtomicUsize,
}

const WIDTH: usize = 3;

impl Sums {
    fn random(seed: u64, nodes: [usize; 2], edges: usize, layers: usize) -> Self {
        let key = Key::new(seed);
        let mut lists = nodes.map(|n| vec![Vec::new(); n]).to_vec();
        for edge in 0..edges as u64 {
            let draw = |of: u64, below: usize| key.with(of).below(edge, below as u64) as usize;
            let (from, to) = (draw(0, 2), draw(1, 2));
            // One node in eight is isolated, another receives a fifth of all edges.
            let source = draw(2, nodes[from]);
            let target = if draw(4, 5) == 0 { 1 } else { draw(3, nodes[to].div_ceil(8) * 7) };
            let target = target.min(nodes[to] - 1);
            lists[to][target].push((from, source as u32));
            if draw(5, 10) == 0 {
                lists[to][target].push((from, source as u32));
            }
        }
        Self { lists, layers, left: AtomicUsize::new(usize::MAX) }
    }

    fn first(of: usize, node: u32) -> [f32; WIDTH] {
        std::array::from_fn(|i| Key::new(of as u64).normal(u64::from(node) * 8 + i as u64) as f32)
    }

    /// The rows of all nodes, computed at once.
    fn expected(&self) -> Vec<Vec<[f32; WIDTH]>> {
        let first = |(of, lists): (usize, &Vec<_>)| {
            (0..lists.len() as u32).map(|node| Self::first(of, node)).collect()
        };
        let mut rows: Vec<Vec<[f32; WIDTH]>> = self.lists.iter().enumerate().map(first).collect();
        for _ in 0..self.layers {
            let next = |(of, lists): (usize, &Vec<Vec<(usize, u32)>>)| {
                let of_node = |(node, list): (usize, &Vec<(usize, u32)>)| {
                    let mut sum = rows[of][node].map(|x| 2.0 * x);
                    for &(from, source) in list {
                        let row = rows[from][source as usize];
                        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                    }
                    sum
                };
                lists.iter().enumerate().map(of_node).collect()
            };
            rows = self.lists.iter().enumerate().map(next).collect();
        }
        rows
    }
}

impl Layers for Sums {
    type Inputs = Vec<f32>;
    type Scratch = ();

    fn num_layers(&self) -> usize {
        self.layers
    }

    fn num_nodes(&self) -> Vec<usize> {
        self.lists.iter().map(Vec::len).collect()
    }

    fn inputs_of(
        &self,
        _: usize,
        of: usize,
        nodes: &[u32],
        visit: &mut dyn FnMut(usize, u32),
    ) -> Result<()> {
        for &node in nodes {
            visit(of, node);
            self.lists[of][node as usize].iter().for_each(|&(from, source)| visit(from, source));
        }
        Ok(())
    }

    fn num_inputs(&self, _: usize, of: usize, node: u32) -> usize {
        1 + self.lists[of][node as usize].len()
    }

    fn range_bytes(&self, layer: usize, of: usize, node: u32) -> usize {
        4 * WIDTH * self.num_inputs(layer, of, node)
    }

    fn gather(
        &self,
        _: usize,
        of: usize,
        nodes: &[u32],
        before: Option<&Before>,
        (): &mut (),
    ) -> Result<Vec<f32>> {
        let row = |of: usize, node: u32| -> Result<Vec<f32>> {
            match before {
                Some(before) => Ok(before.gather(of, &[node])?.data().to_vec()),
                None => Ok(Self::first(of, node).to_vec()),
            }
        };
        let mut out = Vec::new();
        for &node in nodes {
            let mut sum: Vec<f32> = row(of, node)?.iter().map(|x| 2.0 * x).collect();
            for &(from, source) in &self.lists[of][node as usize] {
                sum.iter_mut().zip(row(from, source)?).for_each(|(sum, x)| *sum += x);
            }
            out.extend(sum);
        }
        Ok(out)
    }

    fn compute(&self, _: usize, inputs: Vec<f32>) -> Result<Tensor> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(Error::invalid("the power is gone"));
        }
        Ok(Tensor::from_vec(inputs.len() / WIDTH, WIDTH, inputs))
    }
}

/// The rows that the first rank is given, in the order they are handed over.
type Found = Vec<(usize, u32, [f32; WIDTH])>;

fn collect(inference: &Inference<'_>, graph: &Sums, wanted: &[(usize, Vec<u32>)]) -> Result<Found> {
    let mut found = Vec::new();
    inference.run(graph, wanted, |of, nodes, rows| {
        let rows = nodes.iter().enumerate().map(|(i, &node)| (of, node, rows.row(i)));
        found.extend(rows.map(|(of, node, row)| (of, node, row.try_into().unwrap())));
        Ok(())
    })?;
    Ok(found)
}

fn wanted_of(graph: &Sums, step: usize) -> Vec<(usize, Vec<u32>)> {
    let of = |(of, n): (usize, usize)| (of, (0..n as u32).step_by(step).collect());
    graph.num_nodes().into_iter().enumerate().map(of).collect()
}

fn parts(graph: &Sums, count: u64) -> Vec<Arc<[u32]>> {
    let of = |(of, n): (usize, usize)| {
        (0..n as u64).map(|node| Key::new(77 + of as u64).below(node, count) as u32).collect()
    };
    graph.num_nodes().into_iter().enumerate().map(of).collect()
}

#[test]
fn rows_do_not_depend_on_the_course() {
    for (seed, nodes) in [(1, [60, 45]), (2, [3, 200]), (3, [1, 1])] {
        let graph = Sums::random(seed, nodes, 400, 3);
        let all = graph.expected();
        let part = parts(&graph, 5);
        let some: Parts = part.iter().cloned().map(Some).collect();
        for step in [1, 7] {
            let wanted = wanted_of(&graph, step);
            let rows = |(of, nodes): &(usize, Vec<u32>)| {
                let row = |&node: &u32| (*of, node, all[*of][node as usize]);
                nodes.iter().map(row).collect::<Vec<_>>()
            };
            let expected: Found = wanted.iter().flat_map(rows).collect();
            let budgets = [Budget::new(1 << 24), Budget::new(700)];
            let caches = [None, Some("fifo:10%"), Some("lru:40%"), Some("clockpro:100B")];
            for budget in &budgets {
                for (order, cache) in NodeOrder::ALL.iter().flat_map(|o| caches.map(|c| (*o, c))) {
                    let cache = cache.map(|text| {
                        let chunk_rows = 4.try_into().unwrap();
                        Cache { chunk_rows, ..text.parse().unwrap() }
                    });
                    let inference =
                        Inference::within(budget).with_order(order, some.clone()).with_cache(cache);
                    let alone = collect(&inference, &graph, &wanted).unwrap();
                    assert_eq!(alone, expected, "{order} {cache:?}");
                    let even =
                        |size| EvenOwners::new(&graph.num_nodes(), size, |_, node| node.into());
                    let owners: [(usize, Box<dyn Owners>); 2] = [
                        (3, Box::new(even(3))),
                        (2, Box::new(PartOwners::new(part.clone(), 5, 2))),
                    ];
                    for (size, owners) in owners {
                        let given = by_ranks((size, &*owners), &inference, (&graph, &wanted));
                        assert_eq!(given[0], expected, "{order} {cache:?} {size} ranks");
                        assert!(given[1..].iter().all(Vec::is_empty), "the first rank has all");
                    }
                }
            }
        }
    }
}

/// What each of some ranks is given.
fn by_ranks(
    (size, owners): (usize, &dyn Owners),
    inference: &Inference<'_>,
    (graph, wanted): (&Sums, &[(usize, Vec<u32>)]),
) -> Vec<Found> {
    local::run(size, Duration::from_secs(60), |rank| {
        let peers = Peers::new(rank as &dyn Communicator, owners);
        collect(&inference.clone().with_peers(Some(peers)), graph, wanted)
    })
    .unwrap()
}

#[test]
fn figures_count_what_all_ranks_did() {
    let graph = Sums::random(9, [300, 100], 3000, 2);
    let wanted = wanted_of(&graph, 1);
    let budget = Budget::new(1 << 20);
    let alone = Inference::within(&budget).run(&graph, &wanted, |_, _, _| Ok(())).unwrap();
    let owners = EvenOwners::new(&graph.num_nodes(), 3, |_, _| 1);
    let all = local::run(3, Duration::from_secs(60), |rank| {
        let peers = Peers::new(rank as &dyn Communicator, &owners);
        Inference::within(&budget).with_peers(Some(peers)).run(&graph, &wanted, |_, _, _| Ok(()))
    })
    .unwrap();
    for figures in &all {
        for (found, alone) in figures.layers.iter().zip(&alone.layers) {
            assert_eq!((found.nodes, found.inputs), (alone.nodes, alone.inputs));
            assert_eq!(found.hubs, alone.hubs);
            assert!(found.hubs.len() == 10 && found.hubs.is_sorted_by(|a, b| a.inputs >= b.inputs));
        }
    }
    // Rows of other ranks come once for each rank that reads them, before the last layer.
    let fetched = all[0].layers[0].fetched;
    assert!(fetched > 0 && fetched <= 2 * 400 * 4 * WIDTH as u64, "{fetched}");
    assert_eq!(all[0].layers[1].fetched, 0);
}

#[test]
fn chunks_are_read_once_for_each_range_or_come_from_the_cache() {
    let graph = Sums::random(4, [400, 1], 3000, 2);
    let wanted = wanted_of(&graph, 1);
    let count = |cache: &str| {
        let cache = Cache { chunk_rows: 16.try_into().unwrap(), ..cache.parse().unwrap() };
        let inference = Inference::within(&Budget::new(1 << 20)).with_cache(Some(cache));
        let figures = inference.run(&graph, &wanted, |_, _, _| Ok(())).unwrap();
        figures.layers[1].chunks
    };
    let (all, few) = (count("lru:100%"), count("lru:5%"));
    assert_eq!(all.total(), few.total(), "reads do not depend on the cache");
    assert_eq!(all.misses, 400u64.div_ceil(16) + 1, "with room for all, each is read once");
    assert!(few.misses > 2 * all.misses && few.hits > 0, "{few}");
}

#[test]
fn a_rank_that_fails_ends_the_others() {
    let graph = Sums::random(5, [100, 50], 500, 2);
    let wanted = wanted_of(&graph, 1);
    let owners = EvenOwners::new(&graph.num_nodes(), 3, |_, _| 1);
    let kept = Mutex::new(0);
    let failed = local::run(3, Duration::from_secs(60), |rank| {
        let peers = Peers::new(rank as &dyn Communicator, &owners);
        let inference = Inference::within(&Budget::new(1 << 20)).with_peers(Some(peers));
        inference.run(&graph, &wanted, |_, nodes, _| {
            *kept.lock().unwrap() += nodes.len();
            Err(Error::invalid("the disk is full"))
        })
    });
    assert!(failed.unwrap_err().to_string().contains("the disk is full"));
    assert!(*kept.lock().unwrap() > 0);
}

/// The inference of `graph` by `size` ranks, whose rows are kept in `folder`.
fn kept(
    (graph, wanted): (&Sums, &[(usize, Vec<u32>)]),
    (size, cache): (usize, Option<Cache>),
    folder: &LayerFolder,
) -> Result<Found> {
    let owners =
        EvenOwners::new(&graph.num_nodes(), size, |of, node| graph.num_inputs(0, of, node) as u64);
    let inference = Inference::within(&Budget::new(900))
        .with_order(NodeOrder::Degree, Parts::new())
        .with_cache(cache)
        .kept_in(Some(folder.clone()));
    if size == 1 {
        return collect(&inference, graph, wanted);
    }
    let mut all = local::run(size, Duration::from_secs(60), |rank| {
        let peers = Peers::new(rank as &dyn Communicator, &owners);
        collect(&inference.clone().with_peers(Some(peers)), graph, wanted)
    })?;
    Ok(all.swap_remove(0))
}

#[test]
fn an_interrupted_inference_goes_on_from_what_it_kept() {
    let graph = Sums::random(6, [80, 60], 900, 3);
    let wanted = wanted_of(&graph, 3);
    let expected = collect(&Inference::within(&Budget::new(1 << 20)), &graph, &wanted).unwrap();
    let cache: Cache = "lru:30%".parse().unwrap();
    for (size, cache) in [(1, None), (1, Some(cache)), (3, None), (2, Some(cache))] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("layers");
        let place = LayerFolder::new(&folder, "of a test").recording_every(Duration::ZERO);
        let inference = ((&graph, &wanted[..]), (size, cache));
        let mut crashes = 0;
        let found = loop {
            // Later and later, so that some progress is made whatever is lost.
            graph.left.store(5 + 2 * crashes, Ordering::Relaxed);
            let found = kept(inference.0, inference.1, &place);
            match found {
                Ok(found) => break found,
                Err(e) => assert!(e.to_string().contains("the power is gone"), "{e}"),
            }
            crashes += 1;
            assert!(crashes < 100, "no progress is made");
        };
        graph.left.store(usize::MAX, Ordering::Relaxed);
        assert!(found == expected, "{size} ranks");
        assert!(crashes > 3, "{size} ranks: {crashes} crashes");
        // Finished rows are handed over again without computing any.
        graph.left.store(0, Ordering::Relaxed);
        assert!(kept(inference.0, inference.1, &place).unwrap() == expected);
        graph.left.store(usize::MAX, Ordering::Relaxed);
        let other = kept(inference.0, inference.1, &LayerFolder::new(&folder, "another"));
        let error = other.unwrap_err();
        assert!(error.to_string().contains("rows of another inference: of a test"), "{error}");
        assert_eq!(error.kind(), Kind::Usage);
        std::fs::write(folder.join("notes.txt"), "mine").unwrap();
        LayerFolder::remove(&folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "files of others stay");
    }
}

#[test]
fn damaged_rows_are_named() {
    let graph = Sums::random(7, [80, 1], 500, 3);
    let wanted = wanted_of(&graph, 1);
    let dir = tempfile::tempdir().unwrap();
    let place = LayerFolder::new(dir.path(), "of a test").recording_every(Duration::ZERO);
    let run = || kept((&graph, &wanted), (1, None), &place);
    graph.left.store(graph.num_nodes()[0] / 4, Ordering::Relaxed);
    run().unwrap_err();
    graph.left.store(usize::MAX, Ordering::Relaxed);
    let rows = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.path());
    let rows = rows.filter(|path| path.extension().is_some_and(|of| of == "rows")).max().unwrap();
    let whole = std::fs::read(&rows).unwrap();
    let mut flipped = whole.clone();
    flipped[2] ^= 1;
    for (bytes, why) in [(&whole[..4], "is too short"), (&flipped[..], "its checksum")] {
        std::fs::write(&rows, bytes).unwrap();
        let error = run().unwrap_err().to_string();
        let name = rows.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            error.contains(why) && error.contains(&name) && error.contains("begin anew"),
            "{error}"
        );
    }
}
