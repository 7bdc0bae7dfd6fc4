//! Predictions and datasets in object stores.

#[cfg(feature = "cloud")]
mod folder;
#[cfg(not(feature = "cloud"))]
mod missing;
#[cfg(feature = "cloud")]
mod moto;
#[cfg(feature = "cloud")]
mod parts;
#[cfg(feature = "cloud")]
mod proxy;
#[cfg(feature = "cloud")]
mod runs;
#[cfg(feature = "cloud")]
mod s3;

const RUN: &str = "[train]\nepochs = 1\n";
