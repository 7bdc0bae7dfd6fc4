"""GraphSAGE of two layers on sampled neighborhoods, evaluated layer by layer over all neighbors, as PyG's ``reddit.py``.

    python python/examples/pyg/reddit.py data/photo --epochs 10

Nodes have features, classes, and the splits ``train``, ``valid`` and ``test``.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.nn import SAGEConv

import gnarl
from gnarl.pyg import NeighborLoader


class SAGE(torch.nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([SAGEConv(features, hidden), SAGEConv(hidden, classes)])

    def layer(self, number: int, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.layers[number](x, edge_index)
        if number + 1 < len(self.layers):
            x = F.dropout(x.relu(), p=0.5, training=self.training)
        return x

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for number in range(len(self.layers)):
            x = self.layer(number, x, edge_index)
        return x

    @torch.no_grad()
    def inference(self, loader, device: str) -> Tensor:
        """The outputs of all nodes. Batches around nodes in order have one hop of neighbors."""
        rows = None
        for number in range(len(self.layers)):
            computed = []
            for batch in loader:
                x = batch.x if rows is None else rows[batch.n_id]
                out = self.layer(number, x.to(device), batch.edge_index.to(device))
                computed.append(out[: batch.batch_size].cpu())
            rows = torch.cat(computed)
        return rows


def train(model: SAGE, loader, optimizer: torch.optim.Optimizer, device: str) -> float:
    model.train()
    total = count = 0
    for batch in loader:
        batch = batch.to(device)
        optimizer.zero_grad()
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        loss = F.cross_entropy(out, batch.y[: batch.batch_size])
        loss.backward()
        optimizer.step()
        total += float(loss) * batch.batch_size
        count += batch.batch_size
    return total / count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--batch-size", type=int, default=1024)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    seed_everything(given.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    data = gnarl.open(given.dataset)
    features, classes, labels = data.num_features(), data.num_classes(), torch.from_numpy(data.labels())
    train_loader = NeighborLoader(data, [25, 10], data.train_mask, batch_size=given.batch_size, shuffle=True)
    all_loader = NeighborLoader(data, [-1], None, batch_size=given.batch_size)

    model = SAGE(features, 256, classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    masks = [torch.as_tensor(mask) for mask in (data.train_mask, data.val_mask, data.test_mask)]
    for epoch in range(1, given.epochs + 1):
        loss = train(model, train_loader, optimizer, device)
        model.eval()
        right = model.inference(all_loader, device).argmax(dim=1) == labels
        scores = [float(right[mask].float().mean()) for mask in masks]
        print(f"epoch {epoch}: loss {loss:.4f}, train {scores[0]:.4f}, valid {scores[1]:.4f}, test {scores[2]:.4f}")
    print(f"test accuracy {scores[2]:.4f}")


if __name__ == "__main__":
    main()
