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
