"""Heterogeneous graph transformer (HGT) on a whole graph, as PyG's ``hgt_dblp.py``.

    python python/examples/pyg/hgt_dblp.py data/acm --epochs 100

Nodes of the type ``--target`` have classes and the splits ``train``, ``valid`` and ``test``; types without features get a
constant one.
"""

import argparse

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.nn import HGTConv, Linear

import gnarl


class HGT(torch.nn.Module):
    def __init__(self, metadata: tuple, target: str, hidden: int, classes: int, heads: int, layers: int) -> None:
        super().__init__()
        self.target = target
        self.inputs = torch.nn.ModuleDict({of: Linear(-1, hidden) for of in metadata[0]})
        self.convs = torch.nn.ModuleList(HGTConv(hidden, hidden, metadata, heads) for _ in range(layers))
        self.lin = Linear(hidden, classes)

    def forward(self, x: dict, edge_index: dict) -> Tensor:
        x = {of: self.inputs[of](rows).relu() for of, rows in x.items()}
        for conv in self.convs:
            x = conv(x, edge_index)
        return self.lin(x[self.target])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=100)
    options.add_argument("--target", default="paper", help="the node type whose classes are learned")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    seed_everything(given.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    data = gnarl.open(given.dataset).to_pyg()
    bare = [of for of in data.node_types if "x" not in data[of]]
    data = T.Constant(node_types=bare)(data).to(device) if bare else data.to(device)
    labels = data[given.target].y
    masks = [data[given.target][name] for name in ("train_mask", "val_mask", "test_mask")]

    model = HGT(data.metadata(), given.target, 64, int(labels.max()) + 1, heads=2, layers=1).to(device)
    with torch.no_grad():  # Lazy layers take their shapes.
        model(data.x_dict, data.edge_index_dict)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=0.001)
    for epoch in range(1, given.epochs + 1):
        model.train()
        optimizer.zero_grad()
        out = model(data.x_dict, data.edge_index_dict)
        loss = F.cross_entropy(out[masks[0]], labels[masks[0]])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = model(data.x_dict, data.edge_index_dict).argmax(dim=1) == labels
        scores = [float(right[mask].float().mean()) for mask in masks]
        print(f"epoch {epoch}: loss {loss:.4f}, train {scores[0]:.4f}, valid {scores[1]:.4f}, test {scores[2]:.4f}")
    print(f"test accuracy {scores[2]:.4f}")


if __name__ == "__main__":
    main()
