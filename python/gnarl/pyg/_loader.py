"""The form of all loaders."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gnarl import _gnarl
from gnarl._dataset import LEFT, Dataset
from gnarl.pyg._batches import to_data


class Loader(ABC):
    """An iterable of batches. Each pass over it is one epoch, with an order and neighbors of its own."""

    data: Dataset
    batch_size: int
    _given: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        loader = super().__new__(cls)
        loader._given = (args, kwargs)
        return loader

    def __reduce__(self) -> Any:
        # Made anew where it is unpickled: threads and mapped files stay.
        return _again, (type(self), *self._given, self.epoch)

    def __init__(
        self,
        data: Dataset | str | os.PathLike[str],
        transform: Callable[[Any], Any] | None,
        pin_memory: bool,
        batch_size: int,
    ) -> None:
        self.data = data if isinstance(data, Dataset) else Dataset(data)
        args, kwargs = self._given
        # A copy elsewhere opens the same folder, and takes the seed of a generator, which is not copied.
        kwargs = {name: value for name, value in kwargs.items() if name != "generator"}
        if "data" in kwargs:
            kwargs["data"] = self.data
        self._given = ((self.data, *args[1:]) if args else args, kwargs)
        self.transform = transform
        self.batch_size = batch_size
        self.epoch = 0
        self._process = os.getpid()
        self._pin = pin_memory and torch.cuda.is_available()
        self._loader: _gnarl.Loader
        self._examples = 0

    def __len__(self) -> int:
        """Number of batches of an epoch."""
        return len(self._loader)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next epoch, which counts from 0: one that was left is repeated by it."""
        self.epoch = epoch

    @property
    def sampler(self) -> Loader:
        """This loader: Lightning calls ``loader.sampler.set_epoch`` before each epoch."""
        return self

    @property
    def batch_sampler(self) -> None:
        """None; there whenever ``sampler`` is in a ``DataLoader``."""
        return

    def __iter__(self) -> Iterator[Any]:
        """The batches of the next epoch, which begins with the first of them."""
        # Not with the iterator: Lightning makes the first one of a resumed training before it sets the epoch.
        epoch = self.epoch
        self.epoch += 1
        for batch in self._here().epoch(epoch):
            yield self._finished(batch)

    def __call__(self, index: Any) -> Any:
        """The batch around some of the inputs, by their places among these."""
        places = [int(place) for place in index]
        if any(not 0 <= place < self._examples for place in places):
            raise IndexError(f"places are from 0 and below {self._examples}")
        return self._finished(self._here().at(places, self.epoch))

    def _keep_seed(self, seed: int) -> int:
        """Notes the seed that was chosen: a copy of the loader elsewhere has the same."""
        args, kwargs = self._given
        self._given = (args, {**kwargs, "seed": seed})
        return seed

    def _here(self) -> _gnarl.Loader:
        """The loader of this process: where parts are at servers one that was forked off connects anew."""
        if self._process != os.getpid() and self.data.is_remote:
            LEFT.append(self._loader)
            epoch = self.epoch
            self.__init__(*self._given[0], **self._given[1])  # type: ignore[misc]
            self.epoch = epoch
        return self._loader

    def _finished(self, batch: Any) -> Any:
        data = to_data(self.data, batch)
        self._add_inputs(data, batch)
        if self._pin:
            data = data.pin_memory()
        return data if self.transform is None else self.transform(data)

    @abstractmethod
    def _add_inputs(self, data: Any, batch: Any) -> None:
        """Adds what tells the inputs of a batch."""


def _again(kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any], epoch: int) -> Any:
    loader = kind(*args, **kwargs)
    loader.set_epoch(epoch)
    return loader
