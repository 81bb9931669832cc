"""Test support: a batch of cases on the stand-in, judged by the real graphproof-judge."""

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PHASES = ("validate", "init", "build", "eager", "warmup", "capture", "replay", "compare",
          "teardown_graph", "teardown_comm", "teardown_process")
LIMITS = {phase: 60_000 for phase in PHASES}
RUN_ID = "20261121-101500-0000"


def built(program: str) -> str:
    return os.path.join(os.environ.get("GRAPHPROOF_BIN", os.path.join(ROOT, "build", "bin")),
                        program)


def default_axes() -> dict:
    with open(os.path.join(ROOT, "matrix", "tables", "axes.json"), encoding="utf-8") as file:
        text = re.sub(r"^\s*//.*$", "", file.read(), flags=re.M)
    return {axis["name"]: axis["default"] for axis in json.loads(text)["axes"]}


def axes_of(name: str) -> dict:
    """The values of all axes of a case name such as "impl=manual,microbatches=2"."""
    axes = {**default_axes(), "subject": "torch"}
    for pair in re.split(r",(?![^()]*\))", name) if name else []:
        axis, _, text = pair.partition("=")
        old = axes.get(axis)
        axes[axis] = text == "true" if isinstance(old, bool) or text in ("true", "false") else \
            int(text) if isinstance(old, int) else \
            text.split("+") if isinstance(old, list) else text
    return axes


