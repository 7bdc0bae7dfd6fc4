"""GraphSAGE made heterogeneous by ``to_hetero``, on sampled neighborhoods, as PyG's ``to_hetero_mag.py``.

    python python/examples/pyg/to_hetero_mag.py data/imdb --epochs 20

Nodes of all types have features, those of the type ``--target`` classes and the splits ``train`` and ``valid``.
"""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric import seed_everything
from torch_geometric.nn import Linear, SAGEConv, Sequential, to_hetero

import gnarl
from gnarl.pyg import NeighborLoader


def train(model: torch.nn.Module, loader, target: str, optimizer: torch.optim.Optimizer, device: str) -> float:
    model.train()
    total = count = 0
    for batch in loader:
        batch = batch.to(device)
        optimizer.zero_grad()
        size = batch[target].batch_size
        out = model(batch.x_dict, batch.edge_index_dict)[target][:size]
        loss = F.cross_entropy(out, batch[target].y[:size])
        loss.backward()
        optimizer.step()
        total += float(loss) * size
        count += size
    return total / count


@torch.no_grad()
def accuracy(model: torch.nn.Module, loader, target: str, device: str) -> float:
    model.eval()
    right = count = 0
    for batch in loader:
        batch = batch.to(device)
        size = batch[target].batch_size
        out = model(batch.x_dict, batch.edge_index_dict)[target][:size]
        right += int((out.argmax(dim=1) == batch[target].y[:size]).sum())
        count += size
    return right / count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--target", default="movie", help="the node type whose classes are learned")
    options.add_argument("--batch-size", type=int, default=1024)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    seed_everything(given.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    target = given.target
    data = gnarl.open(given.dataset)
    train_nodes, valid_nodes = (target, "train"), (target, "valid")
    classes = data.num_classes(target)
    train_loader = NeighborLoader(data, [10, 10], train_nodes, batch_size=given.batch_size, shuffle=True)
    valid_loader = NeighborLoader(data, [10, 10], valid_nodes, batch_size=given.batch_size)

    model = Sequential(
        "x, edge_index",
        [
            (SAGEConv((-1, -1), 64), "x, edge_index -> x"),
            torch.nn.ReLU(inplace=True),
            (SAGEConv((-1, -1), 64), "x, edge_index -> x"),
            torch.nn.ReLU(inplace=True),
            (Linear(-1, classes), "x -> x"),
        ],
    )
    model = to_hetero(model, data.metadata(), aggr="sum").to(device)
    with torch.no_grad():  # Lazy layers take their shapes.
        batch = next(iter(train_loader)).to(device)
        model(batch.x_dict, batch.edge_index_dict)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, given.epochs + 1):
        loss = train(model, train_loader, target, optimizer, device)
        valid = accuracy(model, valid_loader, target, device)
        print(f"epoch {epoch}: loss {loss:.4f}, valid {valid:.4f}")
    print(f"valid accuracy {valid:.4f}")


if __name__ == "__main__":
    main()
