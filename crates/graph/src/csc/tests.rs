//! The builder against a sort in memory, with ranges forced small.

use std::path::Path;

use gnarl_common::Element;
use half::bf16;
use proptest::prelude::*;

use super::sort::LONG;
use super::*;
use crate::column::Column;
use crate::writer::ColumnWriter;

/// The expected result: sorted `(dst, src, row)`, deduplicated if required.
struct Reference {
    sorted: Vec<(u32, u32, u64)>,
    facts: EdgeFacts,
}

fn reference(n: u32, edges: &[(u32, u32)], coalesce: bool) -> Reference {
    let rows = edges.iter().enumerate();
    let mut sorted: Vec<_> = rows.map(|(row, &(s, d))| (d, s, row as u64)).collect();
    sorted.sort_unstable();
    let before = sorted.len();
    let mut distinct = sorted.clone();
    distinct.dedup_by_key(|e| (e.0, e.1));
    let duplicates = (before - distinct.len()) as u64;
    let pairs: std::collections::BTreeSet<_> = edges.iter().copied().collect();
    let symmetric = pairs.iter().all(|&(s, d)| pairs.contains(&(d, s)));
    if coalesce {
        sorted = distinct;
    }
    let degree = |v: u32| sorted.iter().filter(|e| e.0 == v).count() as u64;
    let facts = EdgeFacts {
        self_loops: sorted.iter().filter(|e| e.0 == e.1).count() as u64,
        duplicates,
        symmetric,
        without_in_edges: (0..n).filter(|&v| degree(v) == 0).count() as u64,
        max_in_degree: (0..n).map(degree).max().unwrap_or(0),
    };
    Reference { sorted, facts }
}

struct Case<'a> {
    n: u32,
    edges: &'a [(u32, u32)],
    keep_rows: bool,
    coalesce: bool,
    range_bytes: Option<u64>,
}

fn check<T: Id>(case: &Case<'_>) {
    let dir = tempfile::tempdir().unwrap();
    let column = |name: &str, ids: Vec<T>| {
        let mut writer = ColumnWriter::<T>::create(dir.path(), "e", name, &[]).unwrap();
        writer.push(&ids).unwrap();
        writer.finish().unwrap()
    };
    let src = column("src", case.edges.iter().map(|e| T::of(e.0.into())).collect());
    let dst = column("dst", case.edges.iter().map(|e| T::of(e.1.into())).collect());
    // Weights of 32 and of 16 bits.
    let rows = 0..case.edges.len() as u16;
    let weights = case.keep_rows.then(|| match size_of::<T>() {
        4 => column_of(dir.path(), rows.map(f32::from).collect()),
        _ => column_of(dir.path(), rows.map(bf16::from_bits).collect()),
    });
    let job = CscJob {
        dir: dir.path(),
        stem: "e",
        src: &src,
        dst: &dst,
        num_dst: case.n.into(),
        square: true,
        keep_rows: case.keep_rows,
        weights: weights.as_ref(),
        coalesce: case.coalesce,
        memory: 64 << 20,
        range_bytes: case.range_bytes,
        order: None,
    };
    let built = build::<T>(&job).unwrap();
    let expected = reference(case.n, case.edges, case.coalesce);
    assert_eq!(built.facts, expected.facts);
    assert_eq!(built.num_edges, expected.sorted.len() as u64);
    let open = |i: usize| Column::open(dir.path(), &built.columns[i]).unwrap();
    let indptr = open(0).values::<u32>().unwrap();
    let indices = open(1).values::<T>().unwrap();
    let mut found = Vec::new();
    for v in 0..case.n {
        for i in indptr[v as usize]..indptr[v as usize + 1] {
            found.push((v, indices[i as usize].wide() as u32));
        }
    }
    let pairs: Vec<_> = expected.sorted.iter().map(|e| (e.0, e.1)).collect();
    assert_eq!(found, pairs);
    if case.keep_rows {
        let rows: Vec<u64> = expected.sorted.iter().map(|e| e.2).collect();
        assert_eq!(open(2).ids().unwrap()[..], rows[..]);
        let weights: Vec<u64> = match size_of::<T>() {
            4 => open(3).values::<f32>().unwrap().iter().map(|&w| w as u64).collect(),
            _ => open(3).values::<bf16>().unwrap().iter().map(|&w| w.to_bits().into()).collect(),
        };
        assert_eq!(weights, rows);
    }
}

