//! A trained run: its configuration, dataset and best weights.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gnarl_common::{Buf, Context, Error, Kind, Result, integrity};
use gnarl_config::{RunConfig, ScoredSplit, TaskKind, data_folder};
use gnarl_engine::Communicator;
use gnarl_graph::triples::Triples;
use gnarl_graph::{Dataset, Labels, Triple};
use gnarl_infer::order::NodeOrder;
use gnarl_infer::rows::Cache;
use gnarl_infer::{Figures, LayerFolder, Sweeps};
use gnarl_nn::state::sealed;
use gnarl_nn::{Params, Tensor};
use gnarl_objects::is_uri;
use gnarl_partition::{PartitionedDataset, fingerprint};

use crate::embeddings::{Rows, about_model, read_model};
use crate::encoder::{Course, Keep, Output};
use crate::evaluation::Evaluation;
use crate::faults;
use crate::fit::Training;
use crate::registry::Registry;
use crate::run::folder::{CONFIG, MODEL, Provenance, SUMMARY};
use crate::run::places::run_folder;
use crate::run::setup::{Purpose, Setup, Source};
use crate::state::Start;

/// Hint at the remedy of a damaged file of weights.
const DAMAGED: &str = "copy the run's folder from elsewhere, or train anew; gnarl train --resume writes the file again if \
                       there is a checkpoint; if a program converted it, remove the entry crc32 of its metadata";

/// A run with weights, finished or not, over its dataset or another one.
pub struct TrainedRun {
    config: RunConfig,
    source: Source,
    /// The dataset that the run was trained on.
    trained_on: PathBuf,
    task: Box<dyn Training>,
    params: Params,
    tables: Vec<Rows<'static>>,
    order: NodeOrder,
    cache: Option<Cache>,
    sweeps: Sweeps,
    parts: Option<PartitionedDataset>,
    /// A folder for rows of layers.
    layers: Option<PathBuf>,
    /// The version, the weights and the data.
    identity: String,
    /// The nodes of a run that was trained on parts.
    catalog: Option<Dataset>,
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
    /// The order in which inference computes nodes, and reads and keeps their rows.
    pub order: NodeOrder,
    /// Rows between layers are in files, read by chunks behind this cache.
    pub cache: Option<Cache>,
    /// The layers whose sums are made by sweeps over the rows before them.
    pub sweeps: Sweeps,
    /// A partition of the dataset, for orders that go by parts, and for ranks.
    pub partition: Option<PathBuf>,
    /// A folder for the rows of all layers, from which an interrupted inference goes on.
    pub layers: Option<PathBuf>,
    /// True for inference, which needs neither labels nor splits of nodes; else there are scores.
    pub unlabeled: bool,
}

