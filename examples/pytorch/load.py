"""Loads a run of gnarl into plain PyTorch: python load.py RUN_DIR [--out predictions.parquet|.csv] [--pyg]

Of gcn, sage (mean) and gat it computes the logits of all nodes, and checks them by the test score of summary.json; of
link prediction without an encoder the scores of triples, and checks them by the MRR. --pyg computes sage by
PyG's SAGEConv too. Needs torch, numpy and safetensors; pyarrow for --out, torch_geometric for --pyg.
Names, shapes and equations of all tensors: docs/tensors.md
"""
import argparse
import json
import tomllib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file


class Dataset:
    """A dataset directory: columns by name, docs/formats.md."""
    def __init__(self, path, edge_type=0):
        self.path = Path(path)
        manifest = json.loads((self.path / "dataset.json").read_text())
        self.nodes, self.edges = manifest["node_types"][0], manifest["edge_types"][edge_type]
        self.count = self.nodes["count"]

    def column(self, name, of_edges=False):
        found = [c for c in (self.edges if of_edges else self.nodes)["columns"] if c["name"] == name]
        if not found:
            return None
        array = np.load(self.path / found[0]["file"], mmap_mode="r")
        if found[0]["dtype"] == "bf16":
            return (np.asarray(array).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return np.array(array)

    def features(self, normalize):
        x = self.column("features")
        if x is None:
            indptr, indices, values = (self.column(f"features.{part}") for part in ("indptr", "indices", "values"))
            rows = np.repeat(np.arange(self.count), np.diff(indptr.astype(np.int64)))
            x = np.zeros((self.count, self.nodes["csr_width"]), np.float32)
            np.add.at(x, (rows, indices.astype(np.int64)), values.astype(np.float32))
        x = torch.from_numpy(x.astype(np.float32))
        return x / x.abs().sum(1, keepdim=True).clamp(min=1e-30) if normalize == "row" else x

    def in_edges(self):
        indptr = self.column("csc.indptr", True).astype(np.int64)
        src = torch.from_numpy(self.column("csc.indices", True).astype(np.int64))
        dst = torch.from_numpy(np.repeat(np.arange(self.count), np.diff(indptr)))
        weight = self.column("csc.weight", True)
        weight = np.ones(len(src)) if weight is None else weight
        return src, dst, torch.from_numpy(weight.astype(np.float32))

    def strings(self, name):
        offsets, text = self.column(f"{name}.offsets"), self.column(f"{name}.bytes")
        if offsets is None:
            return None
        return [text[a:b].tobytes().decode() for a, b in zip(offsets[:-1], offsets[1:])]

    def user_ids(self):
        ids = self.column("user_id")
        return ids.tolist() if ids is not None else self.strings("user_id") or list(range(self.count))


def add_up(values, dst, count):
    return torch.zeros(count, *values.shape[1:]).index_add_(0, dst, values)


def gcn(p, x, edges, config):
    src, dst, weight = edges
    root = (torch.bincount(dst, minlength=len(x)) + 1).float().sqrt()
    factor = (weight / (root[src] * root[dst]))[:, None]
    for i in range(config["layers"]):
        x = x @ p[f"layer{i}.weight"]
        x = add_up(x[src] * factor, dst, len(x)) + x / root[:, None] ** 2 + p[f"layer{i}.bias"]
        x = F.relu(x) if i + 1 < config["layers"] else x
    return x


def sage(p, x, edges, config):
    src, dst, weight = edges
    total = add_up(weight, dst, len(x)).clamp(min=1e-30)[:, None]
    assert config["aggregator"] == "mean", "docs/tensors.md has the equations of max-pool and lstm"
    for i in range(config["layers"]):
        mean = add_up(x[src] * weight[:, None], dst, len(x)) / total
        x = x @ p[f"layer{i}.self.weight"] + mean @ p[f"layer{i}.neigh.weight"] + p[f"layer{i}.bias"]
        x = F.relu(x) if i + 1 < config["layers"] else x
    return x


def gat(p, x, edges, config):
    src, dst, _ = edges
    if config["self_loops"]:
        src, dst = (torch.cat([ends, torch.arange(len(x))]) for ends in (src, dst))
    for i in range(config["layers"]):
        last = i + 1 == config["layers"]
        z = (x @ p[f"layer{i}.weight"]).view(len(x), *p[f"layer{i}.attn_src"].shape)
        scores = (z * p[f"layer{i}.attn_src"]).sum(2)[src] + (z * p[f"layer{i}.attn_dst"]).sum(2)[dst]
        scores = F.leaky_relu(scores, config["negative_slope"])
        scores = (scores - scores.amax(0)).exp()
        scores = scores / add_up(scores, dst, len(x))[dst].clamp(min=1e-30)
        x = add_up(z[src] * scores[:, :, None], dst, len(x))
        x = x.mean(1) + p[f"layer{i}.bias"] if last else F.elu(x.flatten(1) + p[f"layer{i}.bias"])
    return x


def sage_of_pyg(p, x, edges, config):
    from torch_geometric.nn import SAGEConv
    assert (edges[2] == 1).all(), "SAGEConv knows no edge weights"
    for i in range(config["layers"]):
        layer = SAGEConv(*p[f"layer{i}.neigh.weight"].shape)
        layer.lin_l.weight.data = p[f"layer{i}.neigh.weight"].T.contiguous()
        layer.lin_l.bias.data = p[f"layer{i}.bias"][0]
        layer.lin_r.weight.data = p[f"layer{i}.self.weight"].T.contiguous()
        x = layer(x, torch.stack(edges[:2]))
        x = F.relu(x) if i + 1 < config["layers"] else x
    return x


def scores_of_tails(decoder, p, e, h, r, degree=1):
    """Scores of all entities as tails of (h, r); complex numbers are [re, im]."""
    relation = next((p[name][r] for name in ("relation", "relation.angle") if name in p), None)
    if decoder in ("complex", "rotate"):
        half = e.shape[1] // 2
        e = torch.complex(e[:, :half], e[:, half:])
        if decoder == "complex":
            return (e[h] * torch.complex(relation[:half], relation[half:]) @ e.conj().T).real
        return -(e[h] * torch.polar(torch.ones(half), relation) - e).abs().sum(1)
    return {
        "dot": lambda: e @ e[h],
        "cosine": lambda: F.cosine_similarity(e, e[h][None]),
        "distmult": lambda: e @ (e[h] * relation),
        "transe": lambda: -(e[h] + relation - e).norm(p=degree, dim=1),
    }[decoder]()


def check(name, own, expected, tolerance=1e-3):
    assert abs(own - expected) <= tolerance, f"{name} is {own}, summary.json has {expected}"
    print(f"{name}: {own:.6f} here, {expected:.6f} in summary.json")


def links(config, p, data, summary):
    """The filtered MRR of tails and heads, from the scores of all (h, r, t)."""
    e, decoder = p[data.nodes["name"]], config["decoder"].get("name", "distmult")
    split, heads, rel, tails = (data.column(c, True).astype(int) for c in ("split", "src", "relation", "dst"))
    known, test = {}, list(zip(heads[split == 2], rel[split == 2], tails[split == 2]))
    for h, r, t in zip(heads, rel, tails):
        known.setdefault((h, r, None), []).append(t)
        known.setdefault((None, r, t), []).append(h)
    score = lambda r: [scores_of_tails(decoder, p, e, h, r, config["decoder"]["degree"]) for h in range(len(e))]
    all_scores = {r: torch.stack(score(r)) for r in set(rel)}
    total = 0.0
    for h, r, t in test:
        for right, scores, asked in ((t, all_scores[r][h], (h, r, None)), (h, all_scores[r][:, t], (None, r, t))):
            others = scores.clone()
            others[known[asked]] = -torch.inf
            rank = 1 + (others > scores[right]).sum() + 0.5 * (others == scores[right]).sum()
            total += 1 / rank.item()
    check("test mrr", total / (2 * len(test)), summary["test"]["mrr"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--out", type=Path, help="predictions of all nodes by their own ids, .parquet or .csv")
    parser.add_argument("--pyg", action="store_true", help="compute sage by PyG as well")
    args = parser.parse_args()
    config = tomllib.loads((args.run_dir / "config.toml").read_text())
    summary = json.loads((args.run_dir / "summary.json").read_text())
    p = load_file(args.run_dir / "model.safetensors")
    data = Dataset(config["dataset"]["path"])
    if config["task"]["kind"] == "link-prediction":
        assert config["model"]["name"] == "none", "encoders of link prediction are not in this example"
        return links(config, p, data, summary)
    model, x, edges = config["model"], data.features(config["dataset"]["normalize"]), data.in_edges()
    assert not model["decoupled"], "docs/tensors.md has the equations"
    logits = {"gcn": gcn, "sage": sage, "gat": gat}[model["name"]](p, x, edges, model)
    if args.pyg:
        print("difference from PyG:", (logits - sage_of_pyg(p, x, edges, model)).abs().max().item())
    labels, test = data.column("label"), data.column("split.test")
    if "split" in config["dataset"]:
        print("the run drew its own split (dataset.split): no test nodes to check by")
    elif summary["metric"] == "accuracy":
        check("test accuracy", (logits.argmax(1).numpy()[test] == labels[test]).mean(), summary["test"]["accuracy"])
    if args.out:
        import pyarrow.csv
        import pyarrow.parquet
        names, classes = data.strings("class_name"), logits.argmax(1).tolist()
        table = {"id": data.user_ids(), "class": [names[c] for c in classes] if names else classes}
        table["probability"] = logits.softmax(1).amax(1).tolist()
        if args.out.suffix == ".parquet":
            pyarrow.parquet.write_table(pyarrow.table(table), args.out)
        else:
            pyarrow.csv.write_csv(pyarrow.table(table), args.out)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
