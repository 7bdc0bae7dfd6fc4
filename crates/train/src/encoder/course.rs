//! The course of an inference: order, cache and ranks.

use std::sync::Arc;

use gnarl_common::{Context, Error, Result};
use gnarl_engine::Communicator;
use gnarl_infer::order::NodeOrder;
use gnarl_infer::rows::Cache;
use gnarl_infer::{
    Budget, EvenOwners, Figures, Inference, LayerFolder, Layers, Owners, PartOwners, Parts, Peers,
    Sweeps,
};
use gnarl_nn::Tensor;
use gnarl_partition::PartitionedDataset;

/// The order of an inference, the cache between its layers, and the ranks that take part. None of them changes its rows.
#[derive(Clone, Copy, Default)]
pub(crate) struct Course<'a> {
    pub order: NodeOrder,
    /// The parts that orders and ranks go by.
    pub parts: Option<&'a PartitionedDataset>,
    /// Rows between layers are read by chunks behind it.
    pub cache: Option<&'a Cache>,
    /// All rows are kept in a folder, from which an interrupted inference goes on.
    pub layers: Option<&'a LayerFolder>,
    /// The layers whose sums are made by sweeps.
    pub sweeps: Sweeps,
    /// All ranks; none for this process alone.
    pub comm: Option<&'a dyn Communicator>,
}

impl<'a> Course<'a> {
    /// All ranks of `comm`, nodes by number.
    pub fn by_ranks(comm: &'a dyn Communicator) -> Self {
        Self { comm: Some(comm), ..Self::default() }
    }

    /// Returns whether it is that of one process, by number, without a cache and rows that are kept.
    pub fn is_plain(&self) -> bool {
        let kept = self.cache.is_some() || self.layers.is_some();
        self.comm.is_none() && !kept && self.order == NodeOrder::Natural
    }

    /// Rejects parts and orders beside those of a partitioned graph.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there are any.
    pub fn check_of_parts(&self) -> Result<()> {
        if self.parts.is_some() || self.order != NodeOrder::Natural {
            return Err(Error::usage("a partitioned graph has its own parts, in their order")
                .hint("leave out --partition and --order"));
        }
        Ok(())
    }

    /// Runs `layers`, whose node types have these names, for the nodes `wanted`. Nodes belong to ranks as their parts do,
    /// or to ranges of about equal work.
    ///
    /// # Errors
    /// As [`Inference::run`]; if the parts are of other node types.
    pub fn run<L: Layers>(
        &self,
        (layers, names): (&L, &[String]),
        wanted: &[(usize, Vec<u32>)],
        budget: &Budget,
        keep: impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send,
    ) -> Result<Figures> {
        let size = self.comm.map_or(1, Communicator::size);
        let by_part = self.parts.filter(|parts| size > 1 && parts.num_parts() >= size);
        let first = self.comm.is_none_or(|comm| comm.rank() == 0);
        if let Some(cut) =
            self.parts.filter(|_| first && !self.order.by_part() && by_part.is_none())
        {
            let (parts, order) = (cut.num_parts(), self.order);
            tracing::warn!(
                "{}: nothing goes by its {parts} parts: order '{order}' does not, and {size} ranks \
                 take ranges of nodes",
                cut.dir().display()
            );
        }
        let parts = match self.parts.filter(|_| self.order.by_part() || by_part.is_some()) {
            Some(parts) => assignment(parts, names, &layers.num_nodes())?,
            None => Parts::new(),
        };
        let last = layers.num_layers() - 1;
        let owners: Box<dyn Owners> = match by_part {
            _ if size == 1 => return self.with(layers, wanted, (budget, parts, None), keep),
            Some(cut) => {
                let each = parts.iter().flatten().cloned().collect();
                Box::new(PartOwners::<Arc<[u32]>>::new(each, cut.num_parts(), size))
            }
            None => {
                let work = |of: usize, node: u32| layers.num_inputs(last, of, node) as u64;
                Box::new(EvenOwners::new(&layers.num_nodes(), size, work))
            }
        };
        self.with(layers, wanted, (budget, parts, Some(&*owners)), keep)
    }

    /// The same where nodes belong to ranks as `owners` says.
    ///
    /// # Errors
    /// As [`Inference::run`].
    pub fn run_owned<L: Layers>(
        &self,
        (layers, owners): (&L, &dyn Owners),
        wanted: &[(usize, Vec<u32>)],
        budget: &Budget,
        keep: impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send,
    ) -> Result<Figures> {
        self.with(layers, wanted, (budget, Parts::new(), Some(owners)), keep)
    }

    fn with<L: Layers>(
        &self,
        layers: &L,
        wanted: &[(usize, Vec<u32>)],
        (budget, parts, owners): (&Budget, Parts, Option<&dyn Owners>),
        keep: impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send,
    ) -> Result<Figures> {
        let peers = self.comm.zip(owners).map(|(comm, owners)| Peers::new(comm, owners));
        let inference = Inference::within(budget).with_order(self.order, parts);
        let inference = inference.with_cache(self.cache.copied()).kept_in(self.layers.cloned());
        inference.with_sweeps(self.sweeps).with_peers(peers).run(layers, wanted, keep)
    }
}

/// The part of each node of the types `names`, of which there are `nodes`.
fn assignment(cut: &PartitionedDataset, names: &[String], nodes: &[usize]) -> Result<Parts> {
    let of = |(name, &nodes): (&String, &usize)| {
        let parts = cut.assignment(name)?;
        if parts.len() != nodes {
            let (place, found) = (cut.dir().display(), parts.len());
            return Err(Error::invalid(format!(
                "{place} has parts of {found} nodes of type '{name}'; the dataset has {nodes}"
            ))
            .hint("name the partition of this dataset"));
        }
        Ok(Some(Arc::from(parts.to_vec())))
    };
    let all = names.iter().zip(nodes).map(of);
    all.collect::<Result<_>>().while_doing(|| "reading the part of each node")
}
