"""A process of its own for a part of a case, which builds everything anew.

A process with threads or CUDA must not fork one that uses CUDA. So a rank forks the processes that
the cases of its batch need at its beginning, where it is what the import server is: it shows that
it has one thread and no CUDA. They wait until their cases ask for them. What such a process writes,
votes and enters is done by its rank, which waits for it: there is one evidence file, one place
among the ranks, and one heartbeat.
"""

import os
import signal
import sys
import time
import traceback
from multiprocessing import Pipe

from graphproof import server
from graphproof.message import Error

POLL_S = 0.05
END_S = 30.0  # a process that has done its part ends at once, unless a library keeps it


class RemoteScope:
    """The scope of a case (scope.py) in its new process: each call is made in the rank."""

    def __init__(self, connection):
        self._connection = connection
        self.phase, self.arm, self.step, self.capturing = "", "", 0, False

    def write(self, kind: str, **fields) -> None:
        self._connection.send(("write", kind, fields))

    def enter(self, phase: str, arm: str, step: int) -> None:
        self.phase, self.arm, self.step = phase, arm, step
        self._connection.send(("enter", phase, arm, step))

    def boundary(self, phase: str) -> None:
        self._connection.send(("boundary", phase))

    def vote(self, code: int) -> None:
        """Returns once all ranks have voted. If one has failed, the rank ends this process."""
        self._connection.send(("vote", code))
        self._connection.recv()


class NewProcess:
    """A process that waits for its rank to ask for its work, once. Used from one thread."""

    def __init__(self, work, others: list = ()):
        """`work(scope)` runs in the process. `others`: those that this process has forked before.
        Error if it must not fork."""
        server.require_forkable()
        sys.stdout.flush()
        sys.stderr.flush()
        self._connection, theirs = Pipe()
        parent, self.pid = os.getpid(), os.fork()
        if self.pid != 0:
            theirs.close()
            return
        code = server.CANNOT_START
        try:
            server.end_with(parent)
            for connection in [self._connection, *(other._connection for other in others)]:
                connection.close()
            code = _serve(theirs, work)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def run(self, scope, silence_s: float) -> None:
        """Asks for the work and does in `scope` what the process asks for, until it has ended.
        CaseFailure if the work failed, Error if it ended otherwise or is silent too long."""
        try:
            self._connection.send("begin")
            while (message := self._next(silence_s))[0] != "done":
                call, *arguments = message
                fields = arguments.pop() if call == "write" else {}
                getattr(scope, call)(*arguments, **fields)
                if call == "vote":
                    self._connection.send("voted")
        finally:
            self._connection.close()
        self.end()

    def _next(self, silence_s: float) -> tuple:
        """The next call of the process."""
        try:
            if self._connection.poll(silence_s):
                return self._connection.recv()
        except (EOFError, ConnectionError):
            self.end()  # raises, unless it has left on purpose
            raise self._error("an exit without an end of its work") from None
        raise self._error(f"no word for {silence_s * 1000:.0f} ms")

    def end(self) -> None:
        """Has the process end if its work was not asked for, and waits for its end. Error if it
        does not come, or is not one of its own accord."""
        self._connection.close()
        limit = time.monotonic() + END_S
        while (ended := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() >= limit:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise self._error(f"no exit within {END_S * 1000:.0f} ms")
            time.sleep(POLL_S)
        if code := os.waitstatus_to_exitcode(ended[1]):
            raise self._error(f"exit code {code}" if code > 0
                              else f"signal {-code} ({signal.strsignal(-code)})")

    def _error(self, got: str) -> Error:
        return Error(f"process {self.pid}, in which a part of the case runs", got, "its work done",
                     "the case cannot go on without its results", "read the log of the rank")


def _serve(connection, work) -> int:
    """Waits until it is asked, does the work, and returns the exit code."""
    from graphproof.scope import described
    try:
        connection.recv()
    except EOFError:
        return 0  # no case has asked for it
    try:
        work(RemoteScope(connection))
    except EOFError:
        return 0  # the rank has given the case up, and has its reason
    except (Exception, SystemExit) as error:
        traceback.print_exception(error)
        connection.send(("fail", *described(error)))
        return 0
    connection.send(("done",))
    return 0
