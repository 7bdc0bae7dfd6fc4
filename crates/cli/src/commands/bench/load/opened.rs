//! Parts that count what they are asked for.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_partition::PartitionedDataset;
use gnarl_sample::local_parts;
use gnarl_sample::parts::{Load, LocalPart, NeighborService};
#[cfg(feature = "serve")]
use gnarl_serve::{Client, ClientConfig, PartAccess, ServedPart, Server, ServerConfig};

/// A part to sample from.
pub struct Opened {
    /// The sampling service of each edge type.
    pub services: Vec<Arc<dyn NeighborService>>,
    counted: Counted,
}

/// Where load is counted.
enum Counted {
    Here(Vec<LocalPart>),
    #[cfg(feature = "serve")]
    AtServer(Arc<ServedPart>, Server),
}

/// The load of a part.
pub struct PartLoad {
    pub load: Load,
    /// Bytes of calls and of replies, if the part is served.
    pub bytes: Option<(u64, u64)>,
}

/// Returns whether a graph has one type of nodes and one of edges.
pub fn is_homogeneous(parts: &PartitionedDataset) -> Result<bool> {
    Ok(parts.manifest().node_types.len() == 1 && parts.edge_types()?.len() == 1)
}

impl Opened {
    /// A part in this process.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn local(parts: &PartitionedDataset, part: usize) -> Result<Self> {
        let lists: Vec<LocalPart> = match is_homogeneous(parts)? {
            true => vec![LocalPart::open(parts, part)?],
            false => local_parts(parts, part)?.into_iter().map(|(_, lists)| lists).collect(),
        };
        let service = |part: &LocalPart| Arc::new(part.clone()) as Arc<dyn NeighborService>;
        Ok(Self { services: lists.iter().map(service).collect(), counted: Counted::Here(lists) })
    }

    /// A part behind a server on this machine.
    ///
    /// # Errors
    /// If it is damaged, or no port is free.
    #[cfg(feature = "serve")]
    pub fn served(parts: &PartitionedDataset, part: usize) -> Result<Self> {
        let held = Arc::new(ServedPart::open(parts, part)?);
        let server = Server::start(vec![held.clone()], &ServerConfig::default())?;
        let client = Client::connect(&ClientConfig::new(server.uri()))?;
        let access = PartAccess::Remote(client.part(part));
        let services = match is_homogeneous(parts)? {
            true => vec![access.neighbors(None)?],
            false => {
                let types = parts.edge_types()?;
                let service = types.iter().map(|of| access.neighbors(Some(&of.triple)));
                service.collect::<Result<_>>()?
            }
        };
        Ok(Self { services, counted: Counted::AtServer(held, server) })
    }

    /// The load so far.
    pub fn load(&self) -> PartLoad {
        match &self.counted {
            Counted::Here(lists) => {
                PartLoad { load: lists.iter().map(LocalPart::load).sum(), bytes: None }
            }
            #[cfg(feature = "serve")]
            Counted::AtServer(part, server) => {
                let traffic = server.traffic();
                PartLoad { load: part.load(), bytes: Some((traffic.received, traffic.sent)) }
            }
        }
    }
}
