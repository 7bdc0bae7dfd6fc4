//! A remote part.

mod targets;

use arrow_array::RecordBatch;
use gnarl_common::{Context, Error, Result};
use gnarl_graph::Triple;
use gnarl_sample::parts::{Answer, HopRequest, NeighborService};
use gnarl_store::Rows;

use crate::client::Client;
use crate::codec::{embedding_of, hop_reply, nodes_batch, push_batch, rows_of, timed_batch};
use crate::command::{Column, Command, Whole};
use crate::served::Description;

/// A client of one part: samples neighbors and gathers features through the part's server.
#[derive(Clone)]
pub struct RemotePart {
    client: Client,
    part: usize,
}

impl Client {
    /// Part `part` of the server.
    pub fn part(&self, part: usize) -> RemotePart {
        RemotePart { client: self.clone(), part }
    }
}

impl RemotePart {
    /// Describes the part's columns of each node type.
    ///
    /// # Errors
    /// If the server does not have the part, or does not reply.
    pub fn describe(&self) -> Result<Vec<Description>> {
        let mut all = self.client.describe()?;
        all.retain(|about| about.part == self.part);
        if all.is_empty() {
            let (uri, part) = (self.client.uri(), self.part);
            return Err(Error::usage(format!("{uri} does not have part {part}")));
        }
        Ok(all)
    }

    /// Fetches all values of a column of a node type.
    ///
    /// # Errors
    /// If nodes have no such column, or the server does not reply.
    pub(crate) fn whole(&self, ntype: Option<&str>, column: Column) -> Result<Vec<RecordBatch>> {
        let ntype = ntype.map(String::from);
        let reply = self.client.whole(Whole { part: self.part, ntype, column });
        reply.while_doing(|| format!("reading {} of part {}", column.name(), self.part))
    }

    /// Gathers features of nodes that the part owns, by dataset ids.
    ///
    /// # Errors
    /// If a node is not the part's own, nodes have no features, or the server does not reply.
    pub fn features(&self, nodes: &[u64]) -> Result<Rows> {
        self.begin_features(None, nodes.to_vec())()
    }

    /// Begins to gather features of nodes of a type that the part owns; the returned function waits
    /// for them. It fails as [`RemotePart::features`] does, or if the number of rows is not that of
    /// the nodes.
    pub fn begin_features(
        &self,
        ntype: Option<&str>,
        nodes: Vec<u64>,
    ) -> impl FnOnce() -> Result<Rows> + Send + use<> {
        let part = self.part;
        let command = self.gather(ntype, Column::Stored);
        let begun = nodes_batch(&nodes).map(|about| self.client.begin(command, about));
        move || {
            let rows = begun.and_then(|reply| reply()).and_then(|batches| rows_of(&batches));
            rows.while_doing(|| format!("gathering features of part {part}"))
        }
    }

    /// Gathers labels of nodes of a type that the part owns.
    ///
    /// # Errors
    /// If a node is not the part's own, nodes have no labels, or the server does not reply.
    pub(crate) fn labels(&self, ntype: Option<&str>, nodes: &[u64]) -> Result<Vec<RecordBatch>> {
        self.client.begin(self.gather(ntype, Column::Label), nodes_batch(nodes)?)()
    }

    /// Gathers embeddings of nodes that the part owns.
    ///
    /// # Errors
    /// If a node has no embedding there, or the server does not reply.
    pub fn embedding(&self, nodes: &[u64]) -> Result<Vec<f32>> {
        let about = nodes_batch(nodes)?;
        let reply = self.client.begin(self.gather(None, Column::Embedding), about)();
        let rows = reply.and_then(|batches| embedding_of(&batches));
        rows.while_doing(|| format!("gathering embeddings of part {}", self.part))
    }

    /// Pushes gradients of the embeddings of `nodes`, `nodes × width` values, and returns the
    /// embeddings after the step. `step` counts the pushes of the client `from`, from 1 on, so that
    /// a retried call is applied once.
    ///
    /// # Errors
    /// As [`RemotePart::embedding`], or if lengths disagree; no row has changed then.
    pub fn push(
        &self,
        nodes: &[u64],
        grads: &[f32],
        lr: f32,
        (from, step): (u64, u64),
    ) -> Result<Vec<f32>> {
        let pushed = || {
            let width = grads.len() / nodes.len().max(1);
            let about = push_batch(nodes, grads, width)?;
            let command = Command::Push { part: self.part, lr, from, step };
            embedding_of(&self.client.begin(command, about)()?)
        };
        pushed().while_doing(|| format!("pushing gradients to part {}", self.part))
    }

    fn gather(&self, ntype: Option<&str>, column: Column) -> Command {
        Command::Gather { part: self.part, ntype: ntype.map(String::from), column }
    }
}

impl NeighborService for RemotePart {
    fn ask(&self, request: HopRequest) -> Answer {
        self.begin_sample(None, &request)
    }
}

/// The edges of one type of a remote part.
pub(crate) struct RemoteEdges {
    pub part: RemotePart,
    pub etype: Triple,
}

impl NeighborService for RemoteEdges {
    fn ask(&self, request: HopRequest) -> Answer {
        self.part.begin_sample(Some(&self.etype), &request)
    }
}

impl RemotePart {
    fn begin_sample(&self, etype: Option<&Triple>, request: &HopRequest) -> Answer {
        let command = Command::sample(self.part, etype, request);
        let part = self.part;
        let about = match &request.as_of {
            None => nodes_batch(&request.nodes),
            Some(as_of) => timed_batch(&request.nodes, &as_of.times),
        };
        let begun = about.map(|about| self.client.begin(command, about));
        Box::new(move || {
            let reply = begun.and_then(|reply| reply()).and_then(|batches| hop_reply(&batches));
            reply.while_doing(|| format!("sampling from part {part}"))
        })
    }
}
