//! The reply to an exchange, piece by piece.

use std::sync::Arc;

use arrow_array::RecordBatch;
use gnarl_common::{Error, Kind, Result};
use gnarl_graph::Triple;
use gnarl_graph::triples::Side;
use gnarl_sample::parts::{AsOf, HopRequest};

use crate::codec::{found_batch, gradients_of, keys_of, narrow, nodes_of, times_of, triples_batch};
use crate::command::{self, Column, Command};
use crate::served::ServedPart;
use crate::targets::{STRETCH, distinct};

/// Most nodes of a piece of neighbors.
const WINDOW: usize = 1 << 16;
/// Edges that match a key, as far as can be known before they are looked for.
const MATCHES: u64 = 64;
/// Bytes of a known edge in a reply.
const EDGE: u64 = 12;

/// A request and the part that it is about.
pub(crate) struct Answers {
    part: Arc<ServedPart>,
    request: Request,
    /// Nodes, places or keys that were answered.
    done: usize,
    /// True once there was a piece: a reply has at least one, of the types of its columns.
    begun: bool,
}

/// A request about nodes.
enum Request {
    Gather { ntype: Option<String>, column: Column, nodes: Vec<u64> },
    Push { nodes: Vec<u64>, grads: Vec<f32>, lr: f32, from: (u64, u64) },
    Sample { etype: Option<Triple>, hop: HopRequest },
    Targets { split: usize, places: Vec<u32> },
    Known { side: Side, keys: Vec<[u32; 2]>, train: bool },
}

impl Answers {
    /// The answers of `part` to a command with its `batches`, about at most `most` nodes.
    ///
    /// # Errors
    /// If the request has another form; [`Kind::Limit`] if it is about more nodes.
    pub fn of(
        part: Arc<ServedPart>,
        command: Command,
        batches: &[RecordBatch],
        most: usize,
    ) -> Result<Self> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if rows > most {
            let message = format!("{rows} nodes are asked about, this server takes at most {most}");
            return Err(Error::new(Kind::Limit, message).hint("ask in several calls"));
        }
        let nodes = || nodes_of(batches);
        let request = match command {
            Command::Batch { .. } => return Err(Error::usage("a batch is no rows of nodes")),
            Command::Gather { ntype, column, .. } => {
                Request::Gather { ntype, column, nodes: nodes()? }
            }
            Command::Push { lr, from, step, .. } => {
                let grads = gradients_of(batches)?;
                Request::Push { nodes: nodes()?, grads, lr, from: (from, step) }
            }
            Command::Sample { etype, fanout, rule, key, edge_features, as_of, .. } => {
                let etype = etype.as_deref().map(str::parse).transpose()?;
                let as_of = match as_of {
                    Some(rule) => Some(AsOf { times: times_of(batches)?, rule: rule.parse()? }),
                    None => None,
                };
                let hop = command::hop(nodes()?, (fanout, &rule), key, edge_features, as_of)?;
                let times = hop.as_of.as_ref().map_or(hop.nodes.len(), |as_of| as_of.times.len());
                if times != hop.nodes.len() {
                    let nodes = hop.nodes.len();
                    let message = format!("invalid request: {times} times of {nodes} nodes");
                    return Err(Error::invalid(message));
                }
                Request::Sample { etype, hop }
            }
            Command::Targets { split, .. } => {
                Request::Targets { split, places: narrow(&nodes()?)? }
            }
            Command::Known { side, train, .. } => {
                let keys = keys_of(batches)?;
                Request::Known { side, keys: distinct(&keys).collect(), train }
            }
        };
        Ok(Self { part, request, done: 0, begun: false })
    }

    /// Nodes, places or keys in all.
    fn count(&self) -> usize {
        match &self.request {
            Request::Gather { nodes, .. } | Request::Push { nodes, .. } => nodes.len(),
            Request::Sample { hop, .. } => hop.nodes.len(),
            Request::Targets { places, .. } => places.len(),
            Request::Known { keys, .. } => keys.len(),
        }
    }

    /// The number of nodes from the next on whose rows fill `bytes`, at least one if one is left.
    ///
    /// # Errors
    /// If the part has no such column or edges.
    fn fit(&self, bytes: u64) -> Result<usize> {
        let left = self.count() - self.done;
        let fits = match &self.request {
            Request::Gather { ntype, column, .. } => {
                bytes / self.part.row_bytes(ntype.as_deref(), *column)?.max(1)
            }
            // It is applied as a whole, or not at all.
            Request::Push { .. } => left as u64,
            // One pass over the edges of the part finds those of all keys.
            Request::Known { .. } => left as u64,
            Request::Sample { etype, hop } => {
                // Of a window, so that not all nodes are looked up for each piece.
                let nodes = &hop.nodes[self.done..self.count().min(self.done + WINDOW)];
                let edges = bytes / self.part.edge_bytes(etype.as_ref(), hop.edge_features)?;
                self.part.neighbors(etype.as_ref())?.nodes_within(nodes, hop.fanout, edges)? as u64
            }
            Request::Targets { .. } => (bytes / self.part.target_bytes()).min(STRETCH),
        };
        let fits = usize::try_from(fits.max(1)).unwrap_or(usize::MAX);
        Ok(fits.min(left))
    }

    /// Returns whether the reply has no more than about `bytes`.
    ///
    /// # Errors
    /// As [`Answers::fit`].
    pub fn is_within(&self, bytes: u64) -> Result<bool> {
        match &self.request {
            Request::Push { grads, .. } => Ok(size_of_val(&grads[..]) as u64 <= bytes),
            Request::Known { keys, .. } => Ok(keys.len() as u64 * MATCHES * EDGE <= bytes),
            _ => Ok(self.fit(bytes)? == self.count()),
        }
    }

    /// Returns whether there was the last piece.
    pub fn is_done(&self) -> bool {
        self.begun && self.done == self.count()
    }

    /// The next piece, of about `bytes`; none after the last.
    ///
    /// # Errors
    /// If a node is not the part's, or the part lacks what is asked for.
    pub fn next(&mut self, bytes: u64) -> Result<Option<RecordBatch>> {
        if self.is_done() {
            return Ok(None);
        }
        let piece = self.done..self.done + self.fit(bytes)?;
        self.begun = true;
        self.done = piece.end;
        let part = &self.part;
        match &self.request {
            Request::Gather { ntype, column, nodes } => {
                part.gather(ntype.as_deref(), *column, &nodes[piece])
            }
            Request::Push { nodes, grads, lr, from } => part.push(nodes, grads, *lr, *from),
            Request::Sample { etype, hop } => part.sample(etype.as_ref(), &hop.of(piece)),
            Request::Targets { split, places } => {
                let before = piece.start as u32;
                let mut found = part.targets(*split, &places[piece])?;
                found.positions.iter_mut().for_each(|position| *position += before);
                found_batch(found, "position", part.target_feature_width())
            }
            Request::Known { side, keys, train } => {
                triples_batch(part.known(*side, &keys[piece], *train)?)
            }
        }
        .map(Some)
    }
}
