//! `gnarl infer`

mod args;
mod destination;
mod edge_source;
pub(super) mod edges;
mod figures;
mod ids;
mod nodes;
pub(super) mod outputs;
mod predict;
mod ranked;
mod ranks;
mod selection;

use std::num::NonZeroUsize;
use std::time::Instant;

use gnarl_common::Result;
use gnarl_config::Engine;
use gnarl_train::infer_by_threads;
use serde_json::Value;

pub use args::InferArgs;
use predict::{open, predict};

pub fn run(args: &InferArgs) -> Result<Value> {
    let start = Instant::now();
    if args.engine == Some(Engine::Mpi) {
        return ranks::under_mpi(args, start);
    }
    ranks::alone()?;
    let run = open(args)?;
    match args.ranks.map_or(1, NonZeroUsize::get) {
        1 => predict(args, (&run, &run), start),
        ranks => infer_by_threads(&run, ranks, args.passes(), |leader| {
            predict(args, (&run, leader), start)
        }),
    }
}
