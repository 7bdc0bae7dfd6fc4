"""Processes of a run: their pids, memory and descriptors."""

import os
import pathlib
import signal


def of_session(session):
    """Pids of a session that are no zombies, ascending."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name in brackets may have spaces.
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(folder.name))
    return sorted(found)


def name(pid):
    """The program's name, empty once it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def children(pid):
    """All descendants of a process, ascending."""
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *children(child)]
    except OSError:
        pass
    return sorted(set(found))


def trainers(child):
    """Pids of the processes that train, of a command that was started."""
    all_of_it = [child.pid, *children(child.pid)]
    return [pid for pid in all_of_it if name(pid).startswith("gnarl")]


def use(pid):
    """Bytes of memory that are no file's, and open descriptors; None once the process is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10, descriptors
    return None


def end(pid):
    """Kills a process."""
    os.kill(pid, signal.SIGKILL)


def send(pid, number):
    """Sends a signal, unless the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
