//! Access to all parts of a partition: local ones, and those of servers.

use std::sync::Arc;
use std::time::Duration;

use gnarl_common::{Error, Kind, Result};
use gnarl_partition::PartitionedDataset;

use crate::access::PartAccess;
use crate::client::{Client, ClientConfig};
use crate::served::{Description, ServedPart};

/// Settings of connections to servers of parts.
#[derive(Debug, Clone)]
pub struct Access {
    /// Bearer token.
    pub token: Option<String>,
    /// The certificate to trust, in PEM, for `https`.
    pub certificate: Option<Vec<u8>>,
    /// Deadline of a call, retries included.
    pub deadline: Duration,
}

impl Default for Access {
    fn default() -> Self {
        Self { token: None, certificate: None, deadline: Duration::from_secs(60) }
    }
}

/// Opens parts with local files; the others are reached through the first server of `addresses` that has them.
///
/// # Errors
/// If a server does not reply in time, refuses the token, or no one has a part: with the first and the second of the hints.
pub fn open_parts(
    cut: &PartitionedDataset,
    addresses: &[String],
    access: &Access,
    (token_hint, address_hint): (&str, &str),
) -> Result<Vec<PartAccess>> {
    let mut servers = Vec::new();
    let complete = (0..cut.num_parts()).all(|part| cut.has_part(part));
    for address in addresses.iter().filter(|_| !complete) {
        let client = Client::connect(&ClientConfig {
            token: access.token.clone(),
            certificate: access.certificate.clone(),
            deadline: access.deadline,
            ..ClientConfig::new(address)
        })?;
        let abouts = client.describe().map_err(|e| match e.kind() {
            Kind::Usage => e.hint(token_hint),
            _ => e,
        })?;
        servers.push((client, abouts.iter().map(|about| about.part).collect::<Vec<_>>()));
    }
    let find = |part: usize| {
        if cut.has_part(part) {
            return PartAccess::open(cut, part);
        }
        let server = servers.iter().find(|(_, parts)| parts.contains(&part));
        server.map(|(client, _)| PartAccess::Remote(client.part(part))).ok_or_else(|| {
            let dir = cut.dir().display();
            Error::usage(format!("part {part} is neither in {dir} nor at a server"))
                .hint(address_hint)
        })
    };
    (0..cut.num_parts()).map(find).collect()
}

/// Describes the columns of a node type in each part, of all that parts say of their types.
///
/// # Errors
/// If a part has no such nodes, or belongs to another graph or partition.
pub fn describe_type(
    cut: &PartitionedDataset,
    all: &[Vec<Description>],
    ntype: &str,
) -> Result<Vec<Description>> {
    let ranges = &cut.node_type(ntype)?.ranges;
    let mut abouts: Vec<Description> = Vec::new();
    for (part, (of_part, range)) in all.iter().zip(ranges.windows(2)).enumerate() {
        let shape = |a: &Description| (a.feature_width, a.sparse, a.outputs);
        let known = |about: &&Description| {
            about.ntype == ntype
                && about.nodes == range[1] - range[0]
                && abouts.first().is_none_or(|first| shape(first) == shape(about))
        };
        let types = cut.manifest().node_types.len();
        let about = of_part.iter().find(known).filter(|_| of_part.len() == types);
        let other = || {
            let text = format!("part {part} belongs to another graph or partition");
            Error::invalid(text).hint("serve the parts of the run's partition")
        };
        abouts.push(about.ok_or_else(other)?.clone());
    }
    Ok(abouts)
}

impl PartAccess {
    /// A part with local files.
    ///
    /// # Errors
    /// If there is no such part, or it is damaged.
    pub fn open(cut: &PartitionedDataset, part: usize) -> Result<Self> {
        Ok(Self::Local(Arc::new(ServedPart::open(cut, part)?)))
    }
}
