"""The rank program of Python subjects: `python -m graphproof.rank --batch FILE`.

Command line, environment, evidence, heartbeats and exit codes are those of the C++ rank program
(suites/rank), so that launcher and judge need not know which of them ran a case.

Exit codes: 0 done; 2 an error in the batch file or command line; 6 this program failed outside any
case; 10 a case did not run to its end, and its evidence has the reason; 11 a teardown step did not
return; 12 the rank was asked to end early.
"""

import ctypes
import os
import signal
import sys
import time
import traceback
from dataclasses import replace
from functools import partial

from graphproof import phase
from graphproof.batch import Batch, BatchCase, Place, read_batch, this_place
from graphproof.device import cudnn
from graphproof.message import Error, UsageError

EXIT_DONE, EXIT_USAGE, EXIT_OWN_FAULT, EXIT_CASE_FAILED = 0, 2, 6, 10
USAGE = "usage: python -m graphproof.rank --batch FILE"
GO_VARIABLE, DEVICE_SUFFIX = "GRAPHPROOF_GO", ".device"
STOP_VARIABLE = "GRAPHPROOF_STOP"
GO_DEADLINE_S, GO_POLL_S = 2 * 3600.0, 0.001
# Variables of libraries, unless the user has set them.
SETTINGS = {
    # PyTorch before 2.11 refuses deterministic products without it.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    # Megatron-Core refuses attention of Transformer Engine in its deterministic mode without it.
    "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0",
    # Without it Transformer Engine refuses to load scales of FP8, which lie in a checkpoint as a
    # pickle. A job that resumes loads a checkpoint of its own case.
    "NVTE_ALLOW_UNSAFE_PICKLE_EXTRA_STATE": "1",
    # The default is a new folder in /tmp, which is taken for a leftover of the case.
    "TORCHINDUCTOR_CACHE_DIR": os.path.expanduser("~/.cache/graphproof/torchinductor"),
    # More threads are processes of PyTorch's compiler, which outlive the case.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
MALLOC_THRESHOLD, M_MMAP_THRESHOLD = 128 * 1024, -3


def set_defaults() -> None:
    """Sets variables of libraries that the user has not set. Called ahead of their imports, some of
    which read them."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    cudnn.choose_that_of_torch(os.environ)


def wait_for_go(file: str, deadline_s: float = GO_DEADLINE_S) -> None:
    """Waits until `file` exists: a warm start begins when the launcher writes it."""
    end = time.monotonic() + deadline_s
    while not os.path.exists(file):
        if time.monotonic() >= end:
            raise Error("the launcher did not let the cases begin", f"no file {file}",
                        f"it within {deadline_s * 1000:.0f} ms",
                        "ranks that wait forever occupy a GPU", "check whether the launcher runs")
        time.sleep(GO_POLL_S)


def keep_large_blocks_out_of_the_heap() -> None:
    """glibc raises this threshold when large blocks are freed. Resident memory would then change by
    megabytes with the blocks in between, and look like growth."""
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MALLOC_THRESHOLD)


class BatchRun:
    """A batch on this rank. Used from one thread. `new_processes`: those of cases that need one, by
    id. A process of theirs writes no heartbeats."""

    def __init__(self, batch: Batch, place: Place, new_processes: dict, heartbeats: bool = True):
        from graphproof.heartbeat import HeartbeatWriter
        from graphproof.rank_log import RankLog
        from graphproof.world import World
        self.batch, self.place, self.new_processes = batch, place, new_processes
        self.log = RankLog(batch.log_folder, place.rank)
        self.heartbeat = HeartbeatWriter(batch.heartbeat_fifo, place.rank) if heartbeats else None
        self.world = World(batch, place)
        self.device = None

    def start(self, subject: str) -> None:
        """Makes the device and lets the ranks agree; only the first call has an effect."""
        if self.device is not None:
            return
        from graphproof.subjects import available
        self.world.agree_on_configuration(self.batch.digest)
        self.world.agree_on_versions(available(subject)["version"])
        if self.batch.device == "cuda":
            from graphproof.device.cuda import CudaDevice
            self.device = CudaDevice(self.place.gpu)
        else:
            from graphproof.device.cpu import CpuDevice
            self.device = CpuDevice()

    def run(self) -> int:
        go = os.environ.get(GO_VARIABLE, "")
        if go:
            import torch  # noqa: F401  loaded ahead of the turn; makes no context
            wait_for_go(go + DEVICE_SUFFIX)
            if self.batch.cases:
                self.start(self.batch.cases[0].axes.get("subject", "script"))
            self.heartbeat.ready()
            wait_for_go(go)
        for number, listed in enumerate(self.batch.cases):
            if number > 0 and self._asked_to_stop():
                break
            if not self._run_case(listed, last=number + 1 == len(self.batch.cases)):
                self._end_after_failure()
        for unused in self.new_processes.values():
            unused.end()
        self.world.leave_group()
        self.heartbeat.bye()
        return EXIT_DONE

    def _asked_to_stop(self) -> bool:
        """Whether the launcher wants no other case to begin: the same answer on all ranks, which
        wait for each other here."""
        file = os.environ.get(STOP_VARIABLE, "")
        if not file:
            return False
        seen = self.world.exchange("next case", str(int(os.path.exists(file))),
                                   self.world.patience_s)
        return seen[0] != "0"

    def _run_case(self, listed: BatchCase, last: bool) -> bool:
        """Whether the case ran to its end."""
        from graphproof.case_run import run_case
        from graphproof.evidence import REVISION, SCHEMA, EvidenceWriter, file_name
        from graphproof.heartbeat import monotonic_ms
        from graphproof.scope import CaseFailure, CaseScope, PeerFailure, RefusedByCode
        from graphproof.subjects import refusals
        self.heartbeat.case_begin(listed.id, listed.attempt, self.log.bytes())
        self.log.repeat_imports()
        evidence = EvidenceWriter(os.path.join(listed.evidence_folder, file_name(self.place.rank)))
        evidence.write("start", schema=SCHEMA, revision=REVISION, case=listed.id,
                       attempt=listed.attempt, rank=self.place.rank,
                       world_size=self.place.world_size, device=self.batch.device,
                       pid=os.getpid(), fault=str(listed.axes.get("fault", "none")),
                       t_ms=monotonic_ms(), shared_gpus=self.place.shared_gpus or None)
        scope = CaseScope(evidence, self.heartbeat, self.place.rank, refusals())
        scope.spent(phase.VALIDATE, 0.0)
        complete = False
        try:
            run_case(self, scope, listed, last)
            complete = True
        except RefusedByCode as refusal:
            complete = True
            print(f"case {listed.id}, rank {self.place.rank}: refused by {refusal}",
                  file=sys.stderr)
        except PeerFailure as failure:
            print(f"case {listed.id}, rank {self.place.rank}: {failure}", file=sys.stderr)
        except CaseFailure as failure:
            print(f"case {listed.id}, rank {self.place.rank}, phase {scope.phase}, arm "
                  f"{scope.arm}, step {scope.step}: {failure}", file=sys.stderr)
        last_phase = scope.phase
        scope.write_phases()
        evidence.end(complete, last_phase, monotonic_ms())
        self.heartbeat.case_end(self.log.bytes())
        return complete

    def _end_after_failure(self) -> None:
        """Ends this process after a failed case, because device errors may be sticky: at once, so
        that no destructor calls a device, and after the peers have written their evidence."""
        try:
            self.world.vote("end", EXIT_CASE_FAILED)
        except Exception as error:
            print(f"rank {self.place.rank}: peers did not follow to the end: {error}",
                  file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_CASE_FAILED)


def resume_in_new_process(batch: Batch, place: Place, listed: BatchCase, scope) -> None:
    """The work of the new process of a case. Its process group is not that of its rank."""
    from graphproof.case_run import folder_of, resume
    folder = folder_of(batch, listed)
    own = replace(batch, store=os.path.join(folder, "store"))
    resume(BatchRun(own, place, {}, heartbeats=False), listed, folder, scope)


def new_processes(batch: Batch, place: Place) -> dict:
    """Case id -> the process in which a job of it resumes, of the cases that need one. Forked now,
    because this process may not do so once it has threads or CUDA."""
    from graphproof.new_process import NewProcess
    made = {}
    for listed in batch.cases:
        if listed.axes.get("resume_in") == "new_process":
            made[listed.id] = NewProcess(partial(resume_in_new_process, batch, place, listed),
                                         list(made.values()))
    return made


def run_batch_file(file: str) -> int:
    """Runs a batch file on this rank and returns the exit code."""
    place = this_place()
    batch = read_batch(file)
    if batch.world_size != place.world_size:
        raise UsageError(f"world size of batch {batch.batch}", str(batch.world_size),
                         f"{place.world_size}, the number of ranks that were started",
                         "the evidence would be recorded under the name of another case",
                         "let ./graphproof write the batch file, or correct it")
    if place.shared_gpus:
        # NCCL takes ranks that share a GPU for duplicates unless they look like other hosts.
        os.environ["NCCL_HOSTID"] = \
            f"graphproof-sharer-{place.local_rank // place.shared_gpus}"
    return BatchRun(batch, place, new_processes(batch, place)).run()


def main(arguments: list) -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    set_defaults()
    keep_large_blocks_out_of_the_heap()
    try:
        if len(arguments) == 2 and arguments[0] == "--batch":
            return run_batch_file(arguments[1])
        if len(arguments) == 1 and not arguments[0].startswith("-"):
            return run_batch_file(arguments[0])
        if arguments[:1] == ["--divergence"]:
            raise UsageError("the search for the first divergent operator",
                             "--divergence for a case of a Python subject", "--batch",
                             "these subjects keep no results of their operators",
                             "read the first tensor that differs in the line `compare`")
        print(USAGE, file=sys.stderr)
        return EXIT_USAGE
    except UsageError as error:
        print(f"graphproof.rank: {error}", file=sys.stderr)
        return EXIT_USAGE
    except Exception as error:
        traceback.print_exception(error)
        print(f"graphproof.rank: {error}", file=sys.stderr)
        sys.stdout.flush()
        # Not by return: handlers of CUDA and c10d may wait for peers.
        os._exit(EXIT_OWN_FAULT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
