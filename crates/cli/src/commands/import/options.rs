//! Options of all formats, and their parsers.

use std::path::PathBuf;

use clap::Args;

use crate::commands::parse::size;

#[derive(Debug, Args)]
pub struct Common {
    /// The dataset directory to make
    #[arg(long)]
    pub out: PathBuf,
    /// Replace an existing dataset
    #[arg(long)]
    pub force: bool,
    /// Memory limit of the import, such as 512MiB
    #[arg(long, default_value = "1GiB", value_parser = size)]
    pub memory: u64,
}

pub fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.into(), file.into()))
        }
        _ => Err(format!("invalid value '{text}': expected NAME=FILE")),
    }
}
