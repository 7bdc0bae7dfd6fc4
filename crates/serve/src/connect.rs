//! Access to all parts of a partition: local ones, and those of servers.

use std::sync::Arc;
use std::time::Duration;

use gnarl_common::{Error, Kind, Result};
use gnarl_partition::PartitionedDataset;

use crate::access::PartAccess;
use crate::client::{Client, ClientConfig};
use crate::files::RemoteDescription;
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

impl Access {
    /// A server, and its parts by what it says of them. The hint is for one that wants another token.
    fn server(&self, address: &str, token_hint: &str) -> Result<(Client, Vec<usize>)> {
        let client = Client::connect(&ClientConfig {
            token: self.token.clone(),
            certificate: self.certificate.clone(),
            deadline: self.deadline,
            ..ClientConfig::new(address)
        })?;
        let abouts = client.describe().map_err(|e| match e.kind() {
            Kind::Usage => e.hint(token_hint),
            _ => e,
        })?;
        Ok((client, abouts.iter().map(|about| about.part).collect()))
    }
}

/// Finds the description of the partition whose parts servers have, at the first of `addresses` with a catalog of nodes.
///
/// # Errors
/// If a server does not reply in time, or refuses the token, with the hint; if none has a catalog, or they have parts of
/// different partitions.
pub fn find_description(
    addresses: &[String],
    access: &Access,
    token_hint: &str,
) -> Result<RemoteDescription> {
    let mut found: Option<RemoteDescription> = None;
    for address in addresses {
        let (client, _) = access.server(address, token_hint)?;
        let about = RemoteDescription::of(&client)?;
        match &found {
            Some(first) if first.manifest() != about.manifest() => {
                let message =
                    format!("{address} has parts of another partition than {}", addresses[0]);
                let error = Error::usage(message);
                return Err(error.hint("name servers of the parts of one partition"));
            }
            Some(first) if first.has_catalog() => {}
            _ => found = Some(about),
        }
    }
    match found {
        Some(about) if about.has_catalog() => Ok(about),
        Some(_) => {
            let message = format!("{}: no catalog of the nodes there", addresses.join(", "));
            Err(Error::usage(message).hint("copy nodes/ of the partition to one of the servers"))
        }
        None => Err(Error::usage("no servers are named").hint("such as http://10.0.0.1:7070")),
    }
}

/// The servers at `addresses`, all of which make batches.
///
/// # Errors
/// If a server does not reply in time, refuses the token, with the hint, or makes no batches.
pub fn batch_servers(
    addresses: &[String],
    access: &Access,
    token_hint: &str,
) -> Result<Vec<Client>> {
    let one = |address: &String| {
        let (client, _) = access.server(address, token_hint)?;
        client.check_batches()?;
        Ok(client)
    };
    addresses.iter().map(one).collect()
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
        servers.push(access.server(address, token_hint)?);
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
