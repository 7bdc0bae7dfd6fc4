"""Trials: a run that a fault strikes, and what came of it."""

import hashlib
import json
import shutil
import subprocess
import time

import processes
import strategies
from faults import unmount
from link import Link

DEADLINE = 4
NUMBERS = ["losses", "test", "valid", "best_epoch", "epochs"]


class Wrong(Exception):
    """What may not happen."""


def settle(session):
    """Waits until no process of a session is left."""
    end = time.monotonic() + 30
    while left := processes.of_session(session):
        if time.monotonic() > end:
            raise Wrong(f"processes left: {[(pid, processes.name(pid)) for pid in left]}")
        time.sleep(0.05)


class Case:
    """A strategy with its inputs, and the numbers of a run that nothing happened to."""

    def __init__(self, program, strategy, graph, folder):
        self.program = program
        self.strategy = strategy
        self.inputs = folder / "inputs" / strategy.name
        strategies.inputs(program, strategy, graph, self.inputs)
        self.epochs = 8
        first = self.undisturbed(folder)
        # Long enough that a fault strikes while it trains.
        self.epochs = max(8, min(200, int(8 * 6 / first)))
        self.seconds = self.undisturbed(folder)

    def undisturbed(self, folder):
        """Trains alone, keeps the numbers, and returns the seconds it took."""
        trial = Trial(self, folder / "alone", None)
        try:
            start = time.monotonic()
            trial.start([])
            code = trial.wait(600)
            if code != 0:
                raise SystemExit(f"{self.strategy.name} fails undisturbed:\n{trial.text()}")
            self.expected = trial.numbers()
            return time.monotonic() - start
        finally:
            trial.close()


class Trial:
    """One run with inputs, a folder and a server of its own."""

    def __init__(self, case, folder, random, deadline=DEADLINE):
        self.case = case
        self.strategy = case.strategy
        self.random = random
        self.folder = folder
        self.disk = folder / "disk"
        self.run = self.disk / "run"
        self.server = None
        self.servers = 0
        self.starts = 0
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(case.inputs, folder)
        self.disk.mkdir()
        (folder / "run.toml").write_text(strategies.run_file(self.strategy, case.epochs, deadline))
        self.link = None
        if self.strategy.served:
            self.link = Link()
            self.serve()

    def serve(self):
        """Starts a server of part 1, in place of the one there was."""
        self.stop_server()
        self.servers += 1
        log = self.folder / f"server-{self.servers}.txt"
        words = [self.case.program, "serve", self.folder / "served", "--part", "1", "--listen", "127.0.0.1:0"]
        with open(log, "wb") as err:
            self.server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=err, start_new_session=True)
        end = time.monotonic() + 60
        while " at http" not in (said := log.read_text()):
            if self.server.poll() is not None:
                # A damaged part: told at its start.
                return
            if time.monotonic() > end:
                raise Wrong(f"a server does not start: {said}")
            time.sleep(0.02)
        place = said.split(" at http://")[1].split()[0]
        host, port = place.rsplit(":", 1)
        self.link.server = (host, int(port))

    def stop_server(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server = None

    def server_text(self):
        """What all servers said."""
        logs = [self.folder / f"server-{number + 1}.txt" for number in range(self.servers)]
        return "".join(log.read_text(errors="replace") for log in logs)

    def start(self, how):
        """Starts the run."""
        self.starts += 1
        words = strategies.command(
            self.case.program, self.strategy, self.folder, self.folder / "run.toml", self.run, self.link
        )
        with open(self.log("out"), "wb") as out, open(self.log("err"), "wb") as err:
            self.child = subprocess.Popen([*words, *how], stdout=out, stderr=err, start_new_session=True)

    def log(self, kind):
        return self.folder / f"{kind}-{self.starts}.txt"

    def text(self):
        return self.log("err").read_text(errors="replace")

    def wait(self, seconds):
        """The exit code, once the run and all its processes are gone."""
        try:
            code = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            states = [(pid, processes.name(pid)) for pid in processes.of_session(self.child.pid)]
            raise Wrong(f"no end within {seconds:.0f} s: {states}") from None
        settle(self.child.pid)
        return code

    def numbers(self):
        """The numbers of a run that ended, with a checksum of its weights."""
        lines = self.log("out").read_text().splitlines()
        summary = json.loads(lines[-1])
        model = self.run / "model.safetensors"
        weights = hashlib.sha256(model.read_bytes()).hexdigest() if model.exists() else None
        return [summary[key] for key in NUMBERS] + [weights]

    def right(self):
        """Raises unless the numbers are those of the run that nothing happened to."""
        found = self.numbers()
        if found != self.case.expected:
            differs = [key for key, a, b in zip([*NUMBERS, "weights"], found, self.case.expected, strict=True) if a != b]
            raise Wrong(f"other {', '.join(differs)}")

    def limit(self):
        return 20 * self.case.seconds + 120

    def goes_on(self):
        """Goes on, or begins again, and must end right."""
        how = ["--resume"] if (self.run / "checkpoint.safetensors").exists() else ["--restart"]
        if self.strategy.served and (self.server is None or self.server.poll() is not None):
            self.serve()
        self.start(how)
        if (code := self.wait(self.limit())) != 0:
            raise Wrong(f"{how[0]} ends with code {code}")
        self.right()
        left = [path.name for path in self.run.iterdir() if ".tmp-" in path.name or path.name.endswith(".lock")]
        if left:
            raise Wrong(f"left: {left}")

    def goes_on_or_names(self, file):
        """Goes on from a damaged file: it ends right, or the error names the file."""
        self.start(["--resume"])
        if self.wait(self.limit()) == 0:
            self.right()
        elif file.name not in self.text() or "panicked" in self.text():
            raise Wrong(f"an error that does not name {file.name}")

    def close(self):
        """Ends whatever is left of it."""
        if self.strategy.served:
            self.stop_server()
        if self.starts:
            for pid in processes.of_session(self.child.pid):
                try:
                    processes.end(pid)
                except ProcessLookupError:
                    pass
        unmount(self.disk)


def attempt(case, kind, folder, random):
    """One trial: `right`, `named` or `missed`, what happened, and the seconds; raises what may not happen."""
    trial = Trial(case, folder, random)
    fault = kind(trial)
    start = time.monotonic()
    try:
        fault.prepare()
        if trial.strategy.served and trial.server.poll() is not None:
            trial.serve()
        trial.start(["--restart"])
        time.sleep(random.uniform(0, case.seconds))
        # The run may be over by then.
        is_struck = trial.child.poll() is None
        if is_struck:
            fault.strike()
        code = trial.wait(trial.limit())
        text = trial.text()
        if "panicked" in text + trial.server_text():
            raise Wrong("a panic")
        if code == 0:
            trial.right()
            came = "right"
        elif fault.names(text):
            came = "named"
        else:
            raise Wrong(f"code {code}, and the error does not name the fault")
        fault.mend()
        if came == "named":
            trial.goes_on()
        elif not is_struck:
            came = "missed"
        return came, fault.detail, time.monotonic() - start
    except Wrong as wrong:
        raise Wrong(f"{wrong} ({fault.detail})") from None
    finally:
        trial.close()
