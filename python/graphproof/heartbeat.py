"""Heartbeats: lines into the FIFO of the launcher, by which it knows how far a rank is.

Lines are shorter than PIPE_BUF, so that those of several ranks never mix. A phase may be lost if
the FIFO is full; the beginning and the end of a case are tried again for a while.
"""

import errno
import json
import os
import select
import stat
import time

SCHEMA = "graphproof-heartbeat/1"
RELIABLE_RETRY_S = 2.0  # far above the time of an attempt, far below the limit of any phase
PAUSE_S = 0.001


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class HeartbeatWriter:
    """Used from one thread. An empty FIFO name writes nothing."""

    def __init__(self, fifo: str, rank: int):
        self._fifo, self._rank, self._descriptor = fifo, rank, -1
        self._case = {}
        self._said_bye = False
        self._write("hello", must_arrive=True)

    def ready(self) -> None:
        """The rank was started ahead of its turn and waits for it."""
        self._write("ready", must_arrive=True)

    def case_begin(self, case_id: str, attempt: int, log_bytes: int) -> None:
        self._case = {"case": case_id, "attempt": attempt}
        self._write("case_begin", must_arrive=True, **self._case, log_bytes=log_bytes)

    def phase(self, phase: str, arm: str, step: int) -> None:
        if self._case:
            self._write("phase", must_arrive=False, **self._case, phase=phase, arm=arm, step=step,
                        collective=None)

    def case_end(self, log_bytes: int) -> None:
        self._write("case_end", must_arrive=True, **self._case, log_bytes=log_bytes)
        self._case = {}

    def bye(self) -> None:
        if not self._said_bye:
            self._said_bye = True
            self._write("bye", must_arrive=True)

    def _write(self, event: str, must_arrive: bool, **fields) -> None:
        if not self._fifo:
            return
        line = json.dumps({"schema": SCHEMA, "event": event, "rank": self._rank,
                           "pid": os.getpid(), "t_ms": monotonic_ms(), **fields},
                          separators=(",", ":")).encode() + b"\n"
        if len(line) >= select.PIPE_BUF:
            raise ValueError(f"a heartbeat of rank {self._rank} has {len(line)} bytes; "
                             f"want less than PIPE_BUF, {select.PIPE_BUF}")
        deadline = time.monotonic() + RELIABLE_RETRY_S
        while not self._try(line, must_arrive):
            if not must_arrive or time.monotonic() >= deadline:
                return
            time.sleep(PAUSE_S)

    def _try(self, line: bytes, may_open: bool) -> bool:
        try:
            if self._descriptor < 0:
                if not may_open:
                    return False
                self._descriptor = os.open(self._fifo,
                                           os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                if not stat.S_ISFIFO(os.fstat(self._descriptor).st_mode):
                    self._close()
                    self._fifo = ""  # the launcher makes the FIFO before it starts ranks
                    return True
            return os.write(self._descriptor, line) == len(line)
        except OSError as error:
            if error.errno == errno.ENOENT:
                self._fifo = ""
                return True
            if error.errno != errno.EAGAIN:
                self._close()  # the reader has gone; another one may open the FIFO
            return False

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
