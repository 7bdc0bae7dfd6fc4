//! Every combination that a golden run is made of.

use std::path::PathBuf;

use super::graphs::Graph;

/// One run.
#[derive(Debug, Clone)]
pub struct Case {
    /// `task/graph/model/strategy`, or what else sets it apart.
    pub name: String,
    pub graph: Graph,
    /// `key=value`, the last of a key counts.
    pub sets: Vec<String>,
    /// A run file, where it is not a dataset and settings alone.
    pub file: Option<PathBuf>,
    /// Stopped after the first epoch and resumed.
    pub resumed: bool,
    /// Processes under `mpirun`; 0 without it.
    pub ranks: usize,
}

impl Case {
    /// A case of `graph` with `sets`.
    pub fn new(name: &str, graph: Graph, sets: &[&str]) -> Self {
        Self {
            name: name.into(),
            graph,
            sets: sets.iter().map(ToString::to_string).collect(),
            file: None,
            resumed: false,
            ranks: 0,
        }
    }

    fn with(mut self, name: &str, sets: &[&str]) -> Self {
        self.name = format!("{}/{name}", self.name);
        self.sets.extend(sets.iter().map(ToString::to_string));
        self
    }
}

type Choice = (&'static str, &'static [&'static str]);

const BASE: &[&str] = &["model.hidden=8", "train.epochs=2", "train.workers=1", "train.threads=1"];

const TASKS: &[(Graph, Choice)] = &[
    (Graph::Plain, ("nodes/plain", &["sample.fanouts=[4,3]", "sample.batch_size=64"])),
    (Graph::Rich, ("nodes/rich", &["sample.fanouts=[4,3]", "sample.batch_size=32"])),
    (Graph::Valued, ("nodes/valued", NODE_VALUES)),
    (Graph::Hetero, ("nodes/hetero", &["sample.fanouts=[4,3]", "sample.batch_size=32"])),
    (Graph::Plain, ("links/plain", LINKS)),
    (Graph::Rich, ("links/rich", LINKS)),
    (Graph::Hetero, ("links/hetero", LINKS_BETWEEN)),
    (Graph::Knowledge, ("links/knowledge", LINKS)),
    (Graph::Rich, ("edges/rich", EDGE_CLASSES)),
    (Graph::Valued, ("edges/valued", EDGE_VALUES)),
    (Graph::Knowledge, ("edges/knowledge", EDGE_RELATIONS)),
];

const LINKS: &[&str] = &[
    "task.kind=link-prediction",
    "embedding.dim=8",
    "negatives.count=16",
    "sample.fanouts=[4,3]",
    "sample.batch_size=512",
];

const LINKS_BETWEEN: &[&str] = &[
    "task.kind=link-prediction",
    "task.edge_type=paper:r0:author",
    "embedding.dim=8",
    "negatives.count=16",
    "sample.fanouts=[4,3]",
    "sample.batch_size=128",
];

const NODE_VALUES: &[&str] = &[
    "task.kind=node-regression",
    "loss.name=huber",
    "sample.fanouts=[4,3]",
    "sample.batch_size=32",
];

const EDGE_CLASSES: &[&str] = &[
    "task.kind=edge-classification",
    "embedding.dim=8",
    "decoder.hidden=8",
    "sample.fanouts=[4,3]",
    "sample.batch_size=128",
];

const EDGE_VALUES: &[&str] = &[
    "task.kind=edge-regression",
    "embedding.dim=8",
    "decoder.hidden=8",
    "sample.fanouts=[4,3]",
    "sample.batch_size=128",
];

const EDGE_RELATIONS: &[&str] = &[
    "task.kind=edge-classification",
    "task.label=relation",
    "embedding.dim=8",
    "decoder.hidden=8",
    "sample.fanouts=[4,3]",
    "sample.batch_size=1024",
];

const HOMOGENEOUS: &[Choice] = &[
    ("gcn", &["model.name=gcn"]),
    ("sage", &["model.name=sage"]),
    ("sage-pool", &["model.name=sage", "model.aggregator=max-pool"]),
    ("sage-lstm", &["model.name=sage", "model.aggregator=lstm"]),
    ("gat", &["model.name=gat", "model.heads=2"]),
    ("gin", &["model.name=gin"]),
    ("mlp", &["model.name=mlp"]),
    ("ngnn", &["model.name=ngnn"]),
    ("sgc", &["model.name=sgc"]),
    ("gcn-decoupled", &["model.name=gcn", "model.decoupled=true", "model.teleport=0.1"]),
    ("gat-decoupled", &["model.name=gat", "model.decoupled=true"]),
];

const HETEROGENEOUS: &[Choice] = &[
    ("rgcn", &["model.name=rgcn"]),
    ("rgcn-basis", &["model.name=rgcn", "model.decomposition=basis", "model.bases=2"]),
    ("rgcn-block", &["model.name=rgcn", "model.decomposition=block", "model.bases=2"]),
    (
        "rgcn-onehot",
        &["model.name=rgcn", "model.decomposition=basis", "model.bases=2", "model.one_hot=true"],
    ),
    ("rgcn-decoupled", &["model.name=rgcn", "model.decoupled=true"]),
    ("rgat", &["model.name=rgat", "model.heads=2"]),
    ("rgat-across", &["model.name=rgat", "model.heads=2", "model.softmax=across"]),
    ("hgt", &["model.name=hgt", "model.heads=2"]),
    ("hetero-sage", &["model.name=hetero", "model.relation_layer=sage"]),
    ("hetero-gat", &["model.name=hetero", "model.relation_layer=gat", "model.across=mean"]),
    ("hetero-gin", &["model.name=hetero", "model.relation_layer=gin", "model.across=max"]),
    ("mlp", &["model.name=mlp"]),
];

const NONE: Choice = ("none", &["model.name=none"]);

const STRATEGIES: &[Choice] = &[
    ("gradient", &["train.strategy=gradient"]),
    ("gradient-2", &["train.strategy=gradient", "train.workers=2", "train.threads=2"]),
    ("average-2", &["train.strategy=average", LOCAL, "partition.parts=2", "train.workers=2"]),
    ("tensor-2", &["train.strategy=tensor", "train.workers=2", "train.threads=2"]),
    ("chunks", &["train.strategy=tensor", "tensor.chunks=3", "train.workers=2"]),
    (
        "in-turns",
        &[
            "train.strategy=disaggregated",
            "partition.parts=6",
            "disaggregated.resident=2",
            "train.workers=2",
            "train.threads=2",
        ],
    ),
];

/// Models of a graph, for a task.
fn models(task: &str) -> Vec<Choice> {
    let (kind, graph) = task.split_once('/').expect("task/graph");
    let mut models = match graph {
        "plain" | "rich" | "valued" => HOMOGENEOUS.to_vec(),
        "hetero" => HETEROGENEOUS.to_vec(),
        // Edge types over one type of nodes: both kinds of models might do.
        _ => [HETEROGENEOUS, &HOMOGENEOUS[..2]].concat(),
    };
    if kind == "links" {
        models.push(NONE);
    }
    models
}

/// All cases that need neither `mpirun` nor real graphs.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (graph, (task, sets)) in TASKS {
        let base = Case::new(task, *graph, &[BASE, sets].concat());
        for (model, sets) in models(task) {
            let base = base.clone().with(model, sets);
            for (strategy, sets) in STRATEGIES {
                cases.push(base.clone().with(strategy, sets));
            }
        }
    }
    for (task, model, variants) in VARIANTS {
        let (graph, (_, sets)) = TASKS.iter().find(|t| t.1.0 == *task).expect("a task's name");
        let base = Case::new(task, *graph, &[BASE, sets, model.1].concat());
        for (variant, sets) in *variants {
            let name = format!("{}/{variant}", model.0);
            cases.push(base.clone().with(&name, sets));
        }
    }
    cases.extend(resumed());
    cases
}

