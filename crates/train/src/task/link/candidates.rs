//! Ranks of endpoints among all nodes, whose embeddings are on several ranks, or larger than memory.

use gnarl_common::{Result, Scan};
use gnarl_engine::Communicator;
use gnarl_graph::triples::{Side, Triples};
use gnarl_nn::decoders::{Beaten, Ranking};
use gnarl_nn::{Params, Tensor};
use gnarl_store::embedding::{Ids, Nodes};

use super::among::Ranked;
use super::links::LinkPrediction;
use crate::embeddings::{Rows, Table};

/// Edges ranked by one pass over the candidates.
const EDGES: usize = 1 << 12;

/// The nodes that endpoints are ranked among.
pub(super) trait Candidates {
    /// Ids of those of this rank, ascending, and their embeddings.
    fn own(&self) -> (&Ids, &[f32], usize);

    /// Embeddings of some of all ranks' nodes. A collective, if there are several ranks.
    ///
    /// # Errors
    /// If a rank fails.
    fn embeddings(&self, nodes: &[u32]) -> Result<Tensor>;

    /// Adds the counts of all ranks. A collective, likewise.
    ///
    /// # Errors
    /// If a rank fails.
    fn sum(&self, counts: &mut [Beaten]) -> Result<()>;

    /// A guard while embeddings of own nodes are read one after the other.
    fn scan(&self) -> Option<Scan<'_, f32>> {
        None
    }
}

/// All nodes, with embeddings that one rank has.
pub(super) struct Everywhere<'a> {
    ids: Ids,
    width: usize,
    values: &'a [f32],
}

impl<'a> Everywhere<'a> {
    pub fn of(rows: &'a Tensor) -> Self {
        Self { ids: Ids::range(0..rows.rows() as u64), width: rows.cols(), values: rows.data() }
    }

    pub fn of_rows(rows: &'a Rows<'_>) -> Self {
        let (width, values) = (rows.width, &*rows.values);
        Self { ids: Ids::range(0..(values.len() / width.max(1)) as u64), width, values }
    }
}

impl Candidates for Everywhere<'_> {
    fn own(&self) -> (&Ids, &[f32], usize) {
        (&self.ids, self.values, self.width)
    }

    fn embeddings(&self, nodes: &[u32]) -> Result<Tensor> {
        let mut out = Tensor::scratch(nodes.len(), self.width);
        let each = out.data_mut().chunks_exact_mut(self.width.max(1)).zip(nodes);
        for (out, &node) in each {
            let from = node as usize * self.width;
            out.copy_from_slice(&self.values[from..from + self.width]);
        }
        Ok(out)
    }

    fn sum(&self, _: &mut [Beaten]) -> Result<()> {
        Ok(())
    }
}

/// The nodes of a table, each on the rank that owns it.
pub(super) struct WithOwners<'a> {
    pub table: &'a Table,
    pub comm: &'a dyn Communicator,
}

impl Candidates for WithOwners<'_> {
    fn own(&self) -> (&Ids, &[f32], usize) {
        use gnarl_store::RowSource;
        let rows = self.table.rows();
        (rows.ids(), rows.values(), rows.width())
    }

    fn embeddings(&self, nodes: &[u32]) -> Result<Tensor> {
        let ids: Vec<u64> = nodes.iter().map(|&node| node.into()).collect();
        self.table.fetch(self.comm, &ids)
    }

    fn sum(&self, counts: &mut [Beaten]) -> Result<()> {
        if self.comm.size() == 1 {
            return Ok(());
        }
        let all = self.comm.all_gather("evaluation: ranks", bytemuck::cast_slice(counts))?;
        counts.fill(Beaten::default());
        for own in &all {
            let own: Vec<Beaten> = bytemuck::pod_collect_to_vec(own);
            counts.iter_mut().zip(own).for_each(|(sum, own)| sum.add(own));
        }
        Ok(())
    }

    fn scan(&self) -> Option<Scan<'_, f32>> {
        Some(self.table.rows().values().scan())
    }
}

/// The ranks of `edges`, on the rayon pool this is called from. All ranks return the same.
///
/// # Errors
/// If a part does not tell of known edges, or a rank fails.
pub(super) fn ranks(
    links: &LinkPrediction,
    params: &Params,
    candidates: &dyn Candidates,
    edges: &Triples,
) -> Result<Ranked> {
    let mut all = Vec::with_capacity(edges.len());
    for first in (0..edges.len()).step_by(EDGES) {
        let places = first..edges.len().min(first + EDGES);
        let some = edges.at(&places.map(|place| place as u32).collect::<Vec<_>>());
        let [heads, tails] =
            Side::BOTH.map(|side| beaten(links, params, candidates, (side, &some)));
        let both = heads?.into_iter().zip(tails?);
        all.extend(both.map(|(head, tail)| [head.rank(), tail.rank()]));
    }
    Ok(all)
}

/// The candidates of all ranks that score above the endpoints of `side` of some edges.
fn beaten(
    links: &LinkPrediction,
    params: &Params,
    candidates: &dyn Candidates,
    (side, edges): (Side, &Triples),
) -> Result<Vec<Beaten>> {
    let known = links.filtered()?;
    let model = (links.decoder.as_ref(), params);
    let mut embeddings = |nodes: &[u32]| candidates.embeddings(nodes);
    let ranking = Ranking::new(model, known, (side, edges), &mut embeddings)?;
    let mut counts = vec![Beaten::default(); edges.len()];
    let (ids, values, width) = candidates.own();
    let of_side = links.edges.endpoints.range(side);
    let own = ids.rows_of(&Nodes::Ids(of_side.start.into()..of_side.end.into()));
    let block = Ranking::block(links.config.task.rank_memory.as_u64() as usize);
    let _scan = candidates.scan();
    for first in own.clone().step_by(block) {
        let here = first..own.end.min(first + block);
        let rows = values[here.start * width..here.end * width].to_vec();
        let rows = Tensor::from_vec(here.len(), width, rows);
        let row = |node: u32| {
            let place = ids.row(node.into()).filter(|place| here.contains(place))?;
            Some(place - here.start)
        };
        let nodes = ids.id(here.start) as u32..ids.id(here.end - 1) as u32 + 1;
        ranking.count((&rows, &nodes), &row, &mut counts);
    }
    candidates.sum(&mut counts)?;
    Ok(counts)
}
