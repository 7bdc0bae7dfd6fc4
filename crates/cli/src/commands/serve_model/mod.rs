//! `gnarl serve-model`: predictions of a trained run over HTTP.
//!
//! Connections are served by an asynchronous runtime of two threads (`connections.rs`, `routes.rs`), which turns ids into
//! nodes (`catalog.rs`, `lookup.rs`) and puts requests into a bounded queue (`queue.rs`). One thread, that of the command,
//! takes those that wait together and computes them at once (`compute.rs`); answers are written as JSON by another
//! (`rows.rs`).

mod args;
#[cfg(feature = "serve")]
mod body;
#[cfg(feature = "serve")]
mod catalog;
#[cfg(feature = "serve")]
mod compute;
#[cfg(feature = "serve")]
mod connections;
#[cfg(feature = "serve")]
mod lookup;
#[cfg(feature = "serve")]
mod meters;
#[cfg(feature = "serve")]
mod queue;
#[cfg(feature = "serve")]
mod refusal;
#[cfg(feature = "serve")]
mod routes;
#[cfg(feature = "serve")]
mod rows;
#[cfg(feature = "serve")]
mod server;
#[cfg(feature = "serve")]
mod tls;

pub use args::ServeModelArgs;
#[cfg(feature = "serve")]
pub use server::run;

#[cfg(not(feature = "serve"))]
pub fn run(_: &ServeModelArgs) -> gnarl_common::Result<serde_json::Value> {
    Err(gnarl_common::Error::usage("this build lacks the server")
        .hint("build with --features serve, see docs/inference.md"))
}