fn resumed() -> Vec<Case> {
    let chosen = [
        ("nodes/plain", "sage"),
        ("nodes/hetero", "rgcn-basis"),
        ("links/plain", "sage"),
        ("links/knowledge", "none"),
        ("links/hetero", "rgcn"),
        ("edges/knowledge", "rgcn"),
        ("edges/rich", "gcn"),
    ];
    let mut cases = Vec::new();
    for (task, model) in chosen {
        let (graph, (_, sets)) = TASKS.iter().find(|t| t.1.0 == task).expect("a task's name");
        let all = models(task);
        let (_, model_sets) = all.iter().find(|m| m.0 == model).expect("a model's name");
        let base = Case::new("resumed", *graph, &[BASE, sets].concat());
        let base = base.with(task, &[]).with(model, model_sets);
        for (strategy, sets) in STRATEGIES {
            let mut case = base.clone().with(strategy, sets);
            case.resumed = true;
            cases.push(case);
        }
    }
    cases
}

/// The strategies on two processes.
pub fn mpi() -> Vec<Case> {
    let chosen = [("nodes/plain", "sage"), ("nodes/hetero", "rgcn"), ("links/plain", "gcn")];
    let mut cases = Vec::new();
    for (task, model) in chosen {
        let (graph, (_, sets)) = TASKS.iter().find(|t| t.1.0 == task).expect("a task's name");
        let all = models(task);
        let (_, model_sets) = all.iter().find(|m| m.0 == model).expect("a model's name");
        let base = Case::new("mpi", *graph, &[BASE, sets].concat());
        let base = base.with(task, &[]).with(model, model_sets);
        for (strategy, sets) in &STRATEGIES[1..] {
            let mut case = base.clone().with(strategy, sets);
            case.sets.push("train.workers=2".into());
            case.ranks = 2;
            cases.push(case);
        }
    }
    let sets = [BASE, TASKS[0].1.1, HOMOGENEOUS[1].1].concat();
    let mut served = Case::new("mpi/nodes/plain/sage", Graph::Plain, &sets);
    served.ranks = 2;
    for (name, parts) in [("served", "plain-2"), ("served-vertex-cut", "plain-cut")] {
        let path = format!("partition.path={parts}");
        let sets = [&path, "partition.servers=ranks", "sample.method=exact", "train.workers=2"];
        cases.push(served.clone().with(name, &sets));
    }
    cases
}

