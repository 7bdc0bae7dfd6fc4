//! Help beyond the definitions of commands: examples, known names, and features missing from this
//! build.

use std::sync::LazyLock;

use clap::Command;

/// The folder of the documents referenced by help.
const DOCS: &str = "docs";

/// An example of each command, and the document that explains it.
const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "import npy",
        "gnarl import npy --edges edges.npy --features features.npy --labels labels.npy --split train=train_idx.npy --symmetrize --out data/mine",
        "importing.md#numpy",
    ),
    (
        "import csv",
        "gnarl import csv --edges edges.csv --nodes nodes.csv --features 'x*' --label topic --out data/mine",
        "importing.md#csv-tsv-parquet",
    ),
    (
        "import tsv",
        "gnarl import tsv --edges edges.tsv --src from --dst to --symmetrize --out data/mine",
        "importing.md#csv-tsv-parquet",
    ),
    (
        "import parquet",
        "gnarl import parquet --edges author:writes:paper=writes.parquet --nodes paper=papers.parquet --nodes author=authors.parquet --reverse --out data/mine",
        "importing.md#csv-tsv-parquet",
    ),
    (
        "import schema",
        "gnarl import schema graph.json --reverse --out data/mine",
        "importing.md#schema-files",
    ),
    (
        "import triples",
        "gnarl import triples --train train.txt --valid valid.txt --test test.txt --out data/mine",
        "importing.md#knowledge-graph-triples",
    ),
    (
        "import ogb",
        "gnarl import ogb --root ogbn_products --add-inverse --out data/products",
        "importing.md#open-graph-benchmark",
    ),
    (
        "import graphbolt",
        "gnarl import graphbolt datasets/mine --out data/mine",
        "importing.md#graphbolt",
    ),
    (
        "generate rmat",
        "gnarl generate rmat --nodes 1000000 --edges 20000000 --features 32 --classes 10 --split 0.5 0.2 0.3 --out data/rmat",
        "importing.md",
    ),
    (
        "generate community",
        "gnarl generate community --nodes 200000 --average-degree 25 --out data/communities",
        "importing.md",
    ),
    (
        "generate typed",
        "gnarl generate typed --nodes 200000 --edges 2000000 --out data/typed",
        "heterogeneous.md",
    ),
    (
        "partition",
        "gnarl partition data/mine --algorithm spring --parts 8 --out data/mine-8",
        "partitioning.md",
    ),
    ("plan", "gnarl plan data/mine --parts 4,8 --memory 8GiB", "plan.md"),
    (
        "train",
        "gnarl train examples/sage.toml --set dataset.path=data/mine --set train.lr=0.003",
        "configuration.md",
    ),
    (
        "repeat",
        "gnarl repeat examples/sage.toml --seeds 5 --set dataset.path=data/mine",
        "configuration.md",
    ),
    ("eval", "gnarl eval runs/mine", "formats.md#run-folder"),
    (
        "compare",
        "gnarl compare runs/mine runs/mine-2 runs/mine-3 --html compared.html",
        "runs.md#comparing",
    ),
    ("infer", "gnarl infer runs/mine --out predictions.parquet", "inference.md"),
    (
        "sample",
        "gnarl sample run.toml --epochs 3 --out batches",
        "disaggregated.md#prepared-batches",
    ),
    ("inspect", "gnarl inspect data/mine --verify", "formats.md#dataset-directory"),
    ("serve", "gnarl serve data/mine-8 --part 0 --listen 127.0.0.1:7070", "serving.md"),
    ("serve-model", "gnarl serve-model runs/mine --listen 127.0.0.1:8080", "inference.md#online"),
    (
        "work",
        "gnarl work run.toml --role batch --join http://127.0.0.1:7071",
        "disaggregated.md#batch-workers",
    ),
    ("bench accuracy", "gnarl bench accuracy examples/sage.toml --seeds 5", "configuration.md"),
    ("bench catgnn", "gnarl bench catgnn --data graphs --out catgnn.md", "catgnn.md"),
    ("bench load", "gnarl bench load data/mine-8 --rule exact", "partitioning.md"),
    (
        "bench online",
        "gnarl bench online --url http://127.0.0.1:8080 --rate 100 --ids 32 --seconds 10",
        "inference.md#online",
    ),
    (
        "bench partition",
        "gnarl bench partition --dataset data/mine --parts 4,8 --out partitioners.md",
        "partitioning.md#comparing-partitioners",
    ),
    ("bench sample", "gnarl bench sample data/mine --fanouts 15,10,5", "partitioning.md"),
];

