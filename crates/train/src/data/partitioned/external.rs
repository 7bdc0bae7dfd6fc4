//! External servers: parts behind servers listed in the run file.

use std::time::Duration;

use gnarl_common::{Result, ResultExt};
use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{Access, PartAccess, open_parts, read_token};

/// Opens parts with local files; the others are reached through the first server that has them.
pub(super) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    addresses: &[String],
) -> Result<Vec<PartAccess>> {
    let certificate = config.partition.certificate.as_deref();
    let access = Access {
        token: config.partition.token_file.as_deref().map(read_token).transpose()?,
        certificate: certificate.map(|path| std::fs::read(path).at(path)).transpose()?,
        deadline: Duration::from_secs_f64(config.train.deadline_seconds),
    };
    let hints = (
        "partition.token_file names the file with the server's token",
        "add the server that has it to partition.servers",
    );
    open_parts(cut, addresses, &access, hints)
}
