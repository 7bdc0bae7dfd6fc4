"""GraphSAGE of PyTorch Geometric, trained by several processes on batches that gnarl reads from disk.

    torchrun --nproc-per-node 2 python/examples/ddp.py data/mine --epochs 5 --out model.pt

Processes share every epoch: together the batches of a step have the seeds of one process with batches as many times as
large, and the same neighbors, so that weights are those of one process but for rounding.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.nn import GraphSAGE

import gnarl
from gnarl.pyg import NeighborLoader


def train(given: argparse.Namespace, rank: int, world_size: int) -> torch.nn.Module:
    torch.manual_seed(given.seed)
    data = gnarl.open(given.dataset)
    model = GraphSAGE(data.num_features(), given.hidden, num_layers=2, out_channels=data.num_classes())
    parallel = DistributedDataParallel(model) if world_size > 1 else model
    optimizer = torch.optim.Adam(model.parameters(), lr=given.lr)
    loader = NeighborLoader(
        data,
        [10, 10],
        "train",
        batch_size=given.batch_size // world_size,
        shuffle=True,
        seed=given.seed,
        rank=rank,
        world_size=world_size,
        threads=max(1, (os.cpu_count() or 1) // world_size),
    )
    for epoch in range(given.epochs):
        for batch in loader:
            out = parallel(batch.x, batch.edge_index)[: batch.batch_size]
            loss = F.cross_entropy(out, batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch + 1}: loss of the last batch {loss.item():.4f}")
    return model


@torch.no_grad()
def accuracy(model: torch.nn.Module, dataset: str, split: str) -> float:
    """The share of nodes of a split that are classified right, over all of their neighbors."""
    model.eval()
    right = count = 0
    for batch in NeighborLoader(dataset, [-1, -1], split, batch_size=512):
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        right += int((out.argmax(1) == batch.y[: batch.batch_size]).sum())
        count += batch.batch_size
    return right / count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--hidden", type=int, default=64)
    options.add_argument("--batch-size", type=int, default=256, help="seeds of a step, of all processes together")
    options.add_argument("--lr", type=float, default=0.01)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", help="a file for the weights")
    given = options.parse_args()
    # torchrun says who this process is; alone it is the only one.
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size > 1:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if world_size > 1 else 0
    model = train(given, rank, world_size)
    if rank == 0:
        print(f"valid accuracy {accuracy(model, given.dataset, 'valid'):.4f}")
        if given.out:
            torch.save(model.state_dict(), given.out)
    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
