"""Starts the ranks of a batch from one import: `python -m graphproof.starter GRAPHPROOF_START RANKS
[SWITCHES...] BATCH_FILE`.

An import server imports what the subject of the batch needs and forks the ranks, so that the
packages are read once and not by every rank. It lives as long as the batch, whose environment is
that of its imports. Where it does not become ready (an import fails, hangs or starts a thread or
CUDA), GRAPHPROOF_START starts the ranks in the place of this process, each with imports of its own;
standard error has the reason, and what the imports printed. Otherwise that is in the log of each
rank, as if it had imported by itself.

Environment of the ranks, sentences, signals and exit codes are those of graphproof-start
(launcher/backend/rank_starter.cpp). Only this process and the server run before the ranks do: no
thread, no CUDA.
"""

import json
import os
import select
import signal
import sys
import time

from graphproof import rank_log, server
from graphproof.message import Error

IMPORT_DEADLINE_S = 120.0  # imports take 15 s, and some times that from a cold file system
GRACE_S, LAST_S = 1.0, 5.0  # as graphproof-start has them
READY = b"ready\n"
SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)
EXIT_USAGE = 2
USAGE = "usage: python -m graphproof.starter GRAPHPROOF_START RANKS [SWITCHES...] BATCH_FILE"

# What the ranks of a subject import, besides the packages that all of them need.
MODULES = {
    "transformer_engine": ["transformer_engine.pytorch"],
    "megatron_core": ["megatron.core.models.gpt.gpt_model", "megatron.core.optimizer",
                      "megatron.core.transformer.cuda_graphs", "megatron.core.full_cuda_graph"],
}


def modules_of(batch_file: str) -> list:
    """What the first case of a batch needs. A file that cannot be read is left to the ranks."""
    try:
        with open(batch_file, encoding="utf-8") as file:
            subject = json.load(file)["cases"][0]["axes"].get("subject", "script")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []
    return ["graphproof.case_run", *MODULES.get(subject, ())]


class Ranks:
    """The processes of the ranks. `code`: of the first that failed, as graphproof-start has it."""

    def __init__(self):
        self.running, self.code = {}, 0  # process id -> rank

    def collect(self, report: bool = True) -> bool:
        """Whether none is left, after those that have ended were noted."""
        while self.running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return False
            rank = self.running.pop(pid, None)
            code = os.waitstatus_to_exitcode(status)
            if rank is None or not report or self.code != 0 or code == 0:
                continue
            self.code = code if code > 0 else 128 - code
            how = f"exit code {code}" if code > 0 else f"signal {-code} ({signal.strsignal(-code)})"
            print(f"graphproof-start: rank {rank} with PID {pid} ended "
                  f"{'with' if code > 0 else 'by'} {how}", file=sys.stderr, flush=True)
        return True

    def send(self, number: int) -> None:
        for pid in self.running:
            os.kill(pid, number)

    def gone_within(self, limit_s: float) -> bool:
        end = time.monotonic() + limit_s
        while not self.collect(report=False):
            left_s = end - time.monotonic()
            if left_s <= 0 or signal.sigtimedwait(SIGNALS, left_s) is None:
                return self.collect(report=False)
        return True


def run_ranks(count: int, arguments: list) -> int:
    """Forks the ranks, waits for them, and ends all of them once one fails. SIGTERM and SIGINT end
    them and then this process. REQUIRES: SIGNALS are blocked."""
    ranks, asked = Ranks(), None
    try:
        for rank in range(count):
            place = {"GRAPHPROOF_WORLD_SIZE": str(count), "GRAPHPROOF_RANK": str(rank),
                     "GRAPHPROOF_LOCAL_RANK": str(rank)}
            ranks.running[server.fork_rank(arguments, place)] = rank
        while not ranks.collect() and ranks.code == 0 and asked is None:
            number = signal.sigwaitinfo(SIGNALS).si_signo
            asked = number if number != signal.SIGCHLD else None
    finally:
        ranks.send(signal.SIGTERM)
        if not ranks.gone_within(GRACE_S):
            ranks.send(signal.SIGKILL)
            ranks.gone_within(LAST_S)
    if asked is not None:
        end_by(asked)
    return ranks.code


