"""Launching of ranks: processes of this machine, or of network namespaces that stand for hosts."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
NETWORK = "10.77.0.0/24"


def mpirun(ranks, *more):
    """The words that start so many ranks on this machine."""
    user = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    os.environ.update(user)
    return ["mpirun", "--oversubscribe", "-n", str(ranks), *more]


def hosts(count, work):
    """The words that start a rank on each of so many namespaces, see `hosts` beside this file."""
    agent = work / "agent"
    agent.write_text(f'#!/bin/sh\nexec {HERE}/hosts agent "$@"\n')
    agent.chmod(0o755)
    names = ",".join(f"10.77.0.{i + 1}:1" for i in range(count))
    within = [w for key in ("oob_tcp_if_include", "btl_tcp_if_include") for w in ("--mca", key, NETWORK)]
    tcp = ["--mca", "btl", "tcp,self", "--mca", "plm_rsh_agent", str(agent)]
    return mpirun(count, "--host", names, *within, *tcp)


def own_parts(parts, folder, host, hosts):
    """Makes `folder` a copy of the partitioned dataset `parts`, by links, with the parts of one of some hosts alone."""
    count = len([path for path in parts.glob("part-*") if path.is_dir()])
    own = {f"part-{part}" for part in range(count) if part * hosts // count == host}
    for path in parts.rglob("*"):
        name = path.relative_to(parts)
        if path.is_file() and (not name.parts[0].startswith("part-") or name.parts[0] in own):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if not (folder / name).exists():
                os.link(path, folder / name)
