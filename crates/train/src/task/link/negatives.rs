//! The negative sampler of a run file.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_config::NegativesSection;
use gnarl_graph::triples::FilteredSet;
use gnarl_nn::decoders::Side;
use gnarl_sample::negatives::{self, NegativeSampler};

use super::links::LinkPrediction;

/// The negative sampler of a run.
///
/// # Errors
/// If the kind is unknown, or requires parts or one node type.
pub(super) fn build(links: &LinkPrediction) -> Result<Box<dyn NegativeSampler>> {
    let (ends, kind) = (&links.edges.endpoints, links.config.negatives.kind.as_str());
    let sampler = match (ends.are_two_types(), kind) {
        (false, _) | (true, "in-batch" | "typed") => among(links, 0..ends.nodes() as u32)?,
        (true, "uniform" | "joint" | "all" | "degree") => {
            let [heads, tails] = Side::BOTH.map(|side| among(links, ends.range(side)));
            Box::new(negatives::Sided::new(heads?, tails?, ends.first_tail()))
        }
        (true, kind) => {
            let message =
                format!("negatives.kind = '{kind}' does not support endpoints of two node types");
            return Err(Error::usage(message).hint("take 'joint'"));
        }
    };
    if !links.config.negatives.filtered {
        return Ok(sampler);
    }
    let known = Arc::new(FilteredSet::new(&[&links.edges.train]));
    Ok(Box::new(negatives::Filtered::new(sampler, known)))
}

/// A sampler of candidates in the node range `range`, counted from its first node.
fn among(links: &LinkPrediction, range: Range<u32>) -> Result<Box<dyn NegativeSampler>> {
    let NegativesSection { count, exponent, .. } = links.config.negatives;
    let (train, nodes) = (&links.edges.train, range.len() as u32);
    Ok(match links.config.negatives.kind.as_str() {
        "uniform" => Box::new(negatives::Uniform::new(nodes, count)),
        "joint" => Box::new(negatives::Joint::new(nodes, count)),
        "in-batch" => Box::new(negatives::InBatch),
        "all" => Box::new(negatives::All::new(nodes)),
        "typed" => Box::new(negatives::Typed::new(train, count)),
        "degree" => {
            let mut degrees = vec![0; nodes as usize];
            let all = train.heads.iter().chain(&train.tails);
            all.filter(|&v| range.contains(v))
                .for_each(|&v| degrees[(v - range.start) as usize] += 1);
            Box::new(negatives::ByDegree::new(&degrees, exponent, count))
        }
        "local" if links.owner.is_empty() => {
            return Err(Error::usage("negatives.kind = 'local' requires a partitioned graph")
                .hint("set partition.parts, or negatives.kind to 'joint'"));
        }
        "local" => Box::new(negatives::Local::new(links.owner.clone(), count)),
        _ => Box::new(links.config.negatives.listed(train.len(), nodes)?),
    })
}