def end_by(number: int) -> None:
    """Ends this process by a signal that it was asked to end by."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])


def content(file: int) -> bytes:
    """Everything in an open file."""
    return os.pread(file, os.fstat(file).st_size, 0)


def import_into(printed: int, modules: list) -> None:
    """Imports `modules`, with standard output and error in the file `printed`. Where that fails,
    they stay there."""
    before = os.dup(1), os.dup(2)
    for stream in (1, 2):
        os.dup2(printed, stream)
    server.import_all(modules)
    server.require_forkable()
    sys.stdout.flush()
    sys.stderr.flush()
    for stream, kept in zip((1, 2), before):
        os.dup2(kept, stream)
        os.close(kept)
    rank_log.printed_by_imports = content(printed)


def fork_server(count: int, arguments: list, modules: list, printed: int) -> tuple:
    """(process id, descriptor) of an import server. It writes READY to the descriptor once it has
    imported everything, with what that printed in the file `printed`, and shown that it may fork;
    then it runs the ranks."""
    reading, writing = os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid != 0:
        os.close(writing)
        return pid, reading
    code = server.CANNOT_START
    try:
        server.end_with(parent)
        os.close(reading)
        import_into(printed, modules)
        os.write(writing, READY)
        os.close(writing)
        code = run_ranks(count, arguments)
    except (Exception, SystemExit) as error:
        print(f"the import server: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def becomes_ready(reading: int, deadline_s: float) -> bool:
    """Waits for READY. False at the deadline, at a signal that asks to end, or if the server has
    ended."""
    end = time.monotonic() + deadline_s
    while (left_s := end - time.monotonic()) > 0:
        if select.select([reading], [], [], min(left_s, server.POLL_S))[0]:
            return os.read(reading, len(READY)) == READY
        if signal.sigpending() & {signal.SIGTERM, signal.SIGINT}:
            return False
    return False


def follow(pid: int) -> int:
    """Waits for the server, which runs the ranks by now, and passes on a signal that asks to end.
    Returns its exit code."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code >= 0:
                return code
            print(f"graphproof.starter: the import server with PID {pid} ended by signal {-code}, "
                  "and all ranks with it", file=sys.stderr, flush=True)
            return 128 - code
        number = signal.sigwaitinfo(SIGNALS).si_signo
        if number != signal.SIGCHLD:
            os.kill(pid, number)
            os.waitpid(pid, 0)
            end_by(number)


def start(graphproof_start: str, count: int, arguments: list,
          deadline_s: float = IMPORT_DEADLINE_S) -> int:
    """Runs the ranks and returns the exit code of the batch. Does not return where the server does
    not become ready, or this process was asked to end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    began = time.monotonic()
    printed = os.memfd_create("printed by imports")
    pid, reading = fork_server(count, arguments, modules_of(arguments[-1]), printed)
    if becomes_ready(reading, deadline_s):
        return follow(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    sys.stderr.flush()
    os.write(2, content(printed))
    for number in signal.sigpending() & {signal.SIGTERM, signal.SIGINT}:
        end_by(number)
    why = Error("the import server of a batch", f"none after {time.monotonic() - began:.1f} s",
                f"one that is ready to fork within {deadline_s:.0f} s",
                "each rank imports its packages by itself now, which takes longer",
                "read the lines before this one: a failed import says why")
    print(f"graphproof.starter: {why}", file=sys.stderr, flush=True)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.execv(graphproof_start, [graphproof_start, str(count), sys.executable, "-m",
                                "graphproof.rank", *arguments])


def main(arguments: list) -> int:
    if len(arguments) < 3 or not arguments[1].isdigit() or int(arguments[1]) < 1:
        print(USAGE, file=sys.stderr)
        return EXIT_USAGE
    return start(arguments[0], int(arguments[1]), arguments[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
