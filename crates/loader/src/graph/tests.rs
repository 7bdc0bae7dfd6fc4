use gnarl_graph::generate::{Attributes, CommunityOptions, community};

use super::*;

/// Rows of features are the same whatever memory is free, and stay in as much as is given.
#[test]
fn rows_of_files_larger_than_memory_stay_in_the_cache_that_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let attributes = Attributes { features: 64, classes: 2, ..Default::default() };
    let options =
        CommunityOptions { nodes: 2000, communities: 2, attributes, ..Default::default() };
    let dataset = community(&options, &dir.path().join("graph")).unwrap().dataset;
    let nodes: Vec<u32> = (0..300).map(|i| i * 7919 % 2000).collect();
    let spare = Arc::default();
    let whole = LoaderGraph::open(&dataset).unwrap();
    let expected = whole.features_of(0, &nodes, &spare).unwrap();
    let hits = |cache: u64| {
        let graph = LoaderGraph::open_in(&dataset, 1, cache).unwrap();
        for _ in 0..3 {
            assert_eq!(graph.features_of(0, &nodes, &spare).unwrap(), expected, "{cache} bytes");
        }
        let stats = graph.features[0].as_ref().unwrap().cache_stats();
        stats.map_or(0, |stats| stats.hits)
    };
    assert_eq!(hits(0), 0);
    assert!(hits(1 << 20) >= 600, "all of the second and third time");
}