impl TrainedRun {
    /// Opens the run in `dir`, a folder or its address in an object store, whose custom models and tasks are those of `registry`.
    ///
    /// # Errors
    /// If the folder holds no run with weights, or they do not fit the dataset.
    pub fn open(registry: &Registry, dir: &Path, options: &OpenOptions) -> Result<Self> {
        let dir = &run_folder(dir)?;
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
        let parts_of_run = config.partition.servers.as_ref().and(config.partition.path.clone());
        if dataset.is_some() || is_there(&config.dataset.path) {
            config.partition.servers = None;
        }
        // Asked for by name, scores are of both splits, and exact unless fan-outs are asked for, too.
        config.evaluate.splits = ScoredSplit::ALL.to_vec();
        config.evaluate.fanouts.clone_from(&options.fanouts);
        check_fanouts(&config)?;
        check_course(&config, options)?;
        let source = Source::open(&config)?;
        if let Some(made) = provenance.filter(|made| made.dataset == config.dataset.path) {
            let hint = "take the current data with --dataset";
            made.check(&config, &source.fingerprint(), hint)?;
        }
        let catalog = match (&source, parts_of_run) {
            (Source::Parts(cut), _) => cut.catalog()?,
            // Names of classes are those of the parts that the run was trained on, if they are still there.
            (Source::Whole(_), Some(path)) => {
                let cut = data_folder(&path).and_then(PartitionedDataset::open);
                cut.and_then(|cut| cut.catalog()).unwrap_or_default()
            }
            (Source::Whole(_), None) => None,
        };
        let trained = match options.unlabeled && config.task.kind.is_of_nodes() {
            true => {
                let given = source.dataset().or(catalog.as_ref());
                Some(labels_of_training(&mut config, given, &trained_on)?)
            }
            false => None,
        };
        let parts = options
            .partition
            .as_deref()
            .map(|path| data_folder(path).and_then(PartitionedDataset::open));
        let parts = parts.transpose()?;
        if let (Some(cut), Source::Whole(dataset)) = (&parts, &source)
            && cut.manifest().source.fingerprint != fingerprint(dataset.manifest())
        {
            let [cut, dataset] = [cut.dir(), dataset.dir()].map(Path::display);
            return Err(Error::usage(format!("{cut} is no partition of {dataset}"))
                .hint("name one of this dataset, or partition it anew"));
        }
        if options.order.by_part() && parts.is_none() {
            let order = options.order;
            return Err(Error::usage(format!("order '{order}' goes by parts"))
                .hint("name a partition of the dataset: --partition DIR"));
        }
        let purpose = trained.as_ref().map_or(Purpose::Training(None), Purpose::Inference);
        let setup = Setup::new((&config, registry), source, purpose)?;
        let Setup { task, start, source, .. } = setup;
        let Start { mut params, tables } = start;
        let path = dir.join(MODEL);
        if !path.exists() {
            return Err(Error::invalid(format!("{}: no weights yet", path.display()))
                .hint("a run writes its best weights after evaluations, see train.eval_every"));
        }
        let weights = sealed::check(&path).map_err(|e| e.hint(DAMAGED))?;
        let bytes = Buf::map(&path)?;
        let reading = || format!("reading {}", path.display());
        if !dir.join(SUMMARY).exists() {
            let about = about_model(&bytes).while_doing(reading)?;
            let (place, epoch) = (dir.display(), about.unwrap_or_default().epoch);
            tracing::warn!(
                "{place}: the run is not finished; these are its best weights so far, epoch {epoch}"
            );
        }
        let weights = weights.unwrap_or_else(|| crc32fast::hash(&bytes));
        let version = env!("CARGO_PKG_VERSION");
        let identity =
            format!("gnarl {version}, weights {weights:08x}, data {}", source.fingerprint());
        let tables = read_model(&mut params, &tables, &bytes).while_doing(reading)?;
        let OpenOptions { order, cache, sweeps, .. } = *options;
        let layers = options.layers.clone();
        Ok(Self {
            config,
            source,
            trained_on,
            task,
            params,
            tables,
            order,
            cache,
            sweeps,
            parts,
            layers,
            identity,
            catalog,
        })
    }

    /// The deadline of waits between the ranks of the run in `dir`.
    ///
    /// # Errors
    /// If the folder holds no run.
    pub fn deadline_of(dir: &Path) -> Result<Duration> {
        Ok(Duration::from_secs_f64(config_of(&run_folder(dir)?)?.train.deadline_seconds))
    }

    /// Its configuration.
    pub(crate) fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Its version, weights and data, alike on all ranks.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
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

    /// The catalog beside the parts that the run was trained on.
    pub fn catalog_of_parts(&self) -> Option<&Dataset> {
        self.catalog.as_ref()
    }

    /// Number of edges of a type of the dataset.
    ///
    /// # Errors
    /// [`Kind::Usage`] if it is not on this host, or has no such type.
    pub fn num_edges(&self, triple: &Triple) -> Result<u64> {
        let dataset = self.dataset().ok_or_else(|| {
            Error::usage("the edges of the dataset are not on this host")
                .hint("name a split or a file of edges, or give the dataset with --dataset")
        })?;
        Ok(dataset.manifest().edge_type(triple)?.count)
    }

