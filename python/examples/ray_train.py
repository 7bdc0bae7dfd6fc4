"""GraphSAGE of PyTorch Geometric, trained by Ray Train on batches that gnarl reads from disk.

    python python/examples/ray_train.py data/mine --epochs 5 --workers 2 --storage runs/ray

The dataset is at the same path on all hosts. Weights of several workers are those of one but for rounding. A worker that
fails is started again, and training goes on from the checkpoint of the last epoch.
"""

import argparse
import os
import tempfile
from pathlib import Path

import ray.train
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ray.train.torch import TorchTrainer, prepare_model
from torch_geometric.nn import GraphSAGE

import gnarl
from gnarl.pyg import NeighborLoader


def train(given: dict) -> None:
    """The work of one worker."""
    context = ray.train.get_context()
    world_size = context.get_world_size()
    torch.manual_seed(given["seed"])
    graph = gnarl.open(given["dataset"])
    share = {"rank": context.get_world_rank(), "world_size": world_size, "threads": given["threads"]}
    size = given["batch_size"] // world_size
    # prepare_data_loader is not for these, which take rank and world_size themselves.
    loader = NeighborLoader(graph, [10, 10], "train", batch_size=size, shuffle=True, seed=given["seed"], **share)
    valid = NeighborLoader(graph, [-1, -1], "valid", batch_size=size, seed=given["seed"], **share)

    model = GraphSAGE(graph.num_features(), given["hidden"], num_layers=2, out_channels=graph.num_classes())
    parallel = prepare_model(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=given["lr"])
    first = 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            state = torch.load(Path(folder) / "state.pt", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1

    loader.set_epoch(first)
    for epoch in range(first, given["epochs"]):
        model.train()
        for batch in loader:
            out = parallel(batch.x, batch.edge_index)[: batch.batch_size]
            loss = F.cross_entropy(out, batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        figures = {"epoch": epoch, "accuracy": accuracy(model, valid)}
        with tempfile.TemporaryDirectory() as folder:
            kept = None
            if context.get_world_rank() == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                torch.save(state, Path(folder) / "state.pt")
                kept = ray.train.Checkpoint.from_directory(folder)
            ray.train.report(figures, checkpoint=kept)


@torch.no_grad()
def accuracy(model: torch.nn.Module, loader: NeighborLoader) -> float:
    """The share of nodes that are classified right, over all of their neighbors, of all workers together."""
    model.eval()
    counts = torch.zeros(2)
    for batch in loader:
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        counts += torch.tensor([(out.argmax(1) == batch.y[: batch.batch_size]).sum(), batch.batch_size])
    if dist.is_initialized():
        dist.all_reduce(counts)
    return float(counts[0] / counts[1])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--hidden", type=int, default=64)
    options.add_argument("--batch-size", type=int, default=256, help="seeds of a step, of all workers together")
    options.add_argument("--lr", type=float, default=0.01)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--storage", default="runs/ray", help="a folder that all hosts have, for checkpoints")
    given = options.parse_args()
    settings = {name: getattr(given, name) for name in ("epochs", "hidden", "batch_size", "lr", "seed")}
    trainer = TorchTrainer(
        train,
        train_loop_config={
            **settings,
            "dataset": os.path.abspath(given.dataset),
            "threads": max(1, (os.cpu_count() or 1) // given.workers),
        },
        scaling_config=ray.train.ScalingConfig(num_workers=given.workers),
        run_config=ray.train.RunConfig(
            storage_path=os.path.abspath(given.storage),
            failure_config=ray.train.FailureConfig(max_failures=3),
            checkpoint_config=ray.train.CheckpointConfig(num_to_keep=1),
        ),
    )
    result = trainer.fit()
    print(f"checkpoint {result.checkpoint.path}")
    print(f"valid accuracy {result.metrics['accuracy']:.4f}")


if __name__ == "__main__":
    main()