/// Adds an example to every command, known names to options, and marks features missing from the
/// build.
pub fn complete(command: Command) -> Command {
    let command = EXAMPLES.iter().fold(command, |command, (path, example, page)| {
        at(command, path, &|found| found.after_help(closing(path, example, page)))
    });
    let partitioners = gnarl_partition::names().join(", ");
    let named =
        [("partition", "algorithm"), ("plan", "algorithms"), ("bench partition", "algorithms")];
    let command = named.iter().fold(command, |command, (path, option)| {
        at(command, path, &|found| {
            found.mut_arg(*option, |arg| {
                let text =
                    format!("{}: {partitioners}", arg.get_help().cloned().unwrap_or_default());
                arg.help(text)
            })
        })
    });
    // Tables of Parquet share their options with text, which alone has delimiters and headers.
    let command = ["delimiter", "header"].iter().fold(command, |command, option| {
        at(command, "import parquet", &|found| found.mut_arg(*option, |arg| arg.hide(true)))
    });
    let command = match cfg!(feature = "serve") {
        true => command,
        false => ["serve", "serve-model", "work"].iter().fold(command, |command, path| {
            at(command, path, &|found| {
                let about = found.get_about().cloned().unwrap_or_default();
                found.about(format!("{about} (not in this build)"))
            })
        }),
    };
    match cfg!(feature = "mpi") {
        true => command,
        false => ["train", "infer"].iter().fold(command, |command, path| {
            at(command, path, &|found| {
                found.mut_arg("engine", |arg| {
                    let text = arg.get_help().cloned().unwrap_or_default();
                    arg.help(format!("{text} (mpi is not in this build)"))
                })
            })
        }),
    }
}

/// Applies `change` to the subcommand at `path`.
fn at(command: Command, path: &str, change: &dyn Fn(Command) -> Command) -> Command {
    match path.split_once(' ') {
        _ if path.is_empty() => change(command),
        Some((first, rest)) => command.mut_subcommand(first, |found| at(found, rest, change)),
        None => command.mut_subcommand(path, change),
    }
}

/// The text below the options of a command.
fn closing(path: &str, example: &str, page: &str) -> String {
    let names = match path {
        "train" | "repeat" => format!(
            "Models: {}; of heterogeneous graphs: {}\nDecoders of link prediction: {}\nMetrics: {}\n\n",
            gnarl_nn::models::names().join(", "),
            gnarl_nn::models::heterogeneous::names().join(", "),
            gnarl_nn::decoders::names().join(", "),
            metrics(),
        ),
        _ => String::new(),
    };
    format!("{names}Example:\n  {example}\n\nMore: {DOCS}/{page}")
}

/// Names accepted by `train.metric`.
fn metrics() -> String {
    let of_links = ["mrr", "mrr_raw", "hits@1", "hits@3", "hits@10"];
    [gnarl_nn::metrics::names(), &of_links, gnarl_nn::metrics::names_of_values()]
        .concat()
        .join(", ")
}

/// Version, features and target, as printed by `--version`.
pub fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let features = [
            ("cloud", cfg!(feature = "cloud")),
            ("mpi", cfg!(feature = "mpi")),
            ("serve", cfg!(feature = "serve")),
            ("zarr", cfg!(feature = "zarr")),
        ];
        let built = features.iter().map(|(name, built)| match built {
            true => format!("+{name}"),
            false => format!("-{name}"),
        });
        format!(
            "{}\nfeatures: {}\ntarget: {}-{}",
            env!("CARGO_PKG_VERSION"),
            built.collect::<Vec<_>>().join(" "),
            std::env::consts::ARCH,
            std::env::consts::OS,
        )
    });
    &TEXT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    /// Lists every command without subcommands, with the words that lead to it.
    fn leaves(command: &Command, path: &str, out: &mut Vec<(String, Command)>) {
        let mut below =
            command.get_subcommands().filter(|found| found.get_name() != "help").peekable();
        if below.peek().is_none() {
            out.push((path.trim().into(), command.clone()));
        }
        below.for_each(|found| leaves(found, &format!("{path} {}", found.get_name()), out));
    }

    fn all() -> Vec<(String, Command)> {
        let mut command = command();
        command.build();
        let mut out = Vec::new();
        leaves(&command, "", &mut out);
        out
    }

    /// The words of an example; quotes hide patterns from the shell.
    fn words(example: &str) -> Vec<String> {
        example.split_whitespace().map(|word| word.trim_matches('\'').to_string()).collect()
    }

    #[test]
    fn every_option_has_a_text() {
        for (path, command) in all() {
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "gnarl {path}: {} has no text", arg.get_id());
            }
        }
    }

    #[test]
    fn every_command_ends_with_an_example_that_parses() {
        let all = all();
        for (path, command) in &all {
            let example = EXAMPLES.iter().find(|(name, _, _)| name == path);
            let (_, example, page) = example.unwrap_or_else(|| panic!("gnarl {path}: no example"));
            assert!(example.starts_with(&format!("gnarl {path} ")), "{example}");
            // Long lines are wrapped.
            let help = command.clone().render_help().to_string();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(help.contains(example) && help.contains(page), "gnarl {path}: {help}");
            if let Err(error) = crate::args::command().try_get_matches_from(words(example)) {
                panic!("{example}: {error}");
            }
        }
        assert_eq!(all.len(), EXAMPLES.len(), "an example belongs to no command");
    }

    #[test]
    fn pages_of_examples_exist() {
        for (_, _, page) in EXAMPLES {
            let (file, section) = page.split_once('#').unwrap_or((page, ""));
            let path = format!("{}/../../{DOCS}/{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
            let anchor = |line: &str| {
                let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
                let title: String =
                    line.trim_start_matches('#').trim().chars().filter(kept).collect();
                title.to_lowercase().replace(' ', "-")
            };
            let found = text.lines().any(|line| line.starts_with('#') && anchor(line) == section);
            assert!(section.is_empty() || found, "{page}: no such section");
        }
    }
}
