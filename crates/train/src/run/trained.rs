//! A trained run: its configuration, dataset and best weights.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Error, Kind, Result, ResultExt};
use gnarl_config::{RunConfig, ScoredSplit, TaskKind};
use gnarl_graph::{Dataset, Labels};
use gnarl_infer::Figures;
use gnarl_nn::Params;

use crate::embeddings::{Rows, about_model, model_from_bytes};
use crate::encoder::{Keep, Output};
use crate::evaluation::Evaluation;
use crate::fit::Training;
use crate::registry::Registry;
use crate::run::folder::{CONFIG, MODEL, Provenance, SUMMARY};
use crate::run::setup::{Purpose, Setup, Source, only_labeled_type};
use crate::state::Start;

/// A run with weights, finished or not, over its dataset or another one.
pub struct TrainedRun {
    config: RunConfig,
    source: Source,
    /// The dataset that the run was trained on.
    trained_on: PathBuf,
    task: Box<dyn Training>,
    params: Params,
    tables: Vec<Rows<'static>>,
}

/// How a trained run is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// A dataset in place of the run's.
    pub dataset: Option<PathBuf>,
    /// Bytes of memory for inference, in place of `evaluate.memory`.
    pub memory: Option<u64>,
    /// Neighbors sampled per node, the seeds' hop first, instead of all of them; -1 takes all. Only
    /// [`Output::Last`] is computed over sampled neighbors.
    pub fanouts: Vec<i64>,
    /// True for inference, which needs neither labels nor splits of nodes; else there are scores.
    pub unlabeled: bool,
}

impl TrainedRun {
    /// Opens the run in `dir`, whose custom models and tasks are those of `registry`.
    ///
    /// # Errors
    /// If the folder holds no run with weights, or they do not fit the dataset.
    pub fn open(registry: &Registry, dir: &Path, options: &OpenOptions) -> Result<Self> {
        let mut config = config_of(dir)?;
        let trained_on = config.dataset.path.clone();
        let dataset = options.dataset.as_deref();
        let provenance = Provenance::read(dir)?.filter(|_| dataset.is_none());
        if let Some(dataset) = dataset {
            config.dataset.path = dataset.into();
        }
        if let Some(bytes) = options.memory {
            config.evaluate.memory = Some(bytesize::ByteSize::b(bytes));
        }
        if config.dataset.path.as_os_str().is_empty() {
            return Err(Error::usage("the run was trained on parts, without a dataset")
                .hint("give the whole one with --dataset"));
        }
        config.partition.servers = None;
        // Asked for by name, scores are of both splits, and exact unless fan-outs are asked for, too.
        config.evaluate.splits = ScoredSplit::ALL.to_vec();
        config.evaluate.fanouts.clone_from(&options.fanouts);
        check_fanouts(&config)?;
        let source = Source::open(&config)?;
        if let Some(made) = provenance.filter(|made| made.dataset == config.dataset.path) {
            let hint = "take the current data with --dataset";
            made.check(&config, &source.fingerprint(), hint)?;
        }
        let trained = match options.unlabeled && config.task.kind.is_of_nodes() {
            true => Some(labels_of_training(&mut config, &source, &trained_on)?),
            false => None,
        };
        let purpose = trained.as_ref().map_or(Purpose::Training(None), Purpose::Inference);
        let setup = Setup::new((&config, registry), source, purpose)?;
        let Setup { task, start, source, .. } = setup;
        let Start { mut params, tables } = start;
        let path = dir.join(MODEL);
        if !path.exists() {
            return Err(Error::invalid(format!("{}: no weights yet", path.display()))
                .hint("a run writes its best weights after evaluations, see train.eval_every"));
        }
        let bytes = std::fs::read(&path).at(&path)?;
        let reading = || format!("reading {}", path.display());
        if !dir.join(SUMMARY).exists() {
            let about = about_model(&bytes).while_doing(reading)?;
            let (place, epoch) = (dir.display(), about.unwrap_or_default().epoch);
            tracing::warn!(
                "{place}: the run is not finished; these are its best weights so far, epoch {epoch}"
            );
        }
        let tables = model_from_bytes(&mut params, &tables, &bytes).while_doing(reading)?;
        Ok(Self { config, source, trained_on, task, params, tables })
    }

    /// Its configuration.
    pub(crate) fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Its task, ready for inference.
    pub(crate) fn task(&self) -> &dyn Training {
        self.task.as_ref()
    }

    /// Its weights, without embedding tables.
    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// The kind of its task.
    pub fn kind(&self) -> TaskKind {
        self.config.task.kind
    }

