//! Peer servers: machines of a run that serve their parts to each other, without configuration. The
//! first rank of each machine serves, with a certificate and a token made for the run, which are
//! exchanged with the addresses through the ranks' own connections.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use gnarl_common::{Context, Error, Kind, Result};
use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{
    Client, ClientConfig, PartAccess, ServedPart, Server, ServerConfig, Tls, random_token,
};
use if_addrs::{IfAddr, Ifv4Addr, get_if_addrs};
use serde::{Deserialize, Serialize};

use super::ranks::Ranks;
use crate::data::shares::parts_of;

/// Connection data of a machine's server.
#[derive(Default, Serialize, Deserialize)]
struct Invitation {
    /// Addresses with the prefix lengths of their networks.
    addresses: Vec<(Ipv4Addr, u32)>,
    port: u16,
    certificate: Vec<u8>,
    token: String,
}

/// Opens this machine's parts, and connects to the machines that have the others.
pub(super) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: &Ranks<'_>,
) -> Result<(Vec<PartAccess>, Option<Server>)> {
    let machines = machines(ranks.hosts)?;
    let parts =
        |machine: &Range<usize>| parts_of(machine.clone(), ranks.hosts.len(), cut.num_parts());
    let here = ranks.comm.rank();
    let mine = machines.iter().find(|machine| machine.contains(&here)).expect("all ranks have one");
    let mut held = Vec::new();
    for part in parts(mine) {
        let part = ServedPart::open(cut, part).while_doing(|| {
            format!("{} is to have part {part} of {}", ranks.hosts[here], cut.dir().display())
        });
        held.push(Arc::new(part?));
    }
    let (server, invitations) = match machines.len() {
        1 => (None, Vec::new()),
        _ => invite(config, ranks, mine.start == here, &held)?,
    };
    let clients: Vec<Option<Client>> = machines
        .iter()
        .map(|machine| {
            let invitation = invitations.get(machine.start).filter(|_| machine != mine);
            invitation.map(|i| connect(config, i, &invitations[0].token)).transpose()
        })
        .collect::<Result<_>>()?;
    let find = |part: usize| {
        if let Some(held) = held.iter().find(|held| held.part() == part) {
            return PartAccess::Local(held.clone());
        }
        let at =
            machines.iter().position(|m| parts(m).contains(&part)).expect("parts are shared out");
        let client = clients[at].as_ref().expect("another machine's part");
        PartAccess::Remote(client.part(part))
    };
    Ok(((0..cut.num_parts()).map(find).collect(), server))
}

/// The ranks of each machine.
fn machines(hosts: &[String]) -> Result<Vec<Range<usize>>> {
    let mut machines: Vec<Range<usize>> = Vec::new();
    for (rank, host) in hosts.iter().enumerate() {
        let known = machines.iter().position(|machine| hosts[machine.start] == *host);
        match known {
            None => machines.push(rank..rank + 1),
            Some(at) if at + 1 == machines.len() => machines[at].end = rank + 1,
            Some(_) => {
                let text =
                    format!("ranks of {host} are not consecutive: rank {rank} is on it again");
                return Err(Error::usage(text).hint(
                    "start the ranks of a machine one after the other: mpirun --map-by slot",
                ));
            }
        }
    }
    Ok(machines)
}

/// Serves `held` if this rank `serves`, and sends the invitation to all ranks; returns those of
/// all.
fn invite(
    config: &RunConfig,
    ranks: &Ranks<'_>,
    serves: bool,
    held: &[Arc<ServedPart>],
) -> Result<(Option<Server>, Vec<Invitation>)> {
    let token = if ranks.comm.rank() == 0 { random_token()? } else { String::new() };
    let first = ranks.comm.all_gather("sharing a token", token.as_bytes())?;
    let token = String::from_utf8_lossy(&first[0]).into_owned();
    let (mut server, mut invitation) = (None, Invitation::default());
    if serves {
        let addresses = addresses()?;
        let names = addresses.iter().map(|(address, _)| address.to_string()).collect();
        let tls = Tls::self_signed(names)?;
        let certificate = tls.certificate.clone();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let started = Server::start(
            held.to_vec(),
            &ServerConfig {
                listen: SocketAddr::from(([0, 0, 0, 0], config.partition.port)),
                token: Some(token.clone()),
                tls: Some(tls),
                threads: cores,
                ..ServerConfig::default()
            },
        )?;
        let port = started.address().port();
        server = Some(started);
        invitation = Invitation { addresses, port, certificate, token };
    }
    let bytes = serde_json::to_vec(&invitation).unwrap_or_default();
    let all = ranks.comm.all_gather("sharing addresses", &bytes)?;
    let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes);
    let all = all.iter().map(read).collect::<std::result::Result<_, _>>();
    let all = all.map_err(|e| Error::new(Kind::Rank, format!("invalid address of a rank: {e}")))?;
    Ok((server, all))
}

/// Connects to a machine at the address in a shared network, or at its first one.
fn connect(config: &RunConfig, invitation: &Invitation, token: &str) -> Result<Client> {
    let own = addresses()?;
    let near = |&&(address, prefix): &&(Ipv4Addr, u32)| {
        let network = |ip: Ipv4Addr| u32::from(ip).checked_shr(32 - prefix).unwrap_or(0);
        own.iter().any(|&(mine, _)| network(mine) == network(address))
    };
    let address = invitation.addresses.iter().find(near).or(invitation.addresses.first());
    let (address, _) = address
        .ok_or_else(|| Error::new(Kind::Rank, "a machine has no address but its own loopback"))?;
    Client::connect(&ClientConfig {
        token: Some(token.into()),
        certificate: Some(invitation.certificate.clone()),
        deadline: Duration::from_secs_f64(config.train.deadline_seconds),
        ..ClientConfig::new(format!("https://{address}:{}", invitation.port))
    })
}

/// This machine's addresses for others; its loopback if it has no other.
fn addresses() -> Result<Vec<(Ipv4Addr, u32)>> {
    let all = get_if_addrs()
        .map_err(|e| Error::new(Kind::Io, format!("cannot list this machine's addresses: {e}")))?;
    let address = |interface: if_addrs::Interface| match interface.addr {
        IfAddr::V4(Ifv4Addr { ip, netmask, .. }) if !IpAddr::V4(ip).is_loopback() => {
            Some((ip, u32::from(netmask).count_ones()))
        }
        _ => None,
    };
    let mut all: Vec<_> = all.into_iter().filter_map(address).collect();
    if all.is_empty() {
        all.push((Ipv4Addr::LOCALHOST, 8));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_machine_follow_each_other() {
        let hosts = |names: &str| -> Vec<String> { names.chars().map(String::from).collect() };
        assert_eq!(machines(&hosts("aabccc")).unwrap(), [0..2, 2..3, 3..6]);
        let error = machines(&hosts("aba")).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains("rank 2 is on it again"), "{error}");
    }
}
