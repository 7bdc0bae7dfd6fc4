//! Lists of one hop from the replies of several parts.

use super::hop::HopReply;
use crate::temporal::TemporalRule;

/// A reply and the destinations it covers, ascending.
pub(crate) struct Source {
    pub asked: Vec<u32>,
    pub reply: HopReply,
}

/// Edges of a hop before they are numbered within the batch.
#[derive(Default)]
pub(crate) struct Merged {
    /// In-degree of each destination in the whole graph.
    pub asked_degrees: Vec<u32>,
    pub indptr: Vec<u32>,
    /// Dataset id of each edge's source, and its in-degree; 0 if unknown.
    pub sources: Vec<u32>,
    pub degrees: Vec<u32>,
    pub weights: Option<Vec<f32>>,
    /// Features of each edge, in replies that have them.
    pub edge_features: Vec<f32>,
}

/// Merges the lists of `num_dst` destinations, with at most `fanout` edges each; those drawn at times by `as_of`.
pub(crate) fn merge(
    num_dst: usize,
    fanout: u32,
    sources: &[Source],
    as_of: Option<TemporalRule>,
) -> Merged {
    let weighted = sources.iter().any(|s| s.reply.weights.is_some());
    let mut merged = Merged { weights: weighted.then(Vec::new), ..Merged::default() };
    merged.indptr.push(0);
    let mut next = vec![0usize; sources.len()];
    let (mut lists, mut edges) = (Vec::new(), Vec::new());
    for dst in 0..num_dst as u32 {
        lists.clear();
        for (source, at) in sources.iter().zip(&mut next) {
            if source.asked.get(*at) == Some(&dst) {
                lists.push((&source.reply, *at));
                *at += 1;
            }
        }
        let degrees = lists.iter().map(|&(reply, at)| reply.asked_degrees[at]);
        merged.asked_degrees.push(match as_of {
            // What each part has at the time.
            Some(_) => degrees.sum(),
            None => degrees.max().unwrap_or(0),
        });
        edges.clear();
        for &(reply, at) in &lists {
            let range = reply.indptr[at] as usize..reply.indptr[at + 1] as usize;
            edges.extend(range.map(|edge| (reply, edge)));
        }
        if lists.len() > 1 {
            match as_of {
                Some(rule) => choose_at_times(rule, fanout as usize, &mut edges),
                None => choose(fanout as usize, &mut edges),
            }
        }
        edges.iter().for_each(|&(reply, edge)| merged.push(reply, edge));
        merged.indptr.push(merged.sources.len() as u32);
    }
    merged
}

/// Keeps the `fanout` edges with the smallest numbers, ties broken by the source, in the order of
/// their sources. Edges without numbers are shares of the fan-out already.
fn choose(fanout: usize, edges: &mut Vec<(&HopReply, usize)>) {
    let source = |&(reply, edge): &(&HopReply, usize)| reply.nodes[reply.indices[edge] as usize];
    let numbered = edges.iter().all(|(reply, _)| reply.numbers.is_some());
    if edges.len() > fanout && numbered {
        let number = |(reply, edge): &(&HopReply, usize)| reply.numbers.as_ref().map(|n| n[*edge]);
        edges.sort_by_key(|edge| (number(edge), source(edge)));
        edges.truncate(fanout);
    }
    // Equal edges lie in one part, which lists them in their order.
    edges.sort_by_key(|edge| (source(edge), edge.1));
}

/// As [`choose`] of edges at times, by `rule`, in the order of time and then of their sources.
fn choose_at_times(rule: TemporalRule, fanout: usize, edges: &mut Vec<(&HopReply, usize)>) {
    let source = |&(reply, edge): &(&HopReply, usize)| reply.nodes[reply.indices[edge] as usize];
    let time = |(reply, edge): &(&HopReply, usize)| reply.times.as_ref().map(|times| times[*edge]);
    let number = |(reply, edge): &(&HopReply, usize)| reply.numbers.as_ref().map(|n| n[*edge]);
    let place = |edge: &(&HopReply, usize)| (time(edge), source(edge), edge.1);
    if edges.len() > fanout {
        match rule {
            TemporalRule::Recent => {
                edges.sort_by_key(|edge| (std::cmp::Reverse(time(edge)), number(edge), place(edge)))
            }
            TemporalRule::Uniform => edges.sort_by_key(|edge| (number(edge), place(edge))),
        }
        edges.truncate(fanout);
    }
    edges.sort_by_key(place);
}

impl Merged {
    fn push(&mut self, reply: &HopReply, edge: usize) {
        let node = reply.indices[edge] as usize;
        self.sources.push(reply.nodes[node] as u32);
        self.degrees.push(reply.degrees.as_ref().map_or(0, |degrees| degrees[node]));
        if let Some(weights) = &mut self.weights {
            weights.push(reply.weights.as_ref().map_or(1.0, |w| w[edge]));
        }
        if let Some(rows) = &reply.edge_features {
            let width = rows.len() / reply.indices.len();
            self.edge_features.extend_from_slice(&rows[edge * width..(edge + 1) * width]);
        }
    }
}
