//! Access to all parts of a partition: local ones, and those of servers.

use std::sync::Arc;
use std::time::Duration;

use gnarl_common::{Error, Kind, Result};
use gnarl_partition::PartitionedDataset;

use crate::access::PartAccess;
use crate::calls::Describe;
use crate::client::{Client, ClientConfig};
use crate::command;
use crate::remote_description::RemoteDescription;
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

/// A server that was reached, and the numbers of its parts.
struct Reached {
    client: Client,
    parts: Vec<usize>,
}

/// The servers of `addresses` that reply, in that order: all of them, unless the others `suffice`, which are not waited for
/// beyond the first attempt.
///
/// # Errors
/// If a server that is needed does not reply in time, or one wants another token, with the hint.
fn reach(
    addresses: &[String],
    access: &Access,
    token_hint: &str,
    suffice: &dyn Fn(&[Reached]) -> Result<bool>,
) -> Result<Vec<Reached>> {
    let connect = |address: &String| {
        Client::connect(&ClientConfig {
            token: access.token.clone(),
            certificate: access.certificate.clone(),
            deadline: access.deadline,
            ..ClientConfig::new(address)
        })
    };
    let clients = addresses.iter().map(connect).collect::<Result<Vec<_>>>()?;
    let first: Vec<_> = clients.iter().map(|client| client.start_once(Describe)).collect();
    let mut reached = Vec::new();
    let mut silent = Vec::new();
    for (client, wait) in clients.into_iter().zip(first) {
        match wait() {
            Ok(replies) => reached.push(Reached { parts: parts_of(&replies)?, client }),
            Err(e) if e.kind() == Kind::Rank => silent.push((client, e)),
            Err(e) => return Err(refused(e, token_hint)),
        }
    }
    if !silent.is_empty() && !suffice(&reached)? {
        // They may be starting.
        let again: Vec<_> = silent.iter().map(|(client, _)| client.start(Describe)).collect();
        let mut left = Vec::new();
        for ((client, _), wait) in silent.into_iter().zip(again) {
            match wait() {
                Ok(replies) => reached.push(Reached { parts: parts_of(&replies)?, client }),
                Err(e) if e.kind() == Kind::Rank => left.push((client, e)),
                Err(e) => return Err(refused(e, token_hint)),
            }
        }
        silent = left;
        if !silent.is_empty() && !suffice(&reached)? {
            return Err(silent.swap_remove(0).1);
        }
    }
    for (_, error) in &silent {
        tracing::warn!("others suffice for a server that does not reply: {error}");
    }
    let place = |of: &Reached| addresses.iter().position(|address| address == of.client.uri());
    reached.sort_by_key(place);
    Ok(reached)
}

/// The error of a server that replied: with the hint if it wants another token.
fn refused(error: Error, token_hint: &str) -> Error {
    if error.kind() == Kind::Usage { error.hint(token_hint) } else { error }
}

/// The numbers of the parts that a server describes.
fn parts_of(replies: &[Vec<u8>]) -> Result<Vec<usize>> {
    let mut parts = Vec::new();
    for body in replies {
        let abouts: Vec<Description> = command::read("the description", body)?;
        parts.extend(abouts.iter().map(|about| about.part));
    }
    Ok(parts)
}

