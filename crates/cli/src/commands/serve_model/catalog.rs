//! The nodes, edges and outputs that a run answers for.

use std::collections::HashMap;

use gnarl_common::{Kind, Result};
use gnarl_graph::triples::Triples;
use gnarl_graph::{Dataset, UserIds};
use gnarl_train::{EdgeModel, Output, TrainedRun};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::body::{Edge, EdgesBody, Id, NodesBody};
use super::lookup::Lookup;
use super::refusal::Refusal;
use crate::commands::infer::edges;
use crate::commands::infer::outputs::{Outputs, What};

/// The nodes, edges and outputs of a run, by the names that clients have for them.
pub(super) struct Catalog {
    types: Vec<NodeType>,
    edges: Option<Edges>,
    max_ids: usize,
}

/// A node type with outputs.
struct NodeType {
    name: String,
    lookup: Lookup,
    count: usize,
    outputs: Outputs,
    /// The outputs of the model, the default first.
    available: Vec<What>,
}

/// The scored edges.
struct Edges {
    /// Relations by name; none if they are numbers.
    relations: HashMap<String, u32>,
    num_relations: usize,
    /// Outputs of labeled edges; none if edges are predicted, and have a score.
    outputs: Option<Outputs>,
    /// True if scores depend on features of edges of the dataset.
    reads_rows: bool,
}

/// Nodes of a request.
pub(super) struct AskedNodes {
    /// Index of their type among those with outputs.
    pub of: usize,
    pub nodes: Vec<u32>,
    pub ids: Vec<Id>,
    pub outputs: Outputs,
}

/// Edges of a request.
pub(super) struct AskedEdges {
    pub triples: Triples,
    pub edges: Vec<Edge>,
    /// None if edges have a score.
    pub outputs: Option<Outputs>,
}

impl Catalog {
    /// The catalog of `run`, for requests of at most `max_ids` ids. One node of each type is computed, so that outputs
    /// that the model lacks are known.
    ///
    /// # Errors
    /// If ids or names of classes are damaged, or features cannot be read.
    pub fn open(
        run: &TrainedRun,
        dataset: &Dataset,
        model: Option<&EdgeModel<'_>>,
        max_ids: usize,
    ) -> Result<Self> {
        let types = run.node_types().into_iter().enumerate();
        let types = types.map(|(of, (name, count))| {
            let outputs = Outputs::of(&[], run, dataset, &name)?;
            let mut available = outputs.available().to_vec();
            if outputs.select(available.clone()).needs_hidden() && count > 0 {
                match run.infer(Output::Hidden, &[(of, vec![0])], &mut |_, _, _| Ok(())) {
                    Err(e) if e.kind() == Kind::Usage => {
                        available.retain(|what| *what != What::Embeddings);
                    }
                    computed => drop(computed?),
                }
            }
            let lookup = Lookup::new(UserIds::open(dataset, &name)?);
            Ok(NodeType { name, lookup, count, outputs, available })
        });
        let edges = model.map(|model| {
            let names = model.relation_names().iter().cloned();
            Ok(Edges {
                relations: names.zip(0..).collect(),
                num_relations: model.num_relations(),
                outputs: edges::outputs(&[], run, model)?,
                reads_rows: model.reads_rows(),
            })
        });
        Ok(Self { types: types.collect::<Result<_>>()?, edges: edges.transpose()?, max_ids })
    }

    /// Node types, their outputs, and those of edges.
    pub fn describe(&self) -> Value {
        let types = self.types.iter().map(|one| {
            let outputs: Vec<&str> = one.available.iter().map(|what| what.column()).collect();
            json!({ "name": one.name, "nodes": one.count, "outputs": outputs })
        });
        let edges = self.edges.as_ref().map(|edges| match &edges.outputs {
            None => vec!["score"],
            Some(outputs) => of_edges(outputs).iter().map(|what| what.column()).collect(),
        });
        json!({ "node_types": types.collect::<Vec<_>>(), "edges": edges })
    }

    /// The nodes that a body asks for.
    ///
    /// # Errors
    /// If there are too many, or no such type, output or id.
    pub fn nodes(&self, body: NodesBody) -> Result<AskedNodes, Refusal> {
        self.check(body.ids.len())?;
        let of = self.type_of(body.node_type.as_deref())?;
        let NodeType { outputs, available, .. } = &self.types[of];
        let outputs = outputs.select(chosen(&body.what, available)?);
        let nodes = body.ids.iter().map(|id| self.find(of, id)).collect::<Result<_, _>>()?;
        Ok(AskedNodes { of, nodes, ids: body.ids, outputs })
    }

