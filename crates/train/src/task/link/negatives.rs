//! The negative sampler of a run file.

use std::ops::Range;

use gnarl_common::{Error, Result};
use gnarl_config::NegativesSection;
use gnarl_nn::decoders::Side;
use gnarl_sample::negatives::{self, NegativeSampler};

use super::links::LinkPrediction;
use crate::data::resident::NodesInMemory;

/// The negative sampler of a run.
///
/// # Errors
/// If the kind is unknown, or requires parts or one node type.
pub(super) fn build(links: &LinkPrediction) -> Result<Box<dyn NegativeSampler>> {
    let (ends, kind) = (&links.edges.endpoints, links.config.negatives.kind.as_str());
    match (ends.are_two_types(), kind) {
        (false, _) | (true, "in-batch" | "typed") => among(links, 0..ends.nodes() as u32),
        (true, "uniform" | "joint" | "all" | "degree") => {
            let [heads, tails] = Side::BOTH.map(|side| among(links, ends.range(side)));
            Ok(Box::new(negatives::Sided::new(heads?, tails?, ends.first_tail())) as _)
        }
        (true, kind) => {
            let message =
                format!("negatives.kind = '{kind}' does not support endpoints of two node types");
            Err(Error::usage(message).hint("take 'joint'"))
        }
    }
}

/// The sampler of a run on the nodes that are in memory.
///
/// # Errors
/// If the kind draws nodes that may not be there.
pub(super) fn in_memory<'a>(
    links: &'a LinkPrediction,
    there: &'a NodesInMemory,
) -> Result<Box<dyn NegativeSampler + 'a>> {
    if links.config.negatives.kind == "in-batch" {
        return Ok(Box::new(negatives::InBatch));
    }
    let ends = &links.edges.endpoints;
    match ends.are_two_types() {
        false => listed(links, there.ids(0)),
        true => {
            let [heads, tails] = [0, 1].map(|of| listed(links, there.ids(of)));
            Ok(Box::new(negatives::Sided::new(heads?, tails?, ends.first_tail())))
        }
    }
}

/// A sampler of candidates among the nodes `there`.
fn listed<'a>(links: &LinkPrediction, there: &'a [u32]) -> Result<Box<dyn NegativeSampler + 'a>> {
    let NegativesSection { count, ref kind, .. } = links.config.negatives;
    let nodes = there.len() as u32;
    let of_all: Box<dyn NegativeSampler> = match kind.as_str() {
        "uniform" => Box::new(negatives::Uniform::new(nodes, count)),
        "joint" => Box::new(negatives::Joint::new(nodes, count)),
        "all" => Box::new(negatives::All::new(nodes)),
        _ => {
            return Err(Error::usage(format!(
                "negatives.kind = '{kind}' draws nodes whatever parts are in memory"
            ))
            .hint(
                "take 'joint', 'uniform', 'in-batch' or 'all', which draw among those in memory",
            ));
        }
    };
    Ok(Box::new(negatives::Listed::new(of_all, there)))
}

/// A sampler of candidates in the node range `range`, counted from its first node.
fn among(links: &LinkPrediction, range: Range<u32>) -> Result<Box<dyn NegativeSampler>> {
    let NegativesSection { count, exponent, .. } = links.config.negatives;
    let (train, nodes) = (links.edges.train.as_ref(), range.len() as u32);
    Ok(match links.config.negatives.kind.as_str() {
        "uniform" => match &links.edges.node_times[usize::from(range.start > 0)] {
            Some(times) => Box::new(negatives::Existing::new(times, count)),
            None => Box::new(negatives::Uniform::new(nodes, count)),
        },
        "joint" => Box::new(negatives::Joint::new(nodes, count)),
        "in-batch" => Box::new(negatives::InBatch),
        "all" => Box::new(negatives::All::new(nodes)),
        "typed" => {
            let mut ends = negatives::EndsByRelation::default();
            train.scan(&mut |_, edges| {
                ends.add(edges);
                Ok(())
            })?;
            Box::new(negatives::Typed::new(ends, count))
        }
        "degree" => {
            let mut degrees = vec![0; nodes as usize];
            train.scan(&mut |_, edges| {
                let all = edges.heads.iter().chain(&edges.tails);
                all.filter(|&v| range.contains(v))
                    .for_each(|&v| degrees[(v - range.start) as usize] += 1);
                Ok(())
            })?;
            Box::new(negatives::ByDegree::new(&degrees, exponent, count))
        }
        "local" if train.owner().is_empty() => {
            return Err(Error::usage("negatives.kind = 'local' requires a partitioned graph")
                .hint("set partition.parts, or negatives.kind to 'joint'"));
        }
        "local" => Box::new(negatives::Local::new(train.owner().clone(), count)),
        _ => Box::new(links.config.negatives.listed(train.count(), nodes)?),
    })
}
