"""Link prediction on a whole graph by a GCN and dot products, as PyG's ``link_pred.py``.

    python python/examples/pyg/link_pred.py data/cora --epochs 100

Nodes have features, and each edge its reverse.
"""

import argparse

import torch
import torch_geometric.transforms as T
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.nn import GCNConv
from torch_geometric.utils import negative_sampling

import gnarl


class Net(torch.nn.Module):
    def __init__(self, features: int, hidden: int, out: int) -> None:
        super().__init__()
        self.first = GCNConv(features, hidden)
        self.second = GCNConv(hidden, out)

    def forward(self, data, edges: Tensor) -> Tensor:
        """The scores of edges, by the embeddings of their endpoints."""
        z = self.second(self.first(data.x, data.edge_index).relu(), data.edge_index)
        return (z[edges[0]] * z[edges[1]]).sum(dim=1)


def roc_auc(scores: Tensor, labels: Tensor) -> float:
    """The probability that an edge has a higher score than a negative, equal ones counted half."""
    positive, negative = scores[labels > 0], scores[labels == 0].sort().values
    below = torch.searchsorted(negative, positive)
    upto = torch.searchsorted(negative, positive, right=True)
    return float((below + upto).double().mean()) / (2 * len(negative))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    seed_everything(given.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    data = gnarl.open(given.dataset).to_pyg()
    split = T.RandomLinkSplit(num_val=0.05, num_test=0.1, is_undirected=True, add_negative_train_samples=False)
    train, valid, test = T.Compose([T.NormalizeFeatures(), T.ToDevice(device), split])(data)

    model = Net(data.num_features, 128, 64).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    best = final = 0.0
    for epoch in range(1, given.epochs + 1):
        model.train()
        optimizer.zero_grad()
        negatives = negative_sampling(
            train.edge_index, train.num_nodes, train.edge_label_index.size(1), method="sparse"
        )
        labels = torch.cat([train.edge_label, train.edge_label.new_zeros(negatives.size(1))])
        scores = model(train, torch.cat([train.edge_label_index, negatives], dim=1))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            aucs = [roc_auc(model(part, part.edge_label_index), part.edge_label) for part in (valid, test)]
        if aucs[0] > best:
            best, final = aucs
        print(f"epoch {epoch}: loss {loss:.4f}, valid {aucs[0]:.4f}, test {aucs[1]:.4f}")
    print(f"test ROC-AUC {final:.4f}")


if __name__ == "__main__":
    main()