class Server:
    """The import server, started once for all tests of a process: imports take seconds."""

    _shared = None

    @classmethod
    def shared(cls) -> "Server":
        if cls._shared is None:
            cls._shared = cls()
        return cls._shared

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "graphproof.server", "graphproof.case_run",
             "graphproof.subjects.torch_subject"],
            env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"),
                 "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._codes = {}  # process id -> exit code, of ranks that nobody has asked for yet
        atexit.register(self.stop)

    def _answer(self) -> dict:
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer

    def start(self, request: dict) -> int:
        """Has a rank forked and returns its process id."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        while "code" in (answer := self._answer()):
            self._codes[answer["pid"]] = answer["code"]
        return answer["pid"]

    def code(self, pid: int) -> int:
        """The exit code of a rank, for which it waits."""
        while pid not in self._codes:
            self.note_end()
        return self._codes.pop(pid)

    def note_end(self) -> None:
        """Waits for the end of any rank."""
        answer = self._answer()
        self._codes[answer["pid"]] = answer["code"]

    def running(self, pids: list) -> list:
        """Those of the ranks whose end was not noted."""
        return [pid for pid in pids if pid not in self._codes]

    def stop(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class JudgedBatch:
    """A run folder with one batch, whose cases the Python rank program runs."""

    def __init__(self, names: list, device: str = "sim", world_size: int = 1):
        self.folder = tempfile.mkdtemp(prefix="graphproof-python-")
        self.world_size, self.device = world_size, device
        self.names = names
        self.ids = [f"{number:016x}" for number in range(1, len(names) + 1)]
        batch_folder = os.path.join(self.folder, "batches", "b001")
        os.makedirs(batch_folder)
        self.batch = {
            "schema": "graphproof-batch/1", "run_id": RUN_ID, "batch": "b001", "device": device,
            "world_size": world_size, "seed": 1, "isolation": "batch", "heartbeat_fifo": "",
            "store": os.path.join(batch_folder, "store"), "log_folder": batch_folder,
            "mark": "test", "limits_ms": LIMITS,
            "cases": [{"id": case_id, "name": name, "attempt": 1, "axes": axes_of(name),
                       "evidence_folder": self.attempt(case_id)}
                      for case_id, name in zip(self.ids, names)]}
        self.file = os.path.join(batch_folder, "batch.json")
        self.write_batch()

    def write_batch(self) -> None:
        with open(self.file, "w", encoding="utf-8") as file:
            json.dump(self.batch, file)

    def attempt(self, case_id: str) -> str:
        return os.path.join(self.folder, "cases", case_id, "attempt-1")

    def remove(self) -> None:
        shutil.rmtree(self.folder)

    def run(self, environment: dict | None = None, files: dict | None = None) -> list:
        """Runs the ranks and returns their exit codes. `files`: another batch file of a rank."""
        server = Server.shared()
        return [server.code(pid) for pid in self.start(environment, files)]

    def start(self, environment: dict | None = None, files: dict | None = None) -> list:
        """Starts the ranks and returns their process ids."""
        ranks = [{"arguments": ["--batch", (files or {}).get(rank, self.file)],
                  "environment": {"GRAPHPROOF_WORLD_SIZE": str(self.world_size),
                                  "GRAPHPROOF_RANK": str(rank),
                                  "GRAPHPROOF_LOCAL_RANK": str(rank), **(environment or {})}}
                 for rank in range(self.world_size)]
        return [Server.shared().start(one) for one in ranks]

    def log(self, rank: int = 0) -> str:
        with open(os.path.join(self.folder, "batches", "b001", f"rank-{rank}.log"),
                  encoding="utf-8", errors="replace") as file:
            return file.read()

    def lines(self, case_id: str, kind: str, rank: int = 0) -> list:
        """The evidence lines of a kind."""
        file = os.path.join(self.attempt(case_id), f"rank-{rank}.evidence.jsonl")
        if not os.path.exists(file):
            return []
        with open(file, encoding="utf-8") as stream:
            lines = [json.loads(line) for line in stream]
        return [line for line in lines if line["kind"] == kind]

    def judge(self, case_id: str) -> dict:
        """check -> (word, message) of a case, by graphproof-judge."""
        axes = dict(self.batch["cases"][self.ids.index(case_id)]["axes"])
        for unknown in set(axes) - set(default_axes()):
            if not unknown.startswith("env."):
                del axes[unknown]
        ranks = []
        for rank in range(self.world_size):
            log = f"batches/b001/rank-{rank}.log"
            ranks.append({"rank": rank, "pid": 1, "case_ended": True,
                          "phase": "teardown_process", "arm": "", "step": 0, "collective": None,
                          "silent_ms": 0, "exit": {"kind": "exited", "value": 0},
                          "log": {"file": log, "begin": 0, "end": os.path.getsize(
                              os.path.join(self.folder, log))}})
        context = {"schema": "graphproof-context/1", "run_id": RUN_ID, "case": case_id,
                   "attempt": 1, "batch": "b001", "device": self.device, "isolation": "batch",
                   "engine": "local", "start": "cold", "world_size": self.world_size,
                   "seconds": 1, "limits_ms": LIMITS, "expect": {"kind": "pass"}, "axes": axes,
                   "required_checks": [], "ended": "finished", "ranks": ranks, "hang": None,
                   "first_dead": None, "infra": None,
                   "cleanup": {"processes": [], "shm": [], "files": [], "ports": [],
                               "gpu_memory": None}}
        folder = self.attempt(case_id)
        with open(os.path.join(folder, "context.json"), "w", encoding="utf-8") as file:
            json.dump(context, file)
        done = subprocess.run([built("graphproof-judge"), folder], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout[-2000:] + done.stderr)
        with open(os.path.join(folder, "checks.json"), encoding="utf-8") as file:
            checks = json.load(file)["checks"]
        return {check["check"]: (check["result"], check) for check in checks}


def run_all(batches: list, environment: dict | None = None) -> list:
    """Runs batches, of which as many at a time as there are cores for their ranks, and returns the
    exit codes of each."""
    server, cores = Server.shared(), os.cpu_count() or 1
    started, running = [], []
    for batch in batches:
        while running and len(running) + batch.world_size > cores:
            server.note_end()
            running = server.running(running)
        started.append(batch.start(environment))
        running += started[-1]
    return [[server.code(pid) for pid in pids] for pids in started]
