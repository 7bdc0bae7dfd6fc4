//! The samplers of a run file.

use gnarl_common::{Context, Error, Result};
use gnarl_config::{Method, RunConfig};
use gnarl_graph::Triple;
use gnarl_sample::parts::Rule;
use gnarl_sample::{
    ExactSampler, FullSampler, HeteroFanouts, LaborSampler, PprNeighbors, RandomWalk, Sampler,
    UniformSampler, WalkNeighbors, WeightedSampler,
};

use super::subgraphs;
use crate::data::graph::{Graph, Partitioned, Topology};
use crate::data::times::draw_of;

/// The sampler of batches around some of `seeds`, over `graph`.
///
/// # Errors
/// If it does not fit the graph.
pub(super) fn sampler(
    config: &RunConfig,
    graph: &Graph,
    seeds: &[u32],
) -> Result<Box<dyn Sampler>> {
    let fanouts = &config.sample.fanouts;
    let local = match &graph.topology {
        Topology::Local(local) => local,
        Topology::Partitioned(partitioned) => return of_parts(config, partitioned),
    };
    if let Some(temporal) = &graph.temporal {
        return Ok(Box::new(temporal.with_fanouts(&config.hops())?));
    }
    match config.sample.method {
        Method::Neighbor => Ok(Box::new(UniformSampler::new(local, fanouts)?)),
        Method::Labor => Ok(Box::new(LaborSampler::new(local, fanouts)?)),
        Method::Exact => Ok(Box::new(ExactSampler::new(local, fanouts)?)),
        Method::Weighted => Ok(Box::new(WeightedSampler::new(local, fanouts)?)),
        Method::Full => Ok(Box::new(FullSampler::new(local, config.model.blocks())?)),
        Method::Walk => {
            let section = &config.sample;
            let walk =
                RandomWalk::new(local, section.walk_length)?.with_restart(section.restart)?;
            let walk = match (section.return_bias, section.in_out_bias) {
                (1.0, 1.0) => walk,
                (p, q) => walk.with_bias(p, q)?,
            };
            Ok(Box::new(WalkNeighbors::new(walk, section.walks, fanouts)?))
        }
        Method::Ppr => {
            let numbers = (config.sample.teleport, config.sample.tolerance);
            Ok(Box::new(PprNeighbors::new(local, numbers, fanouts)?))
        }
        _ => subgraphs::sampler(config, local, seeds),
    }
}

/// The sampler of a partitioned graph.
fn of_parts(config: &RunConfig, graph: &Partitioned) -> Result<Box<dyn Sampler>> {
    if let Some(rule) = config.time_rule() {
        return Ok(Box::new(graph.temporal(draw_of(config, rule), &config.hops())?));
    }
    let rule = match config.sample.method {
        Method::Neighbor => Rule::Uniform,
        Method::Labor => Rule::Labor,
        Method::Exact | Method::Full => Rule::Exact,
        Method::Weighted => Rule::Weighted,
        _ => {
            return Err(Error::usage("subgraphs are drawn from whole graphs only").hint(
                "leave out partition.servers, or set sample.method to 'neighbor' or 'exact'",
            ));
        }
    };
    Ok(Box::new(graph.sampler(rule, &config.hops())?))
}

/// Fan-outs and rule of a sampler of heterogeneous graphs.
///
/// # Errors
/// If an edge type is misspelled, or a meta-path does not end in the seeds.
pub(super) fn fanouts(config: &RunConfig) -> Result<(HeteroFanouts, Rule)> {
    let sample = &config.sample;
    let rule = match sample.method {
        Method::Labor => Rule::Labor,
        Method::Exact => Rule::Exact,
        Method::Weighted => Rule::Weighted,
        _ => Rule::Uniform,
    };
    let edge_type = |key: &str, name: &str| -> Result<Triple> {
        name.parse().map_err(|e: Error| e.context(key))
    };
    if !sample.meta_path.is_empty() {
        if !sample.edge_fanouts.is_empty() {
            return Err(Error::usage("sample.meta_path conflicts with sample.edge_fanouts")
                .hint("leave out sample.edge_fanouts; a meta-path uses sample.fanouts"));
        }
        let path = sample.meta_path.iter().map(|name| edge_type("sample.meta_path", name));
        let path = path.collect::<Result<Vec<_>>>()?;
        if let Some(seeds) = config.task.node_type.as_ref().filter(|seeds| **seeds != path[0].dst) {
            let message = format!("sample.meta_path: '{}' does not end in '{seeds}'", path[0]);
            return Err(Error::usage(message).hint("give the seeds' hop first"));
        }
        let along = HeteroFanouts::along(&path, &config.hops());
        return Ok((along.while_doing(|| "sample.meta_path")?, rule));
    }
    let all = |&fanout: &i64| match sample.method {
        Method::Full if fanout != 0 => -1,
        _ => fanout,
    };
    let mut fanouts = HeteroFanouts::new(&config.hops());
    for (name, of_type) in &sample.edge_fanouts {
        let triple = edge_type("sample.edge_fanouts", name)?;
        fanouts = fanouts.with(triple, &of_type.iter().map(all).collect::<Vec<_>>());
    }
    Ok((fanouts, rule))
}
