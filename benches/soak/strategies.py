"""Runs that a soak disturbs: one for every strategy, and for every way to have ranks or servers."""

import dataclasses
import pathlib
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

LINKS = [
    "task.kind=link-prediction", "embedding.dim=16", "negatives.count=16", "negatives.filtered=true",
    "sample.batch_size=4000",
]
SAMPLED = ["model.name=sage", "model.hidden=32", "sample.fanouts=[5,5]", "sample.batch_size=500"]
FULL = ["train.strategy=tensor", "model.hidden=32", "train.workers=2"]
TYPED = [
    "task.node_type=paper", "model.name=rgcn", "model.hidden=16", "sample.fanouts=[4,4]",
    "sample.method=exact",
]
IN_FILES = [*LINKS, "model.name=none", "embedding.store=file", "sample.buckets=4"]
TURNS = ["train.strategy=disaggregated", "disaggregated.resident=2"]


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A run: its graph, settings, how its graph is cut, and who trains."""

    name: str
    graph: str
    sets: list
    # Words of `gnarl partition`; none without parts.
    cut: list = dataclasses.field(default_factory=list)
    # Part 1 is with a server.
    served: bool = False
    # Processes under mpirun; 0 without it.
    ranks: int = 0


TWO = ["--parts", 2, "--algorithm", "spring"]
STRATEGIES = [
    Strategy("gradient", "plain", [*SAMPLED, "train.workers=2"]),
    Strategy("gradient-typed", "typed", [*TYPED, "train.workers=2"]),
    Strategy("gradient-links", "plain", [*LINKS, "model.name=sage", "sample.fanouts=[4,3]", "model.hidden=16"]),
    Strategy("gradient-served", "plain", [*SAMPLED, "train.workers=2"], TWO, served=True),
    Strategy("gradient-ranks", "plain", [*SAMPLED, "partition.servers=ranks"], TWO, ranks=2),
    Strategy("average", "plain", [*SAMPLED, "train.strategy=average", "train.workers=2"], ["--parts", 4]),
    Strategy("average-ranks", "plain", [*SAMPLED, "train.strategy=average"], ["--parts", 4], ranks=2),
    Strategy("tensor", "plain", [*FULL, "model.name=gcn"]),
    Strategy("tensor-chunks", "plain", [*FULL, "model.name=gcn", "tensor.chunks=3"]),
    Strategy("tensor-ranks", "plain", ["train.strategy=tensor", "model.hidden=32", "model.name=gat"], ranks=2),
    Strategy("turns", "plain", [*SAMPLED, *TURNS, "train.workers=2"], ["--parts", 6, "--layout", "storage"]),
    Strategy("turns-ranks", "plain", [*SAMPLED, *TURNS], ["--parts", 6, "--layout", "storage"], ranks=2),
    Strategy("knowledge", "knowledge", [*LINKS, "model.name=none"]),
    Strategy("files-ranks", "plain", [*IN_FILES, "partition.servers=ranks"], [*TWO, "--task"], ranks=2),
]


def gnarl(program, *words):
    """Runs a command that must succeed."""
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"gnarl {' '.join(map(str, words))} failed:\n{done.stderr}")


def graphs(program, folder):
    """Makes the three graphs."""
    plain = ["--nodes", 8000, "--communities", 8, "--classes", 8, "--features", 32]
    gnarl(program, "generate", "community", *plain, "--out", folder / "plain")
    typed = ["--nodes", 4000, "--edges", 30000, "--communities", 4, "--features", 8]
    gnarl(program, "generate", "typed", *typed, "--out", folder / "typed")
    files = [(f"--{name}", REPOSITORY / f"examples/data/kinships/{name}.txt") for name in ("train", "valid", "test")]
    words = [word for pair in files for word in pair]
    gnarl(program, "import", "triples", *words, "--out", folder / "knowledge")


def run_file(strategy, epochs, deadline):
    """The text of a run file without paths."""
    return (
        f"[train]\nepochs = {epochs}\ncheckpoint_seconds = 0\ndeadline_seconds = {deadline}\nthreads = 2\n"
        "eval_every = 2\n"
    )


def inputs(program, strategy, graph, folder):
    """Makes what the run reads in `folder`: a copy of the graph, or its parts."""
    folder.mkdir(parents=True)
    subprocess.run(["cp", "-r", graph, folder / "graph"], check=True)
    if not strategy.cut:
        return
    words = [word for word in strategy.cut if word != "--task"]
    if "--task" in strategy.cut:
        task = folder / "task.toml"
        task.write_text(run_file(strategy, 2, 30))
        words += ["--task", task, "--set", f"dataset.path={folder / 'graph'}"]
        for line in (line for line in strategy.sets if not line.startswith("partition.")):
            words += ["--set", line]
    gnarl(program, "partition", folder / "graph", *words, "--out", folder / "parts")
    if strategy.served:
        subprocess.run(["cp", "-r", folder / "parts", folder / "served"], check=True)
        subprocess.run(["rm", "-r", folder / "parts" / "part-1", folder / "served" / "part-0"], check=True)


def command(program, strategy, folder, file, run, link):
    """Words of the training run, without how it starts."""
    sets = [*strategy.sets, f"dataset.path={folder / 'graph'}", f"output.dir={run}"]
    if strategy.cut:
        sets.append(f"partition.path={folder / 'parts'}")
    if strategy.served:
        sets.append(f'partition.servers=["http://{link.address}"]')
    words = [program, "train", file, *(word for line in sets for word in ("--set", line))]
    if strategy.ranks:
        launcher = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", strategy.ranks]
        words = [*launcher, *words, "--engine", "mpi"]
    return [str(word) for word in words]
