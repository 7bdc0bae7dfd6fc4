//! The file that describes a run.
//!
//! One TOML file holds everything; `--set train.lr=0.01` overrides a key. Unknown keys are errors
//! that name the nearest known one.

mod known;
mod listen;
mod load;
mod negatives;
mod parts;
mod paths;
mod plan;
mod sections;
mod task;
mod tensor;
mod unused;
mod words;

pub use gnarl_nn::optim::ScheduleKind;
pub use listen::Listen;
pub use load::load;
pub use negatives::{NegativesSection, Sides};
pub use parts::{CacheSection, PartitionSection, Parts, Servers};
pub(crate) use paths::absolute;
pub use paths::home_of;
pub use plan::PlanSection;
pub use sections::{
    DatasetSection, Engine, EvaluateOn, ImportSection, Method, OutputSection, Pipeline, RunConfig,
    SampleSection, SplitSection, Strategy, TrainSection,
};
pub use task::{EmbeddingSection, Leakage, MessagesOver, RowOptimizer, TaskKind, TaskSection};
pub use tensor::TensorSection;
pub(crate) use unused::Applied;
pub use words::key_named;
