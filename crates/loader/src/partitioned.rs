//! Partitioned graphs, whose parts are on this machine or behind servers.

use std::path::Path;
use std::sync::Arc;

use gnarl_common::{Context, Error, Result};
use gnarl_graph::Dataset;
use gnarl_partition::{PartLayout, PartitionedDataset};
use gnarl_sample::EdgeServices;
use gnarl_sample::parts::Routes;
use gnarl_serve::{
    Description, PartAccess, PartitionedFeatures, batch_servers, describe_type, open_parts,
};
use gnarl_store::cache::CachePolicy;
use gnarl_store::{FeatureStore, Normalize};

use crate::graph::{EdgeColumns, LoaderGraph};
use crate::lists::Lists;
use crate::parts::{PartLists, PartsOptions};

impl LoaderGraph {
    /// Opens a partitioned graph: `dir` has its description and the catalog of nodes, and the parts that no server has.
    /// Batches equal those of the whole graph; edges have no ids, features and times in them, but their weights.
    ///
    /// # Errors
    /// If there is no partition with lists and a catalog in `dir`, it was made for a task on edges, or a part is neither
    /// there nor at a server.
    pub fn open_parts(dir: &Path, options: &PartsOptions) -> Result<Self> {
        let cut = PartitionedDataset::open(dir)?;
        let place = dir.display();
        if cut.manifest().targets.is_some() {
            let message = format!("{place}: the partition was made for a task on edges");
            return Err(Error::usage(message).hint("partition the dataset without --task"));
        }
        let catalog = cut.catalog()?.ok_or_else(|| {
            Error::usage(format!("{place} has no catalog of the nodes"))
                .hint("partition the dataset again with this version of gnarl")
        })?;
        let hints = (
            "token_file names the file with the server's token",
            "add the address of a server that has it to servers",
        );
        let parts = open_parts(&cut, &options.servers, &options.access, hints)?;
        let all = parts.iter().map(PartAccess::describe).collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(cut.schema()?);
        let names = schema.node_types();
        let routes =
            names.iter().map(|name| Routes::of_type(&cut, name)).collect::<Result<Vec<_>>>()?;
        let mut edges = Vec::new();
        for of_type in cut.edge_types()? {
            let services = parts.iter().map(|part| part.neighbors(Some(&of_type.triple)));
            let weighted = of_type.is_weighted();
            edges.push(EdgeServices { parts: services.collect::<Result<_>>()?, weighted });
        }
        let remote = parts.iter().any(|part| !part.is_here());
        let abouts = names.iter().map(|name| Ok(describe_type(&cut, &all, name)?.swap_remove(0)));
        let abouts = abouts.collect::<Result<Vec<Description>>>()?;
        let bytes = |about: &Description, routes: &Routes| {
            (routes.num_nodes() * about.feature_width * size_of::<f32>()) as u128
        };
        let total: u128 = abouts.iter().zip(&routes).map(|(about, of)| bytes(about, of)).sum();
        let mut features = Vec::new();
        for ((name, routes), about) in names.iter().zip(&routes).zip(&abouts) {
            // By their features, of which none needs a place twice.
            let own = bytes(about, routes);
            let share = (u128::from(options.cache) * own / total.max(1)).min(2 * own) as u64;
            let opened = stored((name, routes), about, &parts, if remote { share } else { 0 });
            features.push(opened.while_doing(|| format!("opening the features of type '{name}'"))?);
        }
        let columns = EdgeColumns::none(schema.edge_types().len());
        let counts = edge_counts(&cut, schema.edge_types().len());
        let lists = PartLists {
            schema,
            routes,
            edges,
            key: cut.manifest().key(),
            process: (remote || options.batches).then(std::process::id),
        };
        let lists = Lists::Parts(lists);
        check_catalog(&catalog, &lists)?;
        let name = cut.manifest().source.name.clone();
        let own = Self::of_catalog(&catalog, dir, lists, features, (columns, counts))?;
        let own = own.named(name);
        if !options.batches {
            return Ok(own);
        }
        if options.servers.is_empty() {
            let message = "there are no servers that make batches";
            return Err(Error::usage(message).hint("such as http://10.0.0.1:7070"));
        }
        let makers = batch_servers(&options.servers, &options.access, hints.0)?;
        Ok(own.with_batch_servers(makers))
    }
}

/// The features of a node type, if it has any.
fn stored(
    (name, routes): (&str, &Routes),
    about: &Description,
    parts: &[PartAccess],
    cache: u64,
) -> Result<Option<Box<dyn FeatureStore>>> {
    if about.feature_width == 0 {
        return Ok(None);
    }
    let of_type = (name, routes.clone());
    let shape = (about.feature_width, about.sparse);
    let cached = |source| CachePolicy::ClockPro.build(source, cache, |_| Ok(Vec::new()));
    let features =
        PartitionedFeatures::new(of_type, parts.to_vec(), shape, Normalize::None, cached)?;
    Ok(Some(Box::new(features)))
}

/// Number of edges of each type; none where parts have edges of others beside their own.
fn edge_counts(cut: &PartitionedDataset, types: usize) -> Vec<Option<u64>> {
    let manifest = cut.manifest();
    let own = manifest.layout == PartLayout::VertexCut || manifest.hops == 1;
    let count = |of: usize| manifest.part_counts.iter().map(|part| part.edges.get(of)).sum();
    (0..types).map(|of| if own { count(of) } else { None }).collect()
}

/// Refuses a catalog of other nodes than parts have.
fn check_catalog(catalog: &Dataset, lists: &Lists) -> Result<()> {
    for (number, name) in lists.schema().node_types().iter().enumerate() {
        let known = catalog.manifest().node_type(name).map_or(0, |of| of.count);
        if known != lists.num_nodes(number) as u64 {
            let place = catalog.dir().display();
            return Err(Error::invalid(format!(
                "{place}: {known} nodes of type '{name}', but parts have {}",
                lists.num_nodes(number)
            )));
        }
    }
    Ok(())
}
