//! Message graphs as datasets on disk, written in bounded memory.

use std::collections::BTreeSet;
use std::path::Path;

use gnarl_common::{Context, Result, ResultExt};
use gnarl_graph::{Dataset, DatasetWriter, EdgeChunk, EdgeStream, FinishOptions, Triple};

use super::distinct::distinct_in_time;
use super::form::{MessageForm, type_of_relation};
use super::outlet::{Outlet, message_writer};
use crate::data::edge_set::EdgeSet;
use crate::data::target_edges::TakeEdge;

/// Edge types whose files are open at once: each has two.
const OPEN_TYPES: usize = 128;
/// Hands the edges that pass messages to its argument, the same ones in every pass.
pub(crate) type Passing<'a> = dyn FnMut(&mut TakeEdge<'_>) -> Result<()> + 'a;

/// A message graph to write: the one that `in_memory` makes of the same edges, with the same lists.
pub(crate) struct OnDisk<'a> {
    pub source: &'a Dataset,
    pub form: MessageForm,
    /// The type of the predicted edges.
    pub triple: &'a Triple,
    pub relations: usize,
    /// Edges that pass no messages, for the form by types.
    pub held: &'a EdgeSet,
    /// True if edges have times, which are written.
    pub timed: bool,
    /// Bytes of memory for sorting.
    pub memory: u64,
}

impl OnDisk<'_> {
    /// Writes the graph to `out`, with the nodes of the source. Memory beside the budget: an entry for each edge of `held`.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn write(&self, passing: &mut Passing<'_>, out: &Path) -> Result<Dataset> {
        if !self.timed || self.form == MessageForm::Types {
            return self.write_all(passing, out);
        }
        // Edges with times are sorted before those that repeat are found.
        let all = out.with_extension("all");
        self.write_all(passing, &all)?;
        let distinct = distinct_in_time(&Dataset::open(&all)?, self.memory, out)
            .while_doing(|| "writing the message graph")?;
        std::fs::remove_dir_all(&all).at(&all)?;
        Ok(distinct)
    }

    fn write_all(&self, passing: &mut Passing<'_>, out: &Path) -> Result<Dataset> {
        let mut writer = message_writer(self.source, out)?;
        writer.name(format!("{}, messages", self.source.manifest().name));
        let whole = match self.form {
            MessageForm::Types => self.types(&mut writer).map(|()| false),
            MessageForm::Relations => self.relations(&mut writer, passing).map(|()| true),
            MessageForm::Edges | MessageForm::None => {
                self.edges(&mut writer, passing).map(|()| true)
            }
        };
        // Edges of several relations, and those that have their reverse, are one edge of the message graph.
        let whole = whole.while_doing(|| "writing the message graph")?;
        let coalesce = whole && !self.timed;
        writer.finish(FinishOptions { memory: self.memory, coalesce, ..Default::default() })
    }

    /// The edges in both directions.
    fn edges(&self, writer: &mut DatasetWriter, passing: &mut Passing<'_>) -> Result<()> {
        let mut outlet = Outlet::open(writer, self.triple, self.timed)?;
        passing(&mut |edge| {
            outlet.push(edge.head, edge.tail, edge.time)?;
            outlet.push(edge.tail, edge.head, edge.time)
        })?;
        let columns = outlet.finish()?;
        writer.add_edge_type(self.triple.clone(), columns);
        Ok(())
    }

    /// The edges by relation, and their reverses.
    fn relations(&self, writer: &mut DatasetWriter, passing: &mut Passing<'_>) -> Result<()> {
        let types = 2 * self.relations;
        let triple = |number| type_of_relation(&self.triple.src, number, self.relations);
        for first in (0..types).step_by(OPEN_TYPES) {
            let group = first..types.min(first + OPEN_TYPES);
            let open =
                group.clone().map(|number| Outlet::open(writer, &triple(number), self.timed));
            let mut outlets = open.collect::<Result<Vec<_>>>()?;
            passing(&mut |edge| {
                let forth = edge.relation as usize;
                if group.contains(&forth) {
                    outlets[forth - first].push(edge.head, edge.tail, edge.time)?;
                }
                let back = forth + self.relations;
                if group.contains(&back) {
                    outlets[back - first].push(edge.tail, edge.head, edge.time)?;
                }
                Ok(())
            })?;
            for (number, outlet) in group.zip(outlets) {
                writer.add_edge_type(triple(number), outlet.finish()?);
            }
        }
        Ok(())
    }

    /// The edge types of the source, without the edges `held`.
    fn types(&self, writer: &mut DatasetWriter) -> Result<()> {
        let touched: BTreeSet<usize> = self.held.iter().map(|(number, ..)| *number).collect();
        for (number, edge_type) in self.source.manifest().edge_types.iter().enumerate() {
            let triple = &edge_type.triple;
            if !touched.contains(&number) {
                writer.link_edges(self.source, triple)?;
                continue;
            }
            let mut outlet = Outlet::open(writer, triple, false)?;
            let mut edges = self.source.edges_of(triple)?;
            let mut chunk = EdgeChunk::default();
            edges.reset()?;
            while edges.next_chunk(&mut chunk)? {
                for (src, dst) in chunk.iter() {
                    if !self.held.contains(&(number, src, dst)) {
                        outlet.push(src as u32, dst as u32, 0)?;
                    }
                }
            }
            writer.add_edge_type(triple.clone(), outlet.finish()?);
        }
        Ok(())
    }
}
