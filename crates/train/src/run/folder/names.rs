//! Files of a run's folder.

/// The resolved configuration.
pub const CONFIG: &str = "config.toml";
/// One JSON object per epoch.
pub const METRICS: &str = "metrics.jsonl";
/// The best weights.
pub const MODEL: &str = "model.safetensors";
/// Results and figures.
pub const SUMMARY: &str = "summary.json";
/// Test scores of each relation, in link prediction.
pub const RELATIONS: &str = "relations.json";
/// Counts of each class.
pub const CLASSES: &str = "classes.json";
/// The graph: counts, classes, splits.
pub const GRAPH: &str = "graph.json";
/// Sums of the spans of a profile.
pub const PROFILE: &str = "profile.json";
/// The spans of a profile.
pub const TRACE: &str = "trace.json";
/// Curves and pictures.
pub const REPORT: &str = "report.html";
/// The folder of events for TensorBoard.
pub(super) const TENSORBOARD: &str = "tensorboard";
/// The partition made for the run.
pub const PARTITION: &str = "partition";
/// Locked while a process trains in the folder.
pub(super) const LOCK: &str = "run.lock";
/// The process that trains, where the run is kept in an object store.
pub(super) const WRITER: &str = "writer.json";
