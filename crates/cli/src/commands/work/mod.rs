//! `gnarl work`

mod args;
#[cfg(feature = "serve")]
mod roles;

pub use args::WorkArgs;
#[cfg(feature = "serve")]
pub use roles::run;

#[cfg(not(feature = "serve"))]
pub fn run(_: &WorkArgs) -> gnarl_common::Result<serde_json::Value> {
    Err(gnarl_common::Error::usage("this build lacks batch workers")
        .hint("build with --features serve, see docs/disaggregated.md"))
}
