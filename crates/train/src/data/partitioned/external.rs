//! External servers: parts behind servers listed in the run file.

use std::sync::Arc;
use std::time::Duration;

use gnarl_common::{Error, Kind, Result, ResultExt};
use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{Client, ClientConfig, PartAccess, ServedPart, read_token};

/// Opens parts with local files; the others are reached through the first server that has them.
pub(super) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    addresses: &[String],
) -> Result<Vec<PartAccess>> {
    let token = config.partition.token_file.as_deref().map(read_token).transpose()?;
    let certificate = config.partition.certificate.as_deref();
    let certificate = certificate.map(|path| std::fs::read(path).at(path)).transpose()?;
    let connect = |uri: &String| {
        Client::connect(&ClientConfig {
            token: token.clone(),
            certificate: certificate.clone(),
            deadline: Duration::from_secs_f64(config.train.deadline_seconds),
            ..ClientConfig::new(uri)
        })
    };
    let mut servers = Vec::new();
    for address in addresses {
        let client = connect(address)?;
        let abouts = client.describe().map_err(|e| match e.kind() {
            Kind::Usage => e.hint("partition.token_file names the file with the server's token"),
            _ => e,
        })?;
        servers.push((client, abouts.iter().map(|about| about.part).collect::<Vec<_>>()));
    }
    let find = |part: usize| {
        if cut.has_part(part) {
            return here(cut, part);
        }
        let server = servers.iter().find(|(_, parts)| parts.contains(&part));
        server.map(|(client, _)| PartAccess::Remote(client.part(part))).ok_or_else(|| {
            let dir = cut.dir().display();
            Error::usage(format!("part {part} is neither in {dir} nor at a server"))
                .hint("add the server that has it to partition.servers")
        })
    };
    (0..cut.num_parts()).map(find).collect()
}

/// Opens a part with local files.
pub(super) fn here(cut: &PartitionedDataset, part: usize) -> Result<PartAccess> {
    Ok(PartAccess::Local(Arc::new(ServedPart::open(cut, part)?)))
}