type Variants = (&'static str, Choice, &'static [Choice]);

/// What is varied one at a time, beside the products.
const VARIANTS: &[Variants] = &[
    (
        "nodes/plain",
        ("sage", &["model.name=sage"]),
        &[
            ("labor", &["sample.method=labor"]),
            ("exact", &["sample.method=exact"]),
            ("full", &["sample.method=full"]),
            ("whole-batch", &["sample.method=full", "sample.batch_size=0"]),
            ("cluster-gcn", &["sample.method=cluster-gcn", "sample.clusters=8", CLUSTERS]),
            ("cluster-gcn-2", &["sample.method=cluster-gcn", "sample.clusters=8", CLUSTERS, TWO]),
            ("saint-node", &["sample.method=saint-node", BUDGET, ESTIMATE]),
            ("saint-edge", &["sample.method=saint-edge", BUDGET, ESTIMATE]),
            ("saint-walk", &["sample.method=saint-walk", BUDGET, ESTIMATE]),
            (
                "saint-walk-2",
                &["sample.method=saint-walk", BUDGET, ESTIMATE, "sample.accumulate=2"],
            ),
            ("parts", &["partition.path=plain-2", TWO]),
            ("parts-average", &["partition.path=plain-2", "train.strategy=average", LOCAL, TWO]),
            ("parts-average-1", &["partition.path=plain-2", "train.strategy=average", LOCAL]),
            ("average-4", &["partition.parts=4", "train.strategy=average", LOCAL, TWO]),
            ("average-4-1", &["partition.parts=4", "train.strategy=average", LOCAL]),
            ("average-every-2", &["partition.parts=2", "train.strategy=average", LOCAL, EVERY_2]),
            (
                "average-slowmo",
                &["partition.parts=2", "train.strategy=average", LOCAL, "average.outer=slowmo"],
            ),
            (
                "average-nesterov",
                &["partition.parts=2", "train.strategy=average", LOCAL, "average.outer=nesterov"],
            ),
            (
                "average-moments",
                &["partition.parts=2", "train.strategy=average", LOCAL, "average.moments=true"],
            ),
            (
                "average-global",
                &["partition.parts=2", "train.strategy=average", "average.batch=global"],
            ),
            ("hops-0", &["partition.parts=2", "train.strategy=average", LOCAL, "partition.hops=0"]),
            ("hops-2", &["partition.parts=2", "train.strategy=average", LOCAL, "partition.hops=2"]),
            ("on-parts", &["partition.parts=2", "train.strategy=average", LOCAL, ON_PARTS]),
            ("vertex-cut", &["partition.parts=2", "partition.algorithm=dbh", TWO]),
            ("auto", &["train.strategy=auto", "train.workers=2"]),
            ("auto-tensor", &["train.strategy=auto", "train.workers=2", "plan.edge=1.0"]),
            ("pipeline-off", &["train.pipeline=off"]),
            ("pipeline-epoch", &["train.pipeline=epoch"]),
            ("sgd", &["optimizer.name=sgd", "optimizer.momentum=0.9"]),
            ("adamw", &["optimizer.name=adamw", "optimizer.weight_decay=0.01"]),
            ("cosine", &["schedule.kind=cosine", "schedule.warmup=1"]),
            ("clip", &["train.clip_norm=0.1"]),
            ("eval-2", &["train.eval_every=2"]),
            ("eval-0", &["train.eval_every=0"]),
            ("f1", &["train.metric=macro-f1"]),
            ("roc", &["train.metric=roc-auc"]),
            ("normalize", &["dataset.normalize=row"]),
            ("split", &["dataset.split.train=0.3", "dataset.split.valid=0.3", SPLIT_TEST]),
            ("three-layers", &["model.layers=3", "sample.fanouts=[3,3,3]"]),
            ("input-dropout", &["model.input_dropout=0.3"]),
            ("seed", &["train.seed=7"]),
            ("chunks-memory", &["train.strategy=tensor", "tensor.memory=300KiB"]),
            ("in-turns-slots", &[IN_TURNS, "partition.parts=6", SLOTS, "disaggregated.resident=2"]),
            ("in-turns-all", &[IN_TURNS, "partition.parts=3", "disaggregated.resident=3"]),
        ],
    ),
    (
        "nodes/rich",
        ("sage", &["model.name=sage"]),
        &[
            ("weighted", &["sample.method=weighted"]),
            ("labor", &["sample.method=labor"]),
            ("exact", &["sample.method=exact"]),
            ("full", &["sample.method=full"]),
            ("cluster-gcn", &["sample.method=cluster-gcn", "sample.clusters=8", CLUSTERS]),
            ("saint-walk", &["sample.method=saint-walk", BUDGET, ESTIMATE]),
        ],
    ),
    (
        "nodes/hetero",
        ("rgcn", &["model.name=rgcn"]),
        &[
            ("labor", &["sample.method=labor"]),
            ("exact", &["sample.method=exact"]),
            ("full", &["sample.method=full"]),
            ("fanouts", &["sample.edge_fanouts={'paper:r0:author'=[2,2],'venue:r2:topic'=[0,0]}"]),
            ("meta-path", &["sample.meta_path=['topic:r3:paper','venue:r2:topic']"]),
            ("adagrad", &["embedding.optimizer=adagrad", "embedding.lr=0.1"]),
            ("bound", &["embedding.bound=0.1", "embedding.weight_decay=0.01"]),
            ("average-4", &["partition.parts=4", "train.strategy=average", LOCAL, TWO]),
            ("whole-batch", &["sample.method=full", "sample.batch_size=0", TWO]),
            ("in-turns-files", &[IN_TURNS, "partition.parts=6", "embedding.store=file", TWO]),
        ],
    ),
    (
        "links/knowledge",
        NONE,
        &[
            ("dot", &["decoder.name=dot"]),
            ("cosine", &["decoder.name=cosine"]),
            ("complex", &["decoder.name=complex", "decoder.n3=0.01"]),
            ("rotate", &["decoder.name=rotate", "loss.name=self-adversarial", "loss.margin=6"]),
            ("transe", &["decoder.name=transe", "loss.name=margin"]),
            ("transe-2", &["decoder.name=transe", "decoder.degree=2", "loss.name=margin"]),
            ("mlp", &["decoder.name=mlp", "decoder.hidden=8"]),
            ("bce", &["loss.name=bce"]),
            ("infonce", &["loss.name=infonce", "loss.temperature=0.5"]),
            ("uniform", &["negatives.kind=uniform"]),
            ("in-batch", &["negatives.kind=in-batch"]),
            ("degree", &["negatives.kind=degree"]),
            ("typed", &["negatives.kind=typed"]),
            ("all", &["negatives.kind=all"]),
            ("local", &["negatives.kind=local", "partition.parts=2"]),
            ("filtered", &["negatives.filtered=true"]),
            ("tails", &["negatives.sides=tail"]),
            ("adagrad", &["embedding.optimizer=adagrad"]),
            ("two-workers", &[TWO, "embedding.optimizer=adagrad"]),
            ("hits", &["train.metric=hits@10"]),
        ],
    ),
    (
        "links/plain",
        ("sage", &["model.name=sage"]),
        &[
            ("keep", &["task.leakage=keep"]),
            ("dot-bce", &["decoder.name=dot", "loss.name=bce"]),
            ("mlp", &["decoder.name=mlp", "decoder.hidden=8"]),
            ("mrr", &["train.metric=mrr"]),
            ("labor", &["sample.method=labor"]),
            ("full", &["sample.method=full"]),
            ("weighted", &["sample.method=weighted"]),
            ("cluster-gcn", &["sample.method=cluster-gcn", "sample.clusters=8", CLUSTERS]),
            ("parts", &["partition.parts=2", TWO]),
            ("in-turns-nodes", &[IN_TURNS, "partition.parts=4", "disaggregated.deal=nodes"]),
            ("tensor-keep", &["train.strategy=tensor", "task.leakage=keep", TWO]),
        ],
    ),
    (
        "edges/rich",
        ("sage", &["model.name=sage"]),
        &[
            ("features", &["task.edge_features=true"]),
            ("messages-all", &["task.messages=all"]),
            ("keep", &["task.leakage=keep"]),
            ("bilinear", &["decoder.name=bilinear"]),
            ("distmult", &["decoder.name=distmult"]),
            ("f1", &["train.metric=macro-f1"]),
        ],
    ),
    (
        "edges/valued",
        ("sage", &["model.name=sage"]),
        &[
            ("mae", &["loss.name=mae", "train.metric=mae"]),
            ("features", &["task.edge_features=true"]),
        ],
    ),
];

/// Batches of each part, as the default was when most runs of `average` were recorded.
const LOCAL: &str = "average.batch=local";

const IN_TURNS: &str = "train.strategy=disaggregated";
const SLOTS: &str = "disaggregated.slots=2";
const TWO: &str = "train.workers=2";
const CLUSTERS: &str = "sample.clusters_per_batch=2";
const BUDGET: &str = "sample.budget=100";
const ESTIMATE: &str = "sample.estimate=10";
const EVERY_2: &str = "train.sync_every=2";
const ON_PARTS: &str = "train.evaluate_on=parts";
const SPLIT_TEST: &str = "dataset.split.test=0.4";
