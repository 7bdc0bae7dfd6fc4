#!/usr/bin/env python3
"""The benchmark page: gnarl beside its peers, with floors, and a history by date.

    cargo build --profile dist
    benches/page.py target/dist/gnarl WORK_FOLDER [--only SECTION...]

Runs the scripts of benches/peers one after the other, adds what they print to benches/history.jsonl, and writes
benches/page.md from that file: the last table of each section, and gnarl's share of its best peer by date. With
`--only` the other sections keep their last tables. Graphs are generated in the work folder where it lacks them. Runs
with a Python that has the peers; a section whose peers or data are missing, or whose script fails, is left out with a
word. Wants a machine to itself, for more than an hour. For the peers' best, preload tcmalloc.
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
HISTORY, PAGE = HERE / "history.jsonl", HERE / "page.md"

# Graphs, and how gnarl generates them.
GRAPHS = {
    "community-170k": "community --nodes 170000 --average-degree 13 --features 128 --classes 40 --communities 40",
    "rmat-1m": "rmat --symmetrize --coalesce --features 128 --classes 47 --split 0.1 0.1 0.8",
    "typed-5m": "typed --nodes 500000 --edges 5000000 --relations 40",
}
FLAT = ("community-170k", "rmat-1m")


@dataclass
class Section:
    """Measurements of one script, which are compared by one column of its table."""

    title: str
    # Names of graphs stand for their folders.
    words: tuple
    column: str
    peers: tuple
    needs: tuple = ()
    more_is_better: bool = False


SECTIONS = {
    "sampled": Section("Epochs of sampled batches", ("epoch.py", *FLAT), "seconds an epoch", ("dgl",)),
    "full": Section(
        "Epochs over the whole graph",
        ("full.py", "gcn", *FLAT, "gcn+dropout", *FLAT, "gat", "community-170k"),
        "seconds",
        ("dgl", "torch_geometric"),
    ),
    "typed": Section("Epochs of R-GCN on a typed graph", ("heterogeneous.py", "typed-5m"), "seconds an epoch", ("dgl",)),
    "kge": Section("Epochs of knowledge-graph embedding", ("kge.py",), "seconds an epoch", ("pykeen",), ("GNARL_DATA",)),
    "inference": Section("Outputs of all nodes", ("infer.py", *FLAT), "seconds", ("dgl",)),
    "sampling": Section("Sampling by one thread", ("sampling.py", *FLAT), "million edges a second", ("dgl",), (), True),
}


def graph(gnarl, work, name):
    """The folder of a graph, which is generated unless it is there."""
    folder = work / name
    if not folder.exists():
        words = [gnarl, "generate", *GRAPHS[name].split(), "--out", folder]
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return folder


def lacking(section):
    """Modules and variables that a section needs and that are missing."""
    modules = [name for name in section.peers if importlib.util.find_spec(name) is None]
    return modules + [name for name in section.needs if name not in os.environ]


def measure(section, gnarl, work):
    """The table of a section, in Markdown."""
    script, *words = section.words
    words = [graph(gnarl, work, word) if word in GRAPHS else word for word in words]
    words = [sys.executable, HERE / "peers" / script, gnarl, *words]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


def machine():
    """The processor, the processors that this process may use, and the memory."""
    told = Path("/proc/cpuinfo").read_text().splitlines()
    facts = {name.strip(): value.split() for name, _, value in (line.partition(":") for line in told)}
    known = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    features = ", ".join(mark for mark in known if mark in facts.get("flags", ()))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    name = " ".join(facts.get("model name", (platform.machine(),)))
    return f"{name} ({features}), {len(os.sched_getaffinity(0))} processors, {memory / 1e9:.0f} GB"


def commit():
    """The commit, with a mark if anything but the history and the page differs from it."""
    git = ["git", "-C", str(HERE)]
    others = [f":(exclude,top)benches/{file.name}" for file in (HISTORY, PAGE)]
    words = [*git, "status", "--porcelain", "--", ":/", *others]
    changed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    words = [*git, "rev-parse", "--short", "HEAD"]
    name = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    return f"{name}, changed" if changed else name


def record(name, text, of_commit):
    """A line of the history."""
    return {
        "date": datetime.date.today().isoformat(),
        "commit": of_commit,
        "machine": machine(),
        "section": name,
        "table": text,
    }


def rows(table):
    """The rows of a table in Markdown, by column; of columns of one name the first counts."""
    lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    header, *body = [[cell.strip() for cell in cells] for cells in lines] or [[]]
    for cells in body[1:]:
        yield dict(reversed(list(zip(header, cells))))


def shares(section, table):
    """gnarl's share of its best peer, by what is in front of the system in a row."""
    found = {}
    for row in rows(table):
        columns = list(reversed(row))
        case = ", ".join(row[name] for name in columns[: columns.index("system")])
        if section.column in row:
            found.setdefault(case, {})[row["system"]] = float(row[section.column])
    for case, systems in found.items():
        rivals = [systems[name] for name in systems if is_rival(name)]
        if rivals and "gnarl" in systems:
            yield case, systems["gnarl"] / (max(rivals) if section.more_is_better else min(rivals))


def is_rival(system):
    """Returns whether gnarl in f32 is compared with a system of this name."""
    return not system.startswith(("gnarl", "floor")) and "bf16" not in system


def page(history):
    """The page in Markdown."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `benches/page.py`, which says how to run it again; the scripts in `benches/peers` say what they",
        "measure. Systems take turns on one machine; figures are medians. `floor` is the time of the operations of",
        "gnarl's kernels at the rate of products of f32 that its profile measures on the machine.",
        "",
    ]
    for name, section in SECTIONS.items():
        records = [entry for entry in history if entry["section"] == name]
        if not records:
            continue
        last = records[-1]
        lines += [f"## {section.title}", "", f"{last['date']}, {last['commit']}: {last['machine']}.", ""]
        lines += [last["table"].strip(), ""]
        lines += by_date(section, records)
    return "\n".join(lines)


def by_date(section, records):
    """gnarl's share of its best peer, one row a measurement."""
    found = [dict(shares(section, entry["table"])) for entry in records]
    cases = list(dict.fromkeys(case for each in found for case in each))
    meaning = "more" if section.more_is_better else "less"
    yield from (f"gnarl over its best peer in f32, {meaning} is better:", "")
    yield "| date | commit | machine | " + " | ".join(case or "all" for case in cases) + " |"
    yield "|---|---|---|" + "---:|" * len(cases)
    for entry, each in zip(records, found):
        figures = [f"{each[case]:.2f}" if case in each else "" for case in cases]
        yield "| " + " | ".join([entry["date"], entry["commit"], entry["machine"], *figures]) + " |"
    yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gnarl", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    asked = parser.parse_args()
    gnarl, work = asked.gnarl.resolve(), asked.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    # That of the checkout when the figures are begun, from which gnarl is taken to be built.
    of_commit = commit()
    for name in asked.only:
        section = SECTIONS[name]
        if missing := lacking(section):
            print(f"{name}: left out for want of {', '.join(missing)}", file=sys.stderr)
            continue
        print(f"{name} ...", file=sys.stderr)
        try:
            table = measure(section, gnarl, work)
        except subprocess.CalledProcessError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        line = json.dumps(record(name, table, of_commit))
        with HISTORY.open("a") as file:
            file.write(line + "\n")
        history = [json.loads(line) for line in HISTORY.read_text().splitlines()]
        PAGE.write_text(page(history))


main()
