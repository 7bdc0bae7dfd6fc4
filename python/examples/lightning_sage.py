"""GraphSAGE of PyTorch Geometric, trained by Lightning on batches that gnarl reads from disk.

    python python/examples/lightning_sage.py data/mine --epochs 5
    python python/examples/lightning_sage.py data/mine --epochs 5 --processes 2
    python python/examples/lightning_sage.py data/mine --epochs 8 --resume checkpoints/last.ckpt

Weights of several processes, and of a training that was resumed, are those of one without a stop but for rounding.
"""

import argparse
import os

import lightning
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from torch_geometric.nn import GraphSAGE
from torchmetrics.classification import MulticlassAccuracy

import gnarl
from gnarl.pyg import NeighborLoader


class Batches(lightning.LightningDataModule):
    """Batches of a dataset, shared among the processes of the trainer."""

    def __init__(self, dataset: str, batch_size: int, seed: int) -> None:
        super().__init__()
        self.graph = gnarl.open(dataset)
        self.batch_size = batch_size
        self.seed = seed

    def train_dataloader(self) -> NeighborLoader:
        return self._loader([10, 10], "train", shuffle=True)

    def val_dataloader(self) -> NeighborLoader:
        return self._loader([-1, -1], "valid", shuffle=False)

    def _loader(self, num_neighbors: list[int], split: str, shuffle: bool) -> NeighborLoader:
        world_size = self.trainer.world_size
        return NeighborLoader(
            self.graph,
            num_neighbors,
            split,
            batch_size=self.batch_size // world_size,
            shuffle=shuffle,
            seed=self.seed,
            rank=self.trainer.global_rank,
            world_size=world_size,
            threads=max(1, (os.cpu_count() or 1) // world_size),
        )


class Sage(lightning.LightningModule):
    """GraphSAGE that classifies nodes."""

    def __init__(self, features: int, hidden: int, classes: int, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.model = GraphSAGE(features, hidden, num_layers=2, out_channels=classes)
        self.accuracy = MulticlassAccuracy(classes, average="micro")
        self.lr = lr

    def forward(self, batch):
        return self.model(batch.x, batch.edge_index)[: batch.batch_size]

    def training_step(self, batch, _):
        loss = F.cross_entropy(self(batch), batch.y[: batch.batch_size])
        self.log("loss", loss, on_step=False, on_epoch=True, batch_size=batch.batch_size, sync_dist=True)
        return loss

    def validation_step(self, batch, _):
        self.accuracy(self(batch), batch.y[: batch.batch_size])
        self.log("valid/accuracy", self.accuracy, batch_size=batch.batch_size)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--hidden", type=int, default=64)
    options.add_argument("--batch-size", type=int, default=256, help="seeds of a step, of all processes together")
    options.add_argument("--lr", type=float, default=0.01)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", default="checkpoints", help="the folder for the checkpoint last.ckpt")
    options.add_argument("--resume", help="a checkpoint to go on from")
    given = options.parse_args()
    lightning.seed_everything(given.seed)
    batches = Batches(given.dataset, given.batch_size, given.seed)
    model = Sage(batches.graph.num_features(), given.hidden, batches.graph.num_classes(), given.lr)
    trainer = lightning.Trainer(
        max_epochs=given.epochs,
        accelerator="cpu",
        devices=given.processes,
        strategy="ddp" if given.processes > 1 else "auto",
        callbacks=[ModelCheckpoint(given.out, save_last=True)],
        logger=False,
        enable_progress_bar=False,
    )
    trainer.fit(model, batches, ckpt_path=given.resume)
    if trainer.is_global_zero:
        print(f"valid accuracy {trainer.callback_metrics['valid/accuracy']:.4f}")


if __name__ == "__main__":
    main()