    /// The column with the labels of edges.
    pub fn label(&self) -> &str {
        &self.config.task.label
    }

    /// The dataset, if it is on this host.
    pub fn dataset(&self) -> Option<&Dataset> {
        self.source.dataset()
    }

    /// The path of the dataset that the run was trained on; empty if it was trained on parts.
    pub fn trained_on(&self) -> &Path {
        &self.trained_on
    }

    /// Names and numbers of nodes of the types with outputs: that of the predicted nodes, or those of the endpoints of
    /// predicted edges.
    pub fn node_types(&self) -> Vec<(String, usize)> {
        self.task.node_types()
    }

    /// The nodes of the split `name`, ascending; none unless nodes are predicted.
    pub fn split(&self, name: &str) -> Option<&[u32]> {
        self.task.split(name)
    }

    /// Computes `output` by full neighborhoods, layer by layer, or by those of [`OpenOptions::fanouts`], of the nodes
    /// `wanted` of some of [`TrainedRun::node_types`], and hands it to `keep`: the index of a type, ascending nodes, and a row for each.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the model has no such output; if features cannot be read; those of `keep`.
    pub fn infer(
        &self,
        output: Output,
        wanted: &[(usize, Vec<u32>)],
        keep: &mut Keep<'_>,
    ) -> Result<Figures> {
        if output == Output::Hidden && self.config.model.decoupled {
            // Its layers propagate logits: there is no row between them that embeds a node.
            return Err(Error::usage(format!(
                "a decoupled {} has no hidden embeddings: its layers propagate logits",
                self.config.model.name
            ))
            .hint("ask for its logits"));
        }
        if output == Output::Hidden && !self.config.evaluate.fanouts.is_empty() {
            return Err(Error::usage("hidden embeddings are computed over all neighbors only")
                .hint("leave out --fanouts, or ask for the model's output"));
        }
        self.task.infer((&self.params, &self.tables), output, wanted, keep)
    }

    /// Scores on the splits of the dataset.
    ///
    /// # Errors
    /// If features cannot be read.
    pub fn evaluate(&self) -> Result<Evaluation> {
        self.task.evaluate(&self.params, &self.tables)
    }
}

/// Rejects fan-outs that do not fit the model.
fn check_fanouts(config: &RunConfig) -> Result<()> {
    let name = &*config.model.name;
    if !config.evaluate.fanouts.is_empty() && ["none", "mlp"].contains(&name) {
        return Err(Error::usage(format!("fan-outs: the model '{name}' reads no neighbors"))
            .hint("leave them out"));
    }
    config.check_evaluation()
}

/// The labels that the run was trained on, which say of which kind its predictions are. Sets the type of the nodes if
/// the run file does not name it.
fn labels_of_training(config: &mut RunConfig, source: &Source, place: &Path) -> Result<Labels> {
    let given = source.dataset();
    let trained_on = match given.filter(|dataset| dataset.dir() == place) {
        Some(_) => Ok(None),
        None => Dataset::open(place).map(Some),
    };
    let dataset = match (&trained_on, given) {
        (Ok(Some(dataset)), _) | (Ok(None), Some(dataset)) => dataset,
        // Its own labels are of the kind, if it has some.
        (Err(_), Some(dataset)) if has_labels(dataset) => dataset,
        _ => {
            return Err(Error::invalid(format!(
                "the dataset has no labels, and {}, which the run was trained on, is not there to say of which kind \
                 its predictions are",
                place.display()
            )));
        }
    };
    let node_type = match (&config.task.node_type, dataset.plain()) {
        (Some(name), _) => name.clone(),
        (None, Ok((node, _))) => node.name.clone(),
        (None, Err(_)) => {
            let only = only_labeled_type(config.task.kind, dataset)?;
            config.task.node_type = Some(only.clone());
            only
        }
    };
    config.task.kind.labels_of(dataset, &node_type)
}

/// Returns whether nodes of any type have labels or numbers to learn.
fn has_labels(dataset: &Dataset) -> bool {
    let mut columns = dataset.manifest().node_types.iter().flat_map(|t| &t.columns);
    columns.any(|column| column.name == "label" || column.name == "value")
}

/// The configuration of the run in `dir`.
fn config_of(dir: &Path) -> Result<RunConfig> {
    let path = dir.join(CONFIG);
    if !path.exists() {
        return Err(Error::new(Kind::Io, format!("{}: no run", dir.display()))
            .hint("name the folder of a run, which output.dir said"));
    }
    let text = std::fs::read_to_string(&path).at(&path)?;
    toml::from_str(&text).map_err(|e| Error::invalid(format!("{}: {e}", path.display())))
}