fn column_of<W: Element>(dir: &Path, weights: Vec<W>) -> ColumnSpec {
    let mut writer = ColumnWriter::create(dir, "e", "weight", &[]).unwrap();
    writer.push(&weights).unwrap();
    writer.finish().unwrap()
}

fn graphs() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
    (1u32..60).prop_flat_map(|n| (Just(n), prop::collection::vec((0..n, 0..n), 0..300)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_budget_gives_the_sorted_edges(
        (n, edges) in graphs(),
        range_bytes in prop::option::of(1u64..2000),
        keep_rows: bool,
        coalesce: bool,
        symmetrize: bool,
        wide: bool,
    ) {
        let mut edges = edges;
        if symmetrize {
            edges.extend(edges.clone().into_iter().map(|(s, d)| (d, s)));
        }
        let coalesce = coalesce && !keep_rows;
        let case = Case { n, edges: &edges, keep_rows, coalesce, range_bytes };
        if wide { check::<u64>(&case) } else { check::<u32>(&case) }
    }
}

#[test]
fn lists_are_sorted_by_all_threads_alike() {
    // More lists than one task sorts, and more edges than one chunk.
    let n = 3 * SORT_GRAIN as u32;
    let key = gnarl_common::rng::Key::new(2);
    let edges: Vec<(u32, u32)> = (0..CHUNK_EDGES as u64 + 999)
        .map(|i| (key.with(i).below(0, n.into()) as u32, key.with(i).below(1, n.into()) as u32))
        .collect();
    let in_memory = Csc::from_edges(n as usize, &edges);
    for range_bytes in [None, Some(70_000)] {
        let dir = tempfile::tempdir().unwrap();
        let column = |name: &str, ids: Vec<u32>| {
            let mut writer = ColumnWriter::<u32>::create(dir.path(), "e", name, &[]).unwrap();
            writer.push(&ids).unwrap();
            writer.finish().unwrap()
        };
        let job = CscJob {
            dir: dir.path(),
            stem: "e",
            src: &column("src", edges.iter().map(|e| e.0).collect()),
            dst: &column("dst", edges.iter().map(|e| e.1).collect()),
            num_dst: n.into(),
            square: true,
            keep_rows: false,
            weights: None,
            coalesce: false,
            memory: 64 << 20,
            range_bytes,
            order: None,
        };
        let built = build::<u32>(&job).unwrap();
        let open = |i: usize| Column::open(dir.path(), &built.columns[i]).unwrap();
        let offsets = in_memory.indptr.as_slice().range(0..n as usize + 1);
        assert!(offsets.eq(open(0).ids().unwrap().iter().copied()));
        assert_eq!(open(1).values::<u32>().unwrap()[..], in_memory.indices[..]);
        assert!(!built.facts.symmetric);
    }
}

#[test]
fn lists_ascend_by_the_key_of_their_sources_however_long() {
    // Own nodes before halo nodes, as in a part: both ascend by key, together they do not.
    let key = |s: u64| if s < 600 { 2 * s } else { 2 * (s - 600) + 1 };
    let keys: Vec<u64> = (0..1000).map(key).collect();
    let long = LONG as u64 + 17;
    let mut sources: Vec<u32> = (0..50 + long).map(|i| (i * i % 997) as u32).collect();
    let before = sources.clone();
    let offsets = [0, 50, 50 + long];
    let mut expected = before.clone();
    expected[..50].sort_by_key(|&s| keys[s as usize]);
    expected[50..].sort_by_key(|&s| keys[s as usize]);
    let mut none = Beside { rows: Vec::new(), weights: Vec::new() };
    sort_lists(&offsets, &mut sources, none.as_mut(), Some(&keys));
    assert_eq!(sources, expected);
    // Rows go with their sources, in their order where a source repeats.
    let mut beside = Beside { rows: (0..50 + long).collect(), weights: Vec::new() };
    let mut sources = before.clone();
    sort_lists(&offsets, &mut sources, beside.as_mut(), Some(&keys));
    let rows = beside.rows;
    assert_eq!(sources, expected);
    let moved = rows.iter().map(|&row| before[row as usize]);
    assert!(moved.eq(sources.iter().copied()));
    let twice = |w: &[usize]| sources[w[0]] != sources[w[1]] || rows[w[0]] < rows[w[1]];
    assert!((50..sources.len()).collect::<Vec<_>>().windows(2).all(twice));
}
