//! The computation of a batch of requests.

use gnarl_common::{Error, Kind, Result};
use gnarl_graph::triples::Triples;
use gnarl_nn::Tensor;
use gnarl_train::{EdgeBatch, EdgeModel, Output, TrainedRun};
use hyper::StatusCode;
use tokio::sync::oneshot;

use super::refusal::Refusal;

/// Rows of the model that a request needs.
pub(super) enum Work {
    /// Rows of nodes.
    Nodes {
        /// Index of their type among those with outputs.
        of: usize,
        nodes: Vec<u32>,
        hidden: bool,
        last: bool,
    },
    /// Scores of edges.
    Edges(Triples),
}

/// Rows of the model, in the order of the request.
#[derive(Debug, Default)]
pub(super) struct Computed {
    pub hidden: Option<Tensor>,
    pub last: Option<Tensor>,
}

/// Work, and the place of its result.
pub(super) struct Job {
    pub work: Work,
    pub reply: oneshot::Sender<Result<Computed, Refusal>>,
}

/// Computes `jobs` together and replies to each: every node once for all of them, and all edges at once.
pub(super) fn compute(run: &TrainedRun, model: Option<&EdgeModel<'_>>, jobs: Vec<Job>) {
    // Nobody waits for a request whose connection was closed.
    let jobs: Vec<Job> = jobs.into_iter().filter(|job| !job.reply.is_closed()).collect();
    let hidden = Pass::run(run, Output::Hidden, &jobs);
    let last = Pass::run(run, Output::Last, &jobs);
    let mut scores = model.map(|model| Scores::of(model, &jobs));
    for Job { work, reply } in jobs {
        let computed = match (&work, &mut scores) {
            (Work::Nodes { of, nodes, hidden: of_hidden, last: of_last }, _) => {
                let rows = |pass: &Pass, asked: &bool| match asked {
                    true => pass.rows(*of, nodes).map(Some),
                    false => Ok(None),
                };
                rows(&hidden, of_hidden)
                    .and_then(|hidden| Ok(Computed { hidden, last: rows(&last, of_last)? }))
            }
            (Work::Edges(edges), Some(scores)) => scores.next(edges.len()),
            (Work::Edges(_), None) => Err(Refusal::bad("the run has no scores of edges")),
        };
        // The connection may have been closed meanwhile.
        let _ = reply.send(computed);
    }
}

/// Rows of one output, of all nodes of a batch, by type.
struct Pass {
    types: Vec<Rows>,
    failed: Option<Refusal>,
}

/// Rows of ascending nodes.
#[derive(Default, Clone)]
struct Rows {
    nodes: Vec<u32>,
    values: Vec<f32>,
    width: usize,
}

impl Pass {
    fn run(run: &TrainedRun, output: Output, jobs: &[Job]) -> Self {
        let count = run.node_types().len();
        let mut wanted = vec![Vec::new(); count];
        for job in jobs {
            if let Work::Nodes { of, nodes, hidden, last } = &job.work
                && (if output == Output::Hidden { *hidden } else { *last })
            {
                wanted[*of].extend_from_slice(nodes);
            }
        }
        let wanted: Vec<(usize, Vec<u32>)> = wanted
            .into_iter()
            .enumerate()
            .filter(|(_, nodes)| !nodes.is_empty())
            .map(|(of, mut nodes)| {
                nodes.sort_unstable();
                nodes.dedup();
                (of, nodes)
            })
            .collect();
        let mut types = vec![Rows::default(); count];
        if wanted.is_empty() {
            return Self { types, failed: None };
        }
        let computed = run.infer(output, &wanted, &mut |of, nodes, rows| {
            let all = &mut types[of];
            all.nodes.extend_from_slice(nodes);
            all.values.extend_from_slice(rows.data());
            all.width = rows.cols();
            Ok(())
        });
        Self { types, failed: computed.err().map(|e| refusal(&e)) }
    }

    fn rows(&self, of: usize, nodes: &[u32]) -> Result<Tensor, Refusal> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let Rows { nodes: known, values, width } = &self.types[of];
        let mut found = Vec::with_capacity(nodes.len() * width);
        for node in nodes {
            let row = known.partition_point(|other| other < node);
            found.extend_from_slice(&values[row * width..(row + 1) * width]);
        }
        Ok(Tensor::from_vec(nodes.len(), *width, found))
    }
}

/// Scores of all edges of a batch, in the order of the jobs.
struct Scores {
    values: Vec<f32>,
    width: usize,
    given: usize,
    failed: Option<Refusal>,
}

impl Scores {
    fn of(model: &EdgeModel<'_>, jobs: &[Job]) -> Self {
        let mut batch = EdgeBatch::default();
        for job in jobs {
            if let Work::Edges(edges) = &job.work {
                batch.edges.heads.extend_from_slice(&edges.heads);
                batch.edges.relations.extend_from_slice(&edges.relations);
                batch.edges.tails.extend_from_slice(&edges.tails);
            }
        }
        let mut all = Self { values: Vec::new(), width: 0, given: 0, failed: None };
        if !batch.edges.is_empty() {
            let computed = model.score(&batch, &mut |_, scores| {
                all.values.extend_from_slice(scores.data());
                all.width = scores.cols();
                Ok(())
            });
            all.failed = computed.err().map(|e| refusal(&e));
        }
        all
    }

    /// The scores of the next `count` edges.
    fn next(&mut self, count: usize) -> Result<Computed, Refusal> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let range = self.given * self.width..(self.given + count) * self.width;
        self.given += count;
        let scores = Tensor::from_vec(count, self.width, self.values[range].to_vec());
        Ok(Computed { hidden: None, last: Some(scores) })
    }
}

/// The refusal of a request that cannot be computed.
fn refusal(error: &Error) -> Refusal {
    if error.kind() == Kind::Usage {
        return Refusal::bad(error.to_string());
    }
    tracing::error!("inference failed: {error}");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "inference failed, see the server's log")
}