    /// The edges that a body asks for.
    ///
    /// # Errors
    /// If the run scores no such edges; else as [`Catalog::nodes`].
    pub fn edges(&self, body: EdgesBody) -> Result<AskedEdges, Refusal> {
        self.check(body.edges.len())?;
        let Some(known) = &self.edges else {
            return Err(Refusal::bad("the run predicts nodes, and has no scores of edges")
                .hint("ask for nodes at /nodes"));
        };
        if known.reads_rows {
            return Err(Refusal::bad(
                "the run scores edges by their features, which those of a request do not have",
            )
            .hint("train with task.edge_features = false"));
        }
        let outputs = match &known.outputs {
            Some(outputs) => Some(outputs.select(chosen(&body.what, &of_edges(outputs))?)),
            None if body.what.iter().all(|what| what == "score") => None,
            None => {
                let other = body.what.iter().find(|what| *what != "score");
                return Err(no_output(other.map_or("", String::as_str), &["score"]));
            }
        };
        let mut triples = Triples::default();
        for edge in &body.edges {
            let relation = known.relation(edge.relation())?;
            let tails = self.types.len() - 1;
            triples.push(self.find(0, edge.head())?, relation, self.find(tails, edge.tail())?);
        }
        Ok(AskedEdges { triples, edges: body.edges, outputs })
    }

    fn check(&self, found: usize) -> Result<(), Refusal> {
        match found <= self.max_ids {
            true => Ok(()),
            false => Err(Refusal::bad(format!("{found} ids are more than {}", self.max_ids))
                .hint("send several requests, or start the server with a higher --max-ids")),
        }
    }

    fn type_of(&self, name: Option<&str>) -> Result<usize, Refusal> {
        let names: Vec<&str> = self.types.iter().map(|one| &*one.name).collect();
        let known = || format!("node types with outputs: {}", names.join(", "));
        match name {
            None if names.len() == 1 => Ok(0),
            None => Err(Refusal::bad("node_type is missing").hint(known())),
            Some(name) => names
                .iter()
                .position(|known| *known == name)
                .ok_or_else(|| Refusal::bad(format!("unknown node_type '{name}'")).hint(known())),
        }
    }

    fn find(&self, of: usize, id: &Id) -> Result<u32, Refusal> {
        let NodeType { name, lookup, .. } = &self.types[of];
        lookup.find(id).ok_or_else(|| {
            let noun = if name == gnarl_graph::DEFAULT_NODE_TYPE { "node" } else { name };
            Refusal::new(StatusCode::NOT_FOUND, format!("unknown {noun} id {id}"))
        })
    }
}

impl Edges {
    /// The number of a relation; 0 if it is not given and there is one.
    fn relation(&self, given: Option<&Id>) -> Result<u32, Refusal> {
        let count = self.num_relations;
        let found = match given {
            None if count <= 1 => return Ok(0),
            None => {
                return Err(Refusal::bad(format!(
                    "edges have {count} relations, and an edge names none"
                ))
                .hint("an edge is [head, relation, tail]"));
            }
            Some(Id::Integer(number)) if self.relations.is_empty() => {
                u32::try_from(*number).ok().filter(|&number| (number as usize) < count.max(1))
            }
            Some(Id::Text(name)) => self.relations.get(name).copied(),
            Some(Id::Integer(_)) => None,
        };
        found.ok_or_else(|| {
            let id = given.map_or_else(String::new, Id::to_string);
            Refusal::new(StatusCode::NOT_FOUND, format!("unknown relation {id}"))
        })
    }
}

/// The outputs of labeled edges, which have no embeddings.
fn of_edges(outputs: &Outputs) -> Vec<What> {
    let all = outputs.available().iter().copied();
    all.filter(|what| *what != What::Embeddings).collect()
}

/// The outputs with the names `what`, without repetitions; the first one available if there are no names.
fn chosen(what: &[String], available: &[What]) -> Result<Vec<What>, Refusal> {
    let mut chosen = Vec::new();
    for name in what {
        let Some(&one) = available.iter().find(|one| one.column() == name) else {
            let names: Vec<&str> = available.iter().map(|what| what.column()).collect();
            return Err(no_output(name, &names));
        };
        if !chosen.contains(&one) {
            chosen.push(one);
        }
    }
    if chosen.is_empty() {
        chosen.extend(available.first());
    }
    Ok(chosen)
}

fn no_output(name: &str, available: &[&str]) -> Refusal {
    Refusal::bad(format!("what: the run has no output '{name}'"))
        .hint(format!("it has: {}", available.join(", ")))
}
