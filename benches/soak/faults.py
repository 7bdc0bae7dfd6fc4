"""What happens to a run under way, and how it may end then.

Each fault strikes once, at a random moment, and is mended before the run goes on. `names` says whether the messages of a run
that ended name the fault."""

import os
import pathlib
import signal
import subprocess
import time

import processes


class Fault:
    """A fault of a trial, whose random numbers are `trial.random`."""

    name = ""

    def __init__(self, trial):
        self.trial = trial
        self.random = trial.random
        self.detail = ""

    @staticmethod
    def fits(strategy):
        """Whether it can happen to the strategy."""
        return True

    def prepare(self):
        """Before the run starts."""

    def strike(self):
        """At its moment."""

    def mend(self):
        """After the run ended."""

    def names(self, text):
        """Whether an error's text says what happened."""
        raise NotImplementedError

    def victim(self):
        """A process of the run, or its server; None if all are gone."""
        pids = processes.trainers(self.trial.child)
        if self.trial.server:
            pids.append(self.trial.server.pid)
        return self.random.choice(pids) if pids else None

    def send(self, pid, number):
        """Sends a signal, unless the process is gone."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Kill(Fault):
    name = "kill"
    SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

    def strike(self):
        number = self.random.choice(self.SIGNALS)
        pid = self.victim()
        if pid is None:
            return
        of_server = self.trial.server is not None and pid == self.trial.server.pid
        self.detail = f"{number.name} to {'the server' if of_server else pid}"
        self.send(pid, number)
        if of_server:
            time.sleep(self.random.uniform(0, 6))
            self.trial.serve()

    def names(self, text):
        # The command ends by the signal, or a launcher and the other ranks tell of it.
        return "server" not in self.detail or self.trial.link.address in text


class Stop(Fault):
    name = "stop"

    def strike(self):
        pid = self.victim()
        if pid is None:
            return
        seconds = self.random.uniform(0.1, 8)
        self.detail = f"{pid} for {seconds:.1f} s"
        self.send(pid, signal.SIGSTOP)
        time.sleep(seconds)
        self.send(pid, signal.SIGCONT)

    def names(self, text):
        place = self.trial.link.address if self.trial.strategy.served else "rank "
        return place in text


class Cut(Fault):
    name = "cut"

    @staticmethod
    def fits(strategy):
        return strategy.served

    def strike(self):
        link = self.trial.link
        if self.random.random() < 0.5:
            self.detail = "connections closed"
            link.close_connections()
            return
        seconds = self.random.uniform(0.1, 8)
        self.detail = f"held for {seconds:.1f} s"
        link.hold()
        time.sleep(seconds)
        link.release()

    def names(self, text):
        return self.trial.link.address in text


class Fill(Fault):
    """No space left where the run writes."""

    name = "fill"

    def prepare(self):
        words = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.trial.disk]
        subprocess.run(words, check=True)

    def strike(self):
        filler = self.trial.disk / "filler"
        seconds = self.random.uniform(0.5, 3)
        self.detail = f"for {seconds:.1f} s"
        with open(filler, "wb", buffering=0) as file:
            end = time.monotonic() + seconds
            # Whatever becomes free is taken again.
            while time.monotonic() < end:
                try:
                    file.write(bytes(1 << 16))
                except OSError:
                    time.sleep(0.001)
        filler.unlink()

    def names(self, text):
        return "No space left" in text


class Damage(Fault):
    """A file that the run reads is damaged."""

    def choose(self):
        roots = [self.trial.folder / name for name in ("parts", "served")]
        roots = [root for root in roots if root.exists()] or [self.trial.folder / "graph"]
        files = sorted(path for root in roots for path in root.rglob("*") if path.is_file())
        self.file = self.random.choice([path for path in files if path.stat().st_size])
        self.whole = self.file.read_bytes()

    def mend(self):
        self.file.write_bytes(self.whole)

    def names(self, text):
        told = text + self.trial.server_text()
        # A manifest is told of by its folder.
        return self.file.name in told or str(self.file.parent) in told


class Shrink(Damage):
    name = "shrink"

    def prepare(self):
        self.choose()

    def strike(self):
        size = self.random.randrange(len(self.whole))
        self.detail = f"{self.file.relative_to(self.trial.folder)} from {len(self.whole)} to {size}"
        os.truncate(self.file, size)


class Flip(Damage):
    name = "flip"

    def prepare(self):
        self.choose()
        self.early = self.random.random() < 0.5
        if self.early:
            self.flip()

    def strike(self):
        if not self.early:
            self.flip()

    def flip(self):
        place = self.random.randrange(len(self.whole))
        bit = self.random.randrange(8)
        when = "before" if self.early else "in"
        self.detail = f"bit {bit} of byte {place} of {self.file.relative_to(self.trial.folder)} {when} the run"
        with open(self.file, "r+b") as file:
            file.seek(place)
            file.write(bytes([self.whole[place] ^ 1 << bit]))


class Worn(Fault):
    """A bit of the checkpoint flips after the run was killed."""

    name = "checkpoint"

    def strike(self):
        for pid in processes.trainers(self.trial.child):
            self.send(pid, signal.SIGKILL)

    def mend(self):
        path = self.trial.run / "checkpoint.safetensors"
        if not path.exists():
            return
        whole = path.read_bytes()
        place = self.random.randrange(len(whole))
        flipped = bytearray(whole)
        flipped[place] ^= 1 << self.random.randrange(8)
        self.detail = f"byte {place} of {len(whole)}"
        path.write_bytes(flipped)
        self.trial.goes_on_or_names(path)
        if path.exists():
            path.write_bytes(whole)

    def names(self, text):
        return True


FAULTS = [Kill, Stop, Cut, Fill, Shrink, Flip, Worn]


def unmount(folder: pathlib.Path):
    """Takes a mount away, if there is one."""
    if os.path.ismount(folder):
        subprocess.run(["umount", folder], check=True)
