"""Runs that last: memory and descriptors of their processes must not grow."""

import signal
import statistics
import time

import processes
from trials import Trial, Wrong

# What may be added to the median from the second third of a run to the last one: numbers of epochs are kept.
SLACK_MEMORY = 8 << 20
SLACK_DESCRIPTORS = 2
# What may be added to the largest value: a batch more at once, or a report.
SLACK_PEAK = 64 << 20


class Use:
    """Memory and descriptors over time, of a process."""

    def __init__(self):
        self.memory = []
        self.descriptors = []

    def add(self, use):
        self.memory.append(use[0])
        self.descriptors.append(use[1])

    def growth(self):
        """From the second third to the last, of the medians: memory and descriptors."""
        return [grown(values) for values in (self.memory, self.descriptors)]

    def row(self):
        largest = max(self.memory) / 2**20
        return f"{statistics.median(self.memory) / 2**20:.1f} | {largest:.1f} | {max(self.descriptors)}"


def grown(values, of=statistics.median):
    third = len(values) // 3
    return of(values[2 * third :]) - of(values[third : 2 * third])


def endure(case, folder, seconds, random):
    """Trains for so long, disturbed every few seconds; rows of a table, and what went wrong."""
    epochs = case.epochs
    case.epochs = 1_000_000
    try:
        # Whatever else the machine does, a second without a rank is no failure.
        trial = Trial(case, folder, random, deadline=60)
    finally:
        case.epochs = epochs
    uses = {}
    try:
        trial.start([])
        watch(trial, uses, seconds, random)
        if (code := trial.child.poll()) is not None:
            raise Wrong(f"it ends with code {code}: {trial.text()[-500:]}")
        for pid in processes.trainers(trial.child):
            processes.send(pid, signal.SIGTERM)
        trial.wait(120)
        if "panicked" in trial.text() + trial.server_text():
            raise Wrong("a panic")
        lines = (trial.run / "metrics.jsonl").read_text().count("\n")
        yield from rows(case.strategy.name, lines, uses)
    finally:
        trial.close()


def watch(trial, uses, seconds, random):
    """Notes what each process uses, and disturbs them in a way that a run survives."""
    end = time.monotonic() + seconds
    disturb = time.monotonic() + random.uniform(5, 15)
    while time.monotonic() < end and trial.child.poll() is None:
        time.sleep(1)
        pids = processes.trainers(trial.child)
        named = [(f"rank {number}", pid) for number, pid in enumerate(pids)]
        if trial.server:
            named.append(("server", trial.server.pid))
        for name, pid in named:
            if use := processes.use(pid):
                uses.setdefault(name, Use()).add(use)
        if pids and time.monotonic() > disturb:
            disturb = time.monotonic() + random.uniform(5, 15)
            if trial.link and random.random() < 0.7:
                trial.link.close_connections()
            else:
                pid = random.choice(pids)
                processes.send(pid, signal.SIGSTOP)
                time.sleep(random.uniform(0.1, 1))
                processes.send(pid, signal.SIGCONT)


def rows(name, epochs, uses):
    """A line of the table for each process; raises if one grew."""
    for process, use in uses.items():
        memory, descriptors = use.growth()
        peak = grown(use.memory, max)
        grew = memory > SLACK_MEMORY or peak > SLACK_PEAK or descriptors > SLACK_DESCRIPTORS
        growth = f"{memory / 2**20:+.1f} | {descriptors:+.0f}"
        yield f"| {name} | {process} | {len(use.memory)} | {epochs} | {use.row()} | {growth} |", grew
