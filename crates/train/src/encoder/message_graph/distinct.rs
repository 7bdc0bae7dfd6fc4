//! Distinct edges of a graph with times.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_graph::{Dataset, FinishOptions};

use super::outlet::{Outlet, message_writer};

/// Writes `graph`, whose edges have times, to `out` without edges that repeat another of the same time: in the order of
/// destination, source and time. Memory: the longest list, and `memory` for sorting.
///
/// # Errors
/// If files cannot be read or written.
pub(super) fn distinct_in_time(graph: &Dataset, memory: u64, out: &Path) -> Result<Dataset> {
    let mut writer = message_writer(graph, out)?;
    writer.name(graph.manifest().name.clone());
    for edge_type in &graph.manifest().edge_types {
        let triple = &edge_type.triple;
        let csc = graph.csc(triple)?;
        let column = graph.edge_column(triple, "time")?;
        let lacking = || Error::invalid(format!("edges {triple} of the message graph lack times"));
        let times = column.ok_or_else(lacking)?.values::<i64>()?;
        let mut outlet = Outlet::open(&writer, triple, true)?;
        let mut list = Vec::new();
        for dst in 0..csc.num_dst() as u32 {
            let start = csc.indptr.get(u64::from(dst));
            let row = |position: u64| csc.edge.as_ref().map_or(position, |rows| rows.get(position));
            list.clear();
            let sources = csc.sources(dst).iter().zip(start..);
            list.extend(sources.map(|(&src, position)| (src, times[row(position) as usize])));
            list.sort_unstable();
            list.dedup();
            list.iter().try_for_each(|&(src, time)| outlet.push(src, dst, time))?;
        }
        let columns = outlet.finish()?;
        writer.add_edge_type(triple.clone(), columns);
    }
    writer.finish(FinishOptions { memory, coalesce: false, ..Default::default() })
}
