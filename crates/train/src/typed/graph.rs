//! What is learnt of a graph with types: labels and roles of one node type, features of all.

use gnarl_graph::{Dataset, Error, Labels, Result};
use gnarl_nn::models::typed::Source;
use gnarl_nn::{Tape, Tensor, Var};
use gnarl_sample::TypedGraph;
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

use crate::config::DatasetSection;
use crate::pipeline::{Input, rows};
use crate::task::{Role, Roles};

/// Roles of the nodes of a type in a whole dataset.
///
/// # Errors
/// If there is no such type, it lacks labels or training nodes.
pub(super) fn roles_of(
    dataset: &Dataset,
    section: &DatasetSection,
    node_type: &str,
) -> Result<Roles> {
    let mut roles = vec![Role::None; dataset.manifest().node_type(node_type)?.count as usize];
    for (name, role) in Role::SPLITS {
        for &id in dataset.split(node_type, name)?.unwrap_or_default().iter() {
            roles[id as usize] = role;
        }
    }
    let place = format!("{}: node type '{node_type}'", dataset.dir().display());
    Roles::new(roles, &labels_of(dataset, node_type)?, section.split.as_ref(), &place)
}

fn labels_of(dataset: &Dataset, node_type: &str) -> Result<Labels> {
    dataset.labels(node_type)?.ok_or_else(|| {
        let place = dataset.dir().display();
        Error::invalid(format!("{place}: nodes of type '{node_type}' have no labels"))
            .hint("import with --labels TYPE=FILE, or classify another type")
    })
}

/// A graph to train on and to judge by, or a part of one. Labels, features and splits are by local id.
pub(crate) struct TypedTaskGraph {
    /// In-neighbour lists of each edge type.
    pub graph: TypedGraph,
    /// Feature rows of each node type that has some.
    features: Vec<Option<MappedFeatures>>,
    /// Number of the type whose nodes are classified.
    pub target: usize,
    /// Its labels.
    pub labels: Labels,
    /// Its training nodes, ascending.
    pub train: Vec<u32>,
    /// Its validation nodes.
    pub valid: Vec<u32>,
    /// Its test nodes.
    pub test: Vec<u32>,
}

impl TypedTaskGraph {
    /// Opens a dataset, or a part of one, to classify the nodes of type `node_type`, which have `roles`
    /// in the whole.
    ///
    /// # Errors
    /// If there is no such type, it lacks labels, or a file is damaged.
    pub fn open(
        dataset: &Dataset,
        section: &DatasetSection,
        node_type: &str,
        roles: &Roles,
    ) -> Result<Self> {
        let graph = TypedGraph::open(dataset)?;
        let target = graph.schema().node_type(node_type)?;
        let labels = labels_of(dataset, node_type)?;
        let features = features_of_types(dataset, section.normalize)?;
        let own = |v: &u32, role| roles.get(graph.id(target, *v)) == role;
        let [train, valid, test] = Role::SPLITS
            .map(|(_, role)| (0..graph.core(target) as u32).filter(|v| own(v, role)).collect());
        Ok(Self { features, target, labels, train, valid, test, graph })
    }

    /// A graph whose rows are wanted for themselves: no labels, no roles. Features are by node type.
    pub fn of_messages(graph: TypedGraph, features: Vec<Option<MappedFeatures>>) -> Self {
        let labels = Labels::Single { classes: Vec::new().into(), count: 0 };
        let [train, valid, test] = [const { Vec::new() }; 3];
        Self { graph, features, target: 0, labels, train, valid, test }
    }

    /// The type whose nodes are classified.
    pub fn node_type(&self) -> &str {
        &self.graph.schema().node_types()[self.target]
    }

    /// Where the rows of each node type come from.
    pub fn sources(&self) -> Vec<Source> {
        let source = |features: &Option<MappedFeatures>| {
            features.as_ref().map_or(Source::Learnt, |found| Source::Features(found.width()))
        };
        self.features.iter().map(source).collect()
    }

    /// Numbers and names of the types whose rows are learnt, in the order of the state's tables.
    pub fn learnt(&self) -> impl Iterator<Item = (usize, &str)> {
        let types = self.graph.schema().node_types().iter().enumerate();
        types.filter(|(number, _)| self.features[*number].is_none()).map(|(n, name)| (n, &**name))
    }

    /// Feature rows of some nodes of each type; none of types without.
    ///
    /// # Errors
    /// If an id has no features.
    pub fn features(&self, nodes: &[Vec<u32>]) -> Result<Vec<Option<Input>>> {
        let of = |(features, nodes): (&Option<MappedFeatures>, &Vec<u32>)| match features {
            Some(features) => rows(features, nodes).map(Some),
            None => Ok(None),
        };
        self.features.iter().zip(nodes).map(of).collect()
    }

    /// Puts feature rows and `learnt` rows of each node type on a tape. The second result are the
    /// leaves of the learnt ones.
    pub fn leaves(
        &self,
        tape: &mut Tape<'_>,
        features: &[Option<Input>],
        learnt: impl IntoIterator<Item = Tensor>,
    ) -> (Vec<Option<Var>>, Vec<Var>) {
        let (mut learnt, mut leaves) = (learnt.into_iter(), Vec::new());
        let rows = features.iter().map(|features| match features {
            Some(Input::Dense(rows)) => Some(tape.dense(rows.clone())),
            Some(Input::Sparse(rows)) => Some(tape.sparse(rows.clone())),
            None => learnt.next().map(|rows| {
                let leaf = tape.leaf(rows);
                leaves.push(leaf);
                leaf
            }),
        });
        (rows.collect(), leaves)
    }
}

/// The features of each node type of a dataset that has some.
///
/// # Errors
/// If a file is damaged.
pub(crate) fn features_of_types(
    dataset: &Dataset,
    normalize: Normalize,
) -> Result<Vec<Option<MappedFeatures>>> {
    let of = |name: &str| {
        let found = dataset.features(name)?;
        found.map(|found| MappedFeatures::new(found, normalize)).transpose()
    };
    dataset.manifest().node_types.iter().map(|t| of(&t.name)).collect()
}