/// Finds the description of the partition whose parts servers have, at the first of `addresses` with a catalog of nodes.
///
/// # Errors
/// If no server with a catalog replies in time, one wants another token, with the hint, or they have parts of different
/// partitions.
pub fn find_description(
    addresses: &[String],
    access: &Access,
    token_hint: &str,
) -> Result<RemoteDescription> {
    if addresses.is_empty() {
        return Err(Error::usage("no servers are named").hint("such as http://10.0.0.1:7070"));
    }
    let about = |of: &Reached| RemoteDescription::of(&of.client);
    let suffice =
        |reached: &[Reached]| Ok(reached.iter().flat_map(about).any(|about| about.has_catalog()));
    let mut found: Option<RemoteDescription> = None;
    let mut gone = None;
    for of in reach(addresses, access, token_hint, &suffice)? {
        match (about(&of), &found) {
            (Err(e), _) if e.kind() == Kind::Rank => drop(gone.get_or_insert(e)),
            (Err(e), _) => return Err(e),
            (Ok(about), Some(first)) if !first.manifest().is_of_same_parts(about.manifest()) => {
                return Err(of_others(of.client.uri()));
            }
            (Ok(_), Some(first)) if first.has_catalog() => {}
            (Ok(about), _) => found = Some(about),
        }
    }
    found.filter(RemoteDescription::has_catalog).ok_or_else(|| {
        let message = format!("{}: no catalog of the nodes there", addresses.join(", "));
        let none =
            || Error::usage(message).hint("copy nodes/ of the partition to one of the servers");
        gone.unwrap_or_else(none)
    })
}

fn of_others(uri: &str) -> Error {
    let message = format!("{uri} has parts of another partition");
    Error::usage(message).hint("name servers of the parts of one partition")
}

/// The servers at `addresses` that make batches, at least one.
///
/// # Errors
/// If none makes batches or replies in time, or one wants another token, with the hint.
pub fn batch_servers(
    addresses: &[String],
    access: &Access,
    token_hint: &str,
) -> Result<Vec<Client>> {
    let asked = |reached: &[Reached]| -> Vec<Result<bool>> {
        let waits: Vec<_> = reached.iter().map(|of| of.client.makes_batches()).collect();
        waits.into_iter().map(|wait| wait()).collect()
    };
    let suffice =
        |reached: &[Reached]| Ok(asked(reached).iter().any(|makes| matches!(makes, Ok(true))));
    let reached = reach(addresses, access, token_hint, &suffice)?;
    let mut makers = Vec::new();
    let mut gone = None;
    for (makes, Reached { client, .. }) in asked(&reached).into_iter().zip(reached) {
        match makes {
            Ok(true) => makers.push(client),
            Ok(false) => {}
            Err(e) => drop(gone.get_or_insert(e)),
        }
    }
    if makers.is_empty() {
        let message = format!("no server makes batches: {}", addresses.join(", "));
        let none = || Error::usage(message).hint("start one with gnarl serve --batches");
        return Err(gone.unwrap_or_else(none));
    }
    Ok(makers)
}

/// Opens parts with local files; the others are reached through the first server of `addresses` that has them.
///
/// # Errors
/// If no server that has a part replies in time, one wants another token or has parts of another partition, or no one has a
/// part: with the first and the second of the hints.
pub fn open_parts(
    cut: &PartitionedDataset,
    addresses: &[String],
    access: &Access,
    (token_hint, address_hint): (&str, &str),
) -> Result<Vec<PartAccess>> {
    let missing: Vec<usize> = (0..cut.num_parts()).filter(|&part| !cut.has_part(part)).collect();
    let servers = match missing.is_empty() {
        true => Vec::new(),
        false => {
            let suffice = |reached: &[Reached]| {
                let has = |part| reached.iter().any(|of| of.parts.contains(part));
                Ok(missing.iter().all(has))
            };
            reach(addresses, access, token_hint, &suffice)?
        }
    };
    for Reached { client, .. } in &servers {
        // Those of ranks, and of earlier versions, describe no partition.
        let about = RemoteDescription::of(client);
        if about.is_ok_and(|about| !about.manifest().is_of_same_parts(cut.manifest())) {
            return Err(of_others(client.uri()));
        }
    }
    let find = |part: usize| {
        if cut.has_part(part) {
            return PartAccess::open(cut, part);
        }
        let server = servers.iter().find(|of| of.parts.contains(&part));
        server.map(|of| PartAccess::Remote(of.client.part(part))).ok_or_else(|| {
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
