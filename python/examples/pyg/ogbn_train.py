"""Node classification on sampled neighborhoods by SGFormer, Polynormer, GraphSAGE or GAT, as PyG's ``ogbn_train.py``.

    python python/examples/pyg/ogbn_train.py data/pubmed --epochs 50 --model sgformer

Nodes have features, classes, and the splits ``train``, ``valid`` and ``test``.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.nn.models import GAT, GraphSAGE, Polynormer, SGFormer

import gnarl
from gnarl.pyg import NeighborLoader

#: Models that attend to all nodes of a seed: its neighborhood must be its own.
GLOBAL = ("sgformer", "polynormer")


def make(given: argparse.Namespace, features: int, classes: int) -> torch.nn.Module:
    if given.model == "sgformer":
        return SGFormer(
            features,
            given.hidden,
            classes,
            trans_num_heads=given.heads,
            trans_dropout=given.dropout,
            gnn_num_layers=given.layers,
            gnn_dropout=given.dropout,
        )
    if given.model == "polynormer":
        return Polynormer(features, given.hidden, classes, local_layers=given.layers)
    common = {"num_layers": given.layers, "out_channels": classes, "dropout": given.dropout}
    if given.model == "gat":
        return GAT(features, given.hidden, heads=given.heads, **common)
    return GraphSAGE(features, given.hidden, **common)


def outputs(model: torch.nn.Module, batch, name: str) -> Tensor:
    """The outputs of a batch's seeds."""
    if name in GLOBAL:
        return model(batch.x, batch.edge_index, batch.batch)[: batch.batch_size]
    return model(batch.x, batch.edge_index)[: batch.batch_size]


def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer, name: str, device: str) -> float:
    model.train()
    total = 0.0
    for batch in loader:
        batch = batch.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(outputs(model, batch, name), batch.y[: batch.batch_size])
        loss.backward()
        optimizer.step()
        total += float(loss)
    return total / len(loader)


@torch.no_grad()
def accuracy(model: torch.nn.Module, loader, name: str, device: str) -> float:
    model.eval()
    right = count = 0
    for batch in loader:
        batch = batch.to(device)
        right += int((outputs(model, batch, name).argmax(dim=1) == batch.y[: batch.batch_size]).sum())
        count += batch.batch_size
    return right / count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=50)
    options.add_argument(
        "--local-epochs", type=int, default=50, help="epochs of Polynormer before it attends to all nodes"
    )
    options.add_argument("--model", choices=["sage", "gat", *GLOBAL], default="sgformer")
    options.add_argument("--layers", type=int, default=3)
    options.add_argument("--heads", type=int, default=1)
    options.add_argument("--hidden", type=int, default=256)
    options.add_argument("--fan-out", type=int, default=10)
    options.add_argument("--batch-size", type=int, default=1024)
    options.add_argument("--lr", type=float, default=0.003)
    options.add_argument("--weight-decay", type=float, default=0.0)
    options.add_argument("--dropout", type=float, default=0.5)
    options.add_argument("--seed", type=int, default=123)
    given = options.parse_args()
    seed_everything(given.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    data = gnarl.open(given.dataset)
    features, classes = data.num_features(), data.num_classes()
    train_loader, valid_loader, test_loader = (
        NeighborLoader(
            data,
            [given.fan_out] * given.layers,
            mask,
            batch_size=given.batch_size,
            shuffle=True,
            disjoint=given.model in GLOBAL,
        )
        for mask in (data.train_mask, data.val_mask, data.test_mask)
    )

    model = make(given, features, classes).to(device)
    model.reset_parameters()
    optimizer = torch.optim.Adam(model.parameters(), lr=given.lr, weight_decay=given.weight_decay)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=5)
    local = given.local_epochs if given.model == "polynormer" else 0
    best = 0.0
    for epoch in range(1, given.epochs + local + 1):
        if given.model == "polynormer" and epoch == local:
            model._global = True
        loss = train(model, train_loader, optimizer, given.model, device)
        valid = accuracy(model, valid_loader, given.model, device)
        scheduler.step(valid)
        best = max(best, valid)
        print(f"epoch {epoch}: loss {loss:.4f}, valid {valid:.4f}")
    print(f"best valid accuracy {best:.4f}")
    print(f"test accuracy {accuracy(model, test_loader, given.model, device):.4f}")


if __name__ == "__main__":
    main()
