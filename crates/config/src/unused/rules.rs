//! The runs that each key of a run file applies to.

use gnarl_nn::models::Decomposition;
use gnarl_nn::optim::ScheduleKind;
use gnarl_store::cache::CachePolicy;

use super::applied::Rule;
use crate::{
    BatchSource, Method, Outer, Pipeline, ReadAhead, RowOptimizer, Servers, Sides, SplitBy,
    Strategy, TaskKind,
};

/// The first rule of a key that does not apply is reported.
pub(super) const RULES: &[Rule] = &[
    Rule {
        keys: &["dataset.read_ahead", "dataset.cache_memory"],
        applies: |a| !a.tensor() && !a.model(&["none"]) && a.run.partition.servers.is_none(),
        to: "batches of nodes of this machine's files: not to strategy 'tensor', partition.servers or model.name 'none'",
    },
    Rule {
        keys: &["dataset.read_ahead", "dataset.cache_memory"],
        applies: |a| !a.disaggregated() || a.run.evaluates_sampled(),
        to: "batches of mapped files; strategy 'disaggregated' reads whole parts into memory",
    },
    Rule {
        keys: &["dataset.read_ahead", "dataset.cache_memory"],
        applies: |a| a.run.sample.source == BatchSource::Graph || a.run.evaluates_sampled(),
        to: "batches of mapped files; those of sample.source = 'batches' are prepared",
    },
    Rule {
        keys: &["dataset.cache_memory"],
        applies: |a| a.run.dataset.read_ahead != ReadAhead::Never,
        to: "batches that read ahead: dataset.read_ahead is 'never'",
    },
    Rule {
        keys: &["disaggregated.*"],
        applies: |a| a.disaggregated(),
        to: "strategy 'disaggregated'",
    },
    Rule {
        keys: &[
            "disaggregated.listen",
            "disaggregated.join",
            "disaggregated.token_file",
            "disaggregated.certificate",
            "disaggregated.key",
        ],
        applies: |a| a.run.disaggregated.batch_workers > 0,
        to: "batches that others prepare: disaggregated.batch_workers is 0",
    },
    Rule {
        keys: &["disaggregated.listen", "disaggregated.key"],
        applies: |a| a.run.disaggregated.join.is_none(),
        to: "the coordinator of the first rank; that of disaggregated.join has its own",
    },
    Rule {
        keys: &["dataset.split.*"],
        applies: |a| !a.links(),
        to: "labels of nodes and of edges; link prediction has task.valid and task.test",
    },
    Rule { keys: &["task.node_type"], applies: |a| a.nodes(), to: "labels of nodes" },
    Rule {
        keys: &["task.name"],
        applies: |a| a.run.task.kind == TaskKind::Custom,
        to: "task.kind = 'custom'",
    },
    Rule {
        keys: &["task.edge_type"],
        applies: |a| !a.nodes(),
        to: "link prediction and labels of edges",
    },
    Rule {
        keys: &["task.label", "task.edge_features", "task.messages"],
        applies: |a| a.edges(),
        to: "labels of edges",
    },
    Rule {
        keys: &["task.valid", "task.test", "task.split_by"],
        applies: |a| a.links(),
        to: "link prediction",
    },
    Rule {
        keys: &["task.split_seed"],
        applies: |a| a.links() && a.run.split_by() == SplitBy::Endpoints,
        to: "link prediction, where held-out edges are drawn by their endpoints",
    },
    Rule {
        keys: &["task.rank_memory"],
        applies: |a| a.links() && !a.run.samples_by_time() && a.run.evaluate.candidates == 0,
        to: "link prediction that ranks all nodes",
    },
    Rule {
        keys: &["sample.buckets_in_memory"],
        applies: |a| a.run.sample.buckets > 0,
        to: "runs with sample.buckets",
    },
    Rule {
        keys: &["sample.buckets"],
        applies: |a| {
            let batches = a.run.sample.batch_size > 0 && !a.run.train.strategy.parts_train_alone();
            a.links() && a.model(&["none"]) && batches
        },
        to: "link prediction without an encoder (model.name = 'none'), in batches of all ranks together",
    },
    Rule {
        keys: &["task.messages", "task.leakage"],
        applies: |a| !a.run.samples_by_time(),
        to: "runs without sample.time: with it, the edges before an edge pass messages to it",
    },
    Rule {
        keys: &["task.leakage"],
        applies: |a| a.edges() || a.links() && !a.model(&["none"]),
        to: "labels of edges, and link prediction with an encoder",
    },
    Rule {
        keys: &["embedding.dim"],
        applies: |a| !a.nodes(),
        to: "link prediction and labels of edges; elsewhere embeddings are model.hidden wide",
    },
    Rule {
        keys: &[
            "embedding.optimizer",
            "embedding.lr",
            "embedding.bound",
            "embedding.weight_decay",
            "embedding.store",
        ],
        applies: |a| a.tables,
        to: "runs that learn embeddings, where nodes have no features",
    },
    Rule {
        keys: &["model.in_dim", "model.out_dim", "model.edge_dim"],
        applies: |_| false,
        to: "no run file: widths follow from the dataset",
    },
    Rule {
        keys: &["model.propagations", "model.teleport"],
        applies: |a| a.run.model.decoupled,
        to: "model.decoupled = true",
    },
    Rule {
        keys: &["model.layers", "model.hidden", "model.dropout", "model.input_dropout"],
        applies: |a| !a.model(&["none"]),
        to: "models; embeddings alone have embedding.dim",
    },
    Rule {
        keys: &["model.hidden", "model.dropout", "model.input_dropout"],
        applies: |a| !a.model(&["sgc"]),
        to: "models with hidden layers, which sgc has not",
    },
    Rule {
        keys: &["model.activation"],
        applies: |a| !a.model(&["none", "sgc", "hgt"]),
        to: "models that apply an activation between layers of their choice; sgc has none and hgt its own",
    },
    Rule {
        keys: &["optimizer.weight_decay"],
        applies: |a| !a.model(&["none"]),
        to: "weights; embeddings have embedding.weight_decay",
    },
    Rule {
        keys: &["model.heads"],
        applies: |a| a.model(&["gat", "gatv2", "rgat", "hgt"]) && !a.run.model.decoupled,
        to: "the models gat, gatv2, rgat and hgt; hetero and decoupled gat have model.out_heads",
    },
    Rule {
        keys: &["model.out_heads", "model.negative_slope"],
        applies: |a| a.attends(),
        to: "the models gat, gatv2 and rgat",
    },
    Rule {
        keys: &["model.attention_dropout"],
        applies: |a| a.model(&["gat", "gatv2"]) || a.hetero_of("gat"),
        to: "the models gat and gatv2",
    },
    Rule {
        keys: &["model.self_loops"],
        applies: |a| a.model(&["gat", "gatv2"]),
        to: "the models gat and gatv2",
    },
    Rule {
        keys: &["model.edge_features"],
        // Other models refuse it; those of a program may read features of edges.
        applies: |a| !a.model(&["none"]),
        to: "models",
    },
    Rule {
        keys: &["model.aggregator"],
        applies: |a| a.model(&["sage", "ngnn"]) || a.hetero_of("sage"),
        to: "the models sage and ngnn",
    },
    Rule {
        keys: &["model.decomposition"],
        applies: |a| a.model(&["rgcn"]) && !a.run.model.decoupled,
        to: "the model rgcn without model.decoupled",
    },
    Rule {
        keys: &["model.bases"],
        applies: |a| a.model(&["rgcn"]) && a.run.model.decomposition != Decomposition::None,
        to: "the model rgcn with model.decomposition",
    },
    Rule {
        keys: &["model.one_hot"],
        applies: |a| a.model(&["rgcn"]) && a.run.model.decomposition == Decomposition::Basis,
        to: "the model rgcn with model.decomposition = 'basis'",
    },
    Rule { keys: &["model.softmax"], applies: |a| a.model(&["rgat"]), to: "the model rgat" },
    Rule {
        keys: &["model.relation_layer", "model.across"],
        applies: |a| a.model(&["hetero"]),
        to: "the model hetero",
    },
    Rule {
        keys: &["decoder.*"],
        applies: |a| !a.nodes(),
        to: "link prediction and labels of edges",
    },
    Rule {
        keys: &["decoder.degree"],
        applies: |a| a.decoder(&["transe"]),
        to: "the decoder transe",
    },
    Rule {
        keys: &["decoder.hidden"],
        applies: |a| a.decoder(&["mlp", "bilinear"]),
        to: "the decoders mlp and bilinear",
    },
    Rule {
        keys: &["decoder.layers"],
        applies: |a| a.edges() && a.decoder(&["mlp"]),
        to: "labels of edges with the decoder mlp",
    },
    Rule { keys: &["decoder.n3"], applies: |a| a.links(), to: "link prediction" },
    Rule {
        keys: &["loss.*"],
        applies: |a| a.links() || a.numbers(),
        to: "link prediction and regression",
    },
    Rule {
        keys: &["loss.margin"],
        applies: |a| a.loss(&["margin", "self-adversarial"]),
        to: "the losses margin and self-adversarial",
    },
    Rule {
        keys: &["loss.temperature"],
        applies: |a| a.loss(&["infonce", "self-adversarial"]),
        to: "the losses infonce and self-adversarial",
    },
    Rule { keys: &["loss.delta"], applies: |a| a.loss(&["huber"]), to: "the loss huber" },
    Rule { keys: &["negatives.*"], applies: |a| a.links(), to: "link prediction" },
    Rule {
        keys: &["negatives.count"],
        applies: |a| !a.negatives(&["in-batch", "all"]),
        to: "other negatives than in-batch and all",
    },
    Rule {
        keys: &["negatives.exponent"],
        applies: |a| a.negatives(&["degree"]),
        to: "negatives.kind = 'degree'",
    },
    Rule {
        keys: &["negatives.heads"],
        applies: |a| a.negatives(&["file"]) && a.run.negatives.sides != Sides::Tail,
        to: "negatives.kind = 'file' that replaces heads",
    },
    Rule {
        keys: &["negatives.tails"],
        applies: |a| a.negatives(&["file"]) && a.run.negatives.sides != Sides::Head,
        to: "negatives.kind = 'file' that replaces tails",
    },
    Rule {
        keys: &["sample.batch_size"],
        applies: |a| !a.subgraphs() && (!a.tensor() || !a.nodes()),
        to: "batches of seeds: subgraph methods have sizes of their own, and strategy 'tensor' takes all nodes",
    },
    Rule {
        keys: &[
            "sample.method",
            "sample.fanouts",
            "sample.edge_fanouts",
            "sample.meta_path",
            "sample.accumulate",
            "sample.clusters",
            "sample.cluster_algorithm",
            "sample.clusters_per_batch",
            "sample.budget",
            "sample.walk_length",
            "sample.estimate",
        ],
        applies: |a| !a.tensor(),
        to: "sampled batches; strategy 'tensor' takes the whole graph",
    },
    Rule {
        keys: &["sample.fanouts", "sample.edge_fanouts", "sample.meta_path"],
        applies: |a| !a.model(&["none"]),
        to: "models that pass messages",
    },
    Rule {
        keys: &["sample.fanouts"],
        applies: |a| a.run.sample.method.has_fanouts(),
        to: "sample.method 'neighbor', 'labor', 'exact', 'weighted', 'walk', 'ppr' and 'custom'",
    },
    Rule {
        keys: &["sample.batches"],
        applies: |a| a.run.sample.source == BatchSource::Batches,
        to: "sample.source = 'batches'",
    },
    Rule {
        keys: &["sample.time"],
        applies: |a| !a.model(&["none", "mlp"]),
        to: "models that read neighbors",
    },
    Rule {
        keys: &["sample.name"],
        applies: |a| a.run.sample.method == Method::Custom,
        to: "sample.method = 'custom'",
    },
    Rule {
        keys: &["sample.edge_fanouts", "sample.meta_path"],
        applies: |a| a.heterogeneous || a.relational(),
        to: "heterogeneous graphs, and models that treat relations as edge types",
    },
    Rule {
        keys: &["sample.edge_fanouts"],
        applies: |a| a.run.sample.method.has_fanouts(),
        to: "sample.method 'neighbor', 'labor', 'exact' and 'weighted'; 'full' takes all neighbors over an edge type, or none where its fan-out is 0",
    },
    Rule {
        keys: &["sample.accumulate"],
        applies: |a| a.subgraphs() && a.run.train.strategy == Strategy::Gradient,
        to: "subgraph methods with strategy 'gradient'",
    },
    Rule {
        keys: &["sample.clusters", "sample.cluster_algorithm", "sample.clusters_per_batch"],
        applies: |a| a.run.sample.method == Method::ClusterGcn,
        to: "sample.method = 'cluster-gcn'",
    },
    Rule {
        keys: &["sample.budget", "sample.estimate"],
        applies: |a| a.subgraphs() && a.run.sample.method != Method::ClusterGcn,
        to: "sample.method 'saint-node', 'saint-edge' and 'saint-walk'",
    },
    Rule {
        keys: &["sample.walk_length"],
        applies: |a| matches!(a.run.sample.method, Method::SaintWalk | Method::Walk),
        to: "sample.method 'saint-walk' and 'walk'",
    },
    Rule {
        keys: &["sample.walks", "sample.restart", "sample.return_bias", "sample.in_out_bias"],
        applies: |a| a.run.sample.method == Method::Walk,
        to: "sample.method = 'walk'",
    },
    Rule {
        keys: &["sample.teleport", "sample.tolerance"],
        applies: |a| a.run.sample.method == Method::Ppr,
        to: "sample.method = 'ppr'",
    },
    Rule { keys: &["train.sync_every"], applies: |a| a.averages(), to: "strategy 'average'" },
    Rule {
        keys: &["average.*"],
        applies: |a| a.averages() && a.is_cut(),
        to: "strategy 'average' on several parts",
    },
    Rule {
        keys: &["average.batch"],
        applies: |a| !a.subgraphs() && a.run.sample.batch_size > 0,
        to: "batches of seeds: sample.batch_size above 0, no subgraph method",
    },
    Rule {
        keys: &["average.outer_lr", "average.outer_momentum"],
        applies: |a| a.run.average.outer.has_momentum(),
        to: "average.outer 'slowmo', 'nesterov' and 'custom'",
    },
    Rule {
        keys: &["average.name"],
        applies: |a| a.run.average.outer == Outer::Custom,
        to: "average.outer = 'custom'",
    },
    Rule {
        keys: &["train.evaluate_on"],
        applies: |a| a.averages() && a.is_cut() && a.nodes(),
        to: "labels of nodes with strategy 'average' on several parts",
    },
    Rule {
        keys: &["train.patience"],
        applies: |a| a.run.train.eval_every > 0,
        to: "runs that are evaluated on the way, and train.eval_every is 0",
    },
    Rule { keys: &["train.score_training"], applies: |a| a.nodes(), to: "labels of nodes" },
    Rule {
        keys: &[
            "train.patience",
            "train.eval_every",
            "train.evaluate_on",
            "train.score_training",
            "evaluate.fanouts",
        ],
        applies: |a| !a.run.evaluate.is_never(),
        to: "runs that are evaluated, and evaluate.splits is empty",
    },
    Rule {
        keys: &["evaluate.candidates"],
        applies: |a| a.links() && !a.model(&["none"]),
        to: "link prediction with an encoder",
    },
    Rule {
        keys: &["evaluate.fanouts"],
        applies: |a| !a.tensor() && !a.model(&["none", "mlp"]),
        to: "models that read neighbors, with strategies 'gradient' and 'average'",
    },
    Rule {
        keys: &["train.precision"],
        applies: |a| !a.model(&["none"]),
        to: "runs with an encoder: products of a model's layers",
    },
    Rule {
        keys: &["train.prefetch", "train.preparation_threads"],
        applies: |a| a.run.train.pipeline != Pipeline::Off,
        to: "train.pipeline 'non-stop' and 'epoch'",
    },
    Rule {
        keys: &["train.preparation_threads"],
        applies: |a| {
            let sample = &a.run.sample;
            let whole = sample.batch_size == 0 && sample.method == Method::Full;
            let same_again = a.nodes() && whole && !a.run.train.strategy.parts_train_alone();
            !a.tensor() && !same_again
        },
        to: "runs with mini-batches",
    },
    Rule { keys: &["tensor.*"], applies: |a| a.tensor(), to: "strategy 'tensor'" },
    Rule {
        keys: &["tensor.spill"],
        applies: |a| a.run.tensor.memory.is_some(),
        to: "runs with tensor.memory",
    },
    Rule {
        keys: &["tensor.overlap"],
        applies: |a| a.run.tensor.memory.is_some() || a.run.tensor.chunks > 0,
        to: "runs with tensor.memory or tensor.chunks",
    },
    Rule {
        keys: &["partition.parts"],
        applies: |a| a.run.partition.path.is_none(),
        to: "runs without partition.path",
    },
    Rule { keys: &["partition.path"], applies: |_| true, to: "" },
    Rule {
        keys: &[
            "partition.algorithm",
            "partition.hops",
            "partition.balance",
            "partition.tau_vol",
            "partition.chunk",
            "partition.passes",
            "partition.freeze",
            "partition.constraints",
        ],
        applies: |a| a.run.partition.path.is_none() && a.is_cut(),
        to: "runs that partition the graph: partition.parts above 1, without partition.path",
    },
    Rule {
        keys: &["partition.seed"],
        applies: |a| {
            let clusters = a.run.sample.method == Method::ClusterGcn;
            clusters || a.run.partition.path.is_none() && a.is_cut()
        },
        to: "runs that partition the graph: partition.parts above 1, without partition.path",
    },
    Rule {
        keys: &["partition.hops"],
        applies: |a| !a.disaggregated(),
        to: "parts with halo nodes, which those of strategy 'disaggregated' have not",
    },
    Rule {
        keys: &["partition.tau_vol"],
        applies: |a| a.partitioner(&["spring"]),
        to: "the partitioner spring",
    },
    Rule {
        keys: &["partition.chunk", "partition.passes", "partition.freeze"],
        applies: |a| a.partitioner(&["grem"]),
        to: "the partitioner grem",
    },
    Rule {
        keys: &["partition.constraints"],
        applies: |a| a.partitioner(&["knot", "grem", "metis", "spring", "ldg", "fennel"]),
        to: "the partitioners knot, grem, metis, spring, ldg and fennel",
    },
    Rule { keys: &["partition.servers"], applies: |_| true, to: "" },
    Rule {
        keys: &["partition.token_file", "partition.certificate"],
        applies: |a| matches!(a.run.partition.servers, Some(Servers::At(_))),
        to: "partition.servers that are listed",
    },
    Rule {
        keys: &["partition.port"],
        applies: |a| a.run.partition.servers == Some(Servers::Ranks),
        to: "partition.servers = 'ranks'",
    },
    Rule {
        keys: &["cache.policy", "cache.memory"],
        applies: |a| {
            a.run.partition.servers.is_some()
                || a.run.train.strategy == Strategy::Disaggregated
                    && a.run.disaggregated.batch_workers > 0
        },
        to: "runs with partition.servers or disaggregated.batch_workers",
    },
    Rule {
        keys: &["cache.score", "cache.lists"],
        applies: |a| a.run.partition.servers.is_some(),
        to: "runs with partition.servers",
    },
    Rule {
        keys: &["cache.policy"],
        applies: |a| a.run.cache.memory.as_u64() > 0,
        to: "cache.memory above 0",
    },
    Rule {
        keys: &["cache.score"],
        applies: |a| a.run.cache.policy == CachePolicy::Fixed || a.run.cache.lists.as_u64() > 0,
        to: "cache.policy = 'fixed', and cache.lists",
    },
    Rule {
        keys: &["optimizer.beta1", "optimizer.beta2"],
        applies: |a| a.optimizer(&["adam", "adamw"]) || a.rows(RowOptimizer::Adam),
        to: "adam and adamw",
    },
    Rule {
        keys: &["optimizer.eps"],
        applies: |a| a.optimizer(&["adam", "adamw"]) || a.tables,
        to: "adam, adamw and adagrad",
    },
    Rule {
        keys: &["optimizer.momentum", "optimizer.nesterov"],
        applies: |a| a.optimizer(&["sgd"]),
        to: "sgd",
    },
    Rule {
        keys: &["schedule.every", "schedule.gamma"],
        applies: |a| a.run.schedule.kind == ScheduleKind::Step,
        to: "schedule.kind = 'step'",
    },
    Rule {
        keys: &["schedule.floor"],
        applies: |a| [ScheduleKind::Cosine, ScheduleKind::Linear].contains(&a.run.schedule.kind),
        to: "schedule.kind 'cosine' and 'linear'",
    },
];
