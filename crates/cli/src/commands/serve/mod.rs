//! `gnarl serve`

mod args;
#[cfg(feature = "serve")]
mod server;

pub use args::ServeArgs;
#[cfg(feature = "serve")]
pub use server::run;

#[cfg(not(feature = "serve"))]
pub fn run(_: &ServeArgs) -> gnarl_common::Result<serde_json::Value> {
    Err(gnarl_common::Error::usage("this build lacks the server")
        .hint("build with --features serve, see docs/serving.md"))
}