    /// The nodes with their ids as given, labels, splits and names: those of the dataset, or of the catalog beside the
    /// parts.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the run has parts without a catalog.
    pub fn catalog(&self) -> Result<&Dataset> {
        self.dataset().or(self.catalog.as_ref()).ok_or_else(|| {
            Error::usage("the run was trained on parts without a catalog of nodes")
                .hint("give the whole dataset with --dataset, or partition it again")
        })
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
    /// [`Kind::Usage`] if the model has no such output; if features cannot be read, or a file was damaged or has changed;
    /// those of `keep`.
    pub fn infer(
        &self,
        output: Output,
        wanted: &[(usize, Vec<u32>)],
        keep: &mut Keep<'_>,
    ) -> Result<Figures> {
        self.infer_by(None, output, wanted, keep)
    }

    /// As [`Infer::embeddings_before`](crate::Infer::embeddings_before), by this process.
    pub(crate) fn embeddings_before(&self, edges: &Triples, times: &[i64]) -> Result<[Tensor; 2]> {
        self.task.embeddings_before((&self.params, &self.tables), (edges, times))
    }

    /// [`Self::infer`] by all ranks of `comm`, if there are some; `keep` is called on the first one.
    pub(crate) fn infer_by(
        &self,
        comm: Option<&dyn Communicator>,
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
        if output == Output::Hidden && self.config.evaluates_sampled() {
            return Err(Error::usage(
                "hidden embeddings are computed over all neighbors only, at no time in particular",
            )
            .hint("ask for the model's output, or leave out --fanouts, unless the run has sample.time"));
        }
        let Self { order, cache, parts, .. } = self;
        let layers = self.layers(comm, output, wanted);
        let course = Course {
            order: *order,
            parts: parts.as_ref(),
            cache: cache.as_ref(),
            layers: layers.as_ref(),
            sweeps: self.sweeps,
            comm,
        };
        faults::reached("inference");
        let figures =
            self.task.infer((&self.params, &self.tables), (output, wanted), &course, keep)?;
        // While the files are mapped, and before the first rank gives the rows their name.
        integrity::settle()?;
        if let Some(comm) = comm {
            comm.barrier("files behind the inference")?;
        }
        Ok(figures)
    }

    /// The folder of an inference's rows, described by all that they and their places depend on.
    fn layers(
        &self,
        comm: Option<&dyn Communicator>,
        output: Output,
        wanted: &[(usize, Vec<u32>)],
    ) -> Option<LayerFolder> {
        let folder = self.layers.as_ref()?;
        let mut nodes = crc32fast::Hasher::new();
        for (node_type, wanted) in wanted {
            nodes.update(&node_type.to_le_bytes());
            nodes.update(bytemuck::cast_slice(wanted));
        }
        let count: usize = wanted.iter().map(|(_, nodes)| nodes.len()).sum();
        let parts = self.parts.as_ref().map_or_else(String::new, |cut| {
            let made = cut.manifest();
            format!(" of {} {:?} of {}", made.algorithm, made.part_counts, made.source.fingerprint)
        });
        let (identity, order, nodes) = (&self.identity, self.order, nodes.finalize());
        let ranks = comm.map_or(1, Communicator::size);
        Some(LayerFolder::new(
            folder.join(output.name()),
            format!(
                "{identity}, {} of {count} nodes {nodes:08x}, order {order}{parts}, {ranks} ranks",
                output.name()
            ),
        ))
    }

    /// Removes the rows of layers that were kept: whatever was made of them is complete.
    ///
    /// # Errors
    /// If files cannot be removed.
    pub fn forget_layers(&self) -> Result<()> {
        let Some(folder) = &self.layers else { return Ok(()) };
        for output in [Output::Last, Output::Hidden] {
            LayerFolder::remove(&folder.join(output.name()))?;
        }
        LayerFolder::remove(folder)
    }

    /// Scores on the splits of the dataset.
    ///
    /// # Errors
    /// If features cannot be read, or a file was damaged or has changed.
    pub fn evaluate(&self) -> Result<Evaluation> {
        faults::reached("inference");
        let evaluation = self.task.evaluate(&self.params, &self.tables)?;
        integrity::settle()?;
        Ok(evaluation)
    }
}

/// Returns whether a dataset is to be expected at `path`.
fn is_there(path: &Path) -> bool {
    is_uri(path) || path.exists()
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

/// Rejects orders and rows of layers where there are no layers.
fn check_course(config: &RunConfig, options: &OpenOptions) -> Result<()> {
    let asked = [
        ("order", options.order != NodeOrder::default()),
        ("cache", options.cache.is_some()),
        ("partition", options.partition.is_some()),
        ("layers", options.layers.is_some()),
        ("sweep", options.sweeps == Sweeps::Always),
    ];
    match asked.iter().find(|(_, asked)| *asked && config.model.name == "none") {
        Some((name, _)) => Err(Error::usage(format!(
            "{name}: the model 'none' has no layers, its embeddings are read from their table"
        ))
        .hint(format!("leave out --{name}"))),
        None => Ok(()),
    }
}

/// The labels that the run was trained on, which say of which kind its predictions are. Sets the type of the nodes if
/// the run file does not name it.
fn labels_of_training(
    config: &mut RunConfig,
    given: Option<&Dataset>,
    place: &Path,
) -> Result<Labels> {
    let trained_on = match given.filter(|dataset| dataset.dir() == place) {
        Some(_) => Ok(None),
        None => data_folder(place).and_then(Dataset::open).map(Some),
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
    let manifest = dataset.manifest();
    let node_type = match (&config.task.node_type, dataset.plain(), &manifest.node_types[..]) {
        (Some(name), ..) => name.clone(),
        (None, Ok((node, _)), _) => node.name.clone(),
        // A catalog does not tell whether the graph has several edge types.
        (None, Err(_), [only]) if manifest.edge_types.is_empty() => only.name.clone(),
        (None, Err(_), _) => {
            let only = config.task.kind.only_labeled_type(dataset)?;
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
    RunConfig::read(&path)
}
