//! Features of files that exceed memory: the rows that are in the file, whatever their type and the memory for them.

use std::path::Path;
use std::thread::scope;

use gnarl_common::Element;
use gnarl_common::rng::Key;
use gnarl_graph::{Dataset, DatasetWriter, IdWidth, Triple};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize, Rows, begin_random_reads};
use half::{bf16, f16};

const ROWS: u64 = 20_000;
const WIDTH: usize = 37;
/// Batches of a thread.
const BATCHES: u64 = 8;

/// A dataset whose features are the given values.
fn dataset<T: Element>(dir: &Path, value: impl Fn(u64) -> T) -> Dataset {
    let mut writer = DatasetWriter::create(dir, IdWidth::U32).unwrap();
    writer.add_node_type("_N", ROWS);
    let mut column = writer.node_column::<T>("_N", "features", &[WIDTH as u64]).unwrap();
    let values: Vec<T> = (0..ROWS * WIDTH as u64).map(value).collect();
    column.push(&values).unwrap();
    let spec = column.finish().unwrap();
    writer.node_type("_N").unwrap().columns.push(spec);
    let mut edges = writer.edge_writer(&Triple::plain(), None).unwrap();
    edges.push(&[0], &[1]).unwrap();
    let columns = edges.finish().unwrap();
    writer.add_edge_type(Triple::plain(), columns);
    writer.finish(Default::default()).unwrap()
}

fn store(dataset: &Dataset, normalize: Normalize) -> MappedFeatures {
    MappedFeatures::new(dataset.features("_N").unwrap().unwrap(), normalize).unwrap()
}

/// Nodes of a batch: some often, some twice.
fn batch(number: u64) -> Vec<u32> {
    let key = Key::new(5).with(number);
    let node = |i: u64| match key.below(2 * i, 3) {
        0 => key.below(2 * i + 1, 50) * 7,
        _ => key.below(2 * i + 1, ROWS),
    };
    (0..400).map(|i| node(i) as u32).chain([3, ROWS as u32 - 1, 3]).collect()
}

fn check<T: Element>(value: impl Fn(u64) -> T) {
    let dir = tempfile::tempdir().unwrap();
    let dataset = dataset(&dir.path().join("g"), value);
    for normalize in [Normalize::None, Normalize::Row] {
        let mapped = store(&dataset, normalize);
        for memory in [0, 3000, 1 << 20, 1 << 30] {
            let apart = store(&dataset, normalize);
            apart.begin_random_reads(memory).unwrap();
            let work = |thread: u64| {
                for number in 0..BATCHES {
                    let nodes = batch(number + thread % 2);
                    let expected = mapped.gather(&nodes).unwrap();
                    assert_eq!(apart.gather_ahead(&nodes).unwrap(), expected, "{memory} bytes");
                }
            };
            scope(|scope| (0..3).for_each(|thread| _ = scope.spawn(move || work(thread))));
            let stats = apart.cache_stats().unwrap();
            assert_eq!(stats.hits + stats.misses, 3 * BATCHES * 403);
            apart.gather_ahead(&batch(5)).unwrap();
            let again = apart.cache_stats().unwrap().hits - stats.hits;
            match memory {
                0 => assert_eq!(stats.hits + again, 0),
                // The few that fit may be others by then.
                3000 => {}
                // The 50 nodes that a third of the others are.
                1_048_576 => assert!(stats.hits > 3 * BATCHES * 100 && again > 100, "{stats:?}"),
                _ => assert_eq!(again, 403),
            }
        }
    }
}

#[test]
fn rows_are_those_of_the_file() {
    let mixed = |i: u64| Key::new(1).below(i, 1000) as f32 / 8.0 - 50.0;
    check(mixed);
    check(|i| f16::from_f32(mixed(i)));
    check(|i| bf16::from_f32(mixed(i)));
    check(|i| Key::new(1).below(i, 256) as u8);
}

#[test]
fn stores_share_memory_by_the_bytes_of_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = dataset(&dir.path().join("g"), |i| i as f32);
    let stores = [(); 2].map(|()| store(&dataset, Normalize::None));
    // Room for all rows of one store, of 152 bytes and what a cache notes of them.
    let all = ROWS * 280;
    begin_random_reads(stores.iter().map(|store| store as &dyn FeatureStore), all).unwrap();
    let mut nodes: Vec<u32> = (0..ROWS as u32).collect();
    Key::new(2).shuffle(&mut nodes);
    for store in &stores {
        for _ in 0..3 {
            store.gather_ahead(&nodes).unwrap();
        }
        let hits = store.cache_stats().unwrap().hits;
        assert!(0 < hits && hits < ROWS * 3 / 2, "{hits} hits");
    }
}

#[test]
fn rows_in_order_are_not_cached() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = dataset(&dir.path().join("g"), |i| i as f32);
    let mapped = store(&dataset, Normalize::Row);
    let apart = store(&dataset, Normalize::Row);
    assert!(store(&dataset, Normalize::None).stored().is_some());
    apart.begin_random_reads(1 << 30).unwrap();
    assert!(apart.stored().is_none());
    for range in [0..ROWS as u32, 5..70, 19_000..ROWS as u32] {
        let nodes: Vec<u32> = range.collect();
        for _ in 0..2 {
            assert_eq!(apart.gather(&nodes).unwrap(), mapped.gather(&nodes).unwrap());
        }
    }
    let stats = apart.cache_stats().unwrap();
    assert_eq!((stats.hits, stats.misses), (0, 0));
}

#[test]
fn a_shortened_file_and_unknown_nodes_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = dataset(&dir.path().join("g"), |i| i as f32);
    let store = store(&dataset, Normalize::None);
    store.begin_random_reads(0).unwrap();
    let message = store.gather_ahead(&[ROWS as u32]).unwrap_err().to_string();
    assert!(message.contains("node 20000 has no features"), "{message}");
    let path = dir.path().join("g/_N.features.npy");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(100 * WIDTH as u64 * 4).unwrap();
    let Rows::Dense(rows) = store.gather_ahead(&[7]).unwrap() else { panic!("stored dense") };
    assert_eq!(rows[0], 7.0 * WIDTH as f32);
    let message = store.gather_ahead(&[7, 500]).unwrap_err().to_string();
    assert!(message.contains("_N.features.npy: the file became shorter"), "{message}");
}
