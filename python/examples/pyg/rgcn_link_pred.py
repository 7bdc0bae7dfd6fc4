"""Relational GCN and DistMult on a whole knowledge graph, as PyG's ``rgcn_link_pred.py``.

    python python/examples/pyg/rgcn_link_pred.py data/fb15k-237 --epochs 10000

Edges have two features: the number of their relation, and that of their split, 0 to train, 1 to validate, 2 to test on.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter
from torch_geometric import seed_everything
from torch_geometric.nn import RGCNConv

import gnarl


class RGCN(torch.nn.Module):
    def __init__(self, nodes: int, hidden: int, relations: int) -> None:
        super().__init__()
        self.nodes = Parameter(torch.empty(nodes, hidden))
        # Messages flow in both directions, each with relations of its own.
        self.first = RGCNConv(hidden, hidden, 2 * relations, num_blocks=5)
        self.second = RGCNConv(hidden, hidden, 2 * relations, num_blocks=5)
        self.relations = Parameter(torch.empty(relations, hidden))
        torch.nn.init.xavier_uniform_(self.nodes)
        torch.nn.init.xavier_uniform_(self.relations)

    def forward(self, edge_index: Tensor, relation: Tensor) -> Tensor:
        """The embeddings of all nodes."""
        z = self.first(self.nodes, edge_index, relation).relu()
        z = F.dropout(z, p=0.2, training=self.training)
        return self.second(z, edge_index, relation)

    def score(self, z: Tensor, edges: Tensor, relation: Tensor) -> Tensor:
        return (z[edges[0]] * self.relations[relation] * z[edges[1]]).sum(dim=1)


def corrupted(edges: Tensor, nodes: int) -> Tensor:
    """Edges of which either the head or the tail is replaced."""
    heads = torch.rand(edges.size(1), device=edges.device) < 0.5
    others = torch.randint(nodes, (edges.size(1),), device=edges.device)
    return torch.stack([torch.where(heads, others, edges[0]), torch.where(heads, edges[1], others)])


@torch.no_grad()
def reciprocal_ranks(model: RGCN, z: Tensor, known: Tensor, asked: Tensor, side: int) -> Tensor:
    """Of triples ``asked``, with the endpoint ``side`` to be found among all nodes but the other answers in ``known``."""
    relations = len(model.relations)

    def keys(triples: Tensor) -> Tensor:
        return triples[1 - side] * relations + triples[2]

    order = keys(known).argsort()
    sorted_keys, answers = keys(known)[order], known[side][order]
    found = []
    for part in asked.split(256, dim=1):
        given, answer, relation = part[1 - side], part[side], part[2]
        scores = (z[given] * model.relations[relation]) @ z.T
        true = scores.gather(1, answer.unsqueeze(1))
        first = torch.searchsorted(sorted_keys, keys(part))
        counts = torch.searchsorted(sorted_keys, keys(part), right=True) - first
        rows = torch.arange(part.size(1), device=z.device).repeat_interleave(counts)
        starts = (first - counts.cumsum(0) + counts).repeat_interleave(counts)
        left_out = answers[starts + torch.arange(len(rows), device=z.device)]
        scores[rows, left_out] = -torch.inf
        better, equal = (scores > true).sum(1), (scores == true).sum(1)
        # The mean of the ranks if equal scores came after it, and before it.
        found.append(1 / (1 + better + 0.5 * equal))
    return torch.cat(found)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=10_000)
    options.add_argument("--every", type=int, default=500, help="epochs between evaluations")
    options.add_argument("--hidden", type=int, default=500)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    seed_everything(given.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    data = gnarl.open(given.dataset).to_pyg()
    known = torch.cat([data.edge_index, data.edge_attr[:, :1].long().T]).to(device)
    train, valid, test = (known[:, data.edge_attr[:, 1].to(device) == split] for split in range(3))
    relations = int(known[2].max()) + 1
    edges = torch.cat([train[:2], train[:2].flip(0)], dim=1)
    kinds = torch.cat([train[2], train[2] + relations])

    model = RGCN(data.num_nodes, given.hidden, relations).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, given.epochs + 1):
        model.train()
        optimizer.zero_grad()
        z = model(edges, kinds)
        positive = model.score(z, train[:2], train[2])
        negative = model.score(z, corrupted(train[:2], data.num_nodes), train[2])
        labels = torch.cat([torch.ones_like(positive), torch.zeros_like(negative)])
        loss = F.binary_cross_entropy_with_logits(torch.cat([positive, negative]), labels)
        loss = loss + 0.01 * (z.pow(2).mean() + model.relations.pow(2).mean())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
        if epoch % given.every == 0 or epoch == given.epochs:
            model.eval()
            with torch.no_grad():
                z = model(edges, kinds)
            mrrs = [
                float(torch.cat([reciprocal_ranks(model, z, known, part, side) for side in (0, 1)]).mean())
                for part in (valid, test)
            ]
            print(f"epoch {epoch}: valid MRR {mrrs[0]:.4f}, test MRR {mrrs[1]:.4f}", flush=True)
    print(f"test MRR {mrrs[1]:.4f}")


if __name__ == "__main__":
    main()
