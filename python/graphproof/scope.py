"""One case on one rank: its phases, its votes, and how an exception becomes evidence.

The rules are those of suites/case/case_scope.cpp, so that the checks of votes and phases see the
same from both rank programs.
"""

import os
import site
import sysconfig
import time
import traceback

from graphproof.heartbeat import monotonic_ms
from graphproof.message import Error
from graphproof.phase import CAPTURE, PHASES

EXIT_PLANTED = 12  # a rank that the axis env.GRAPHPROOF_EXIT ends on purpose
# Packages, and this one: a user looks for a line of his own.
_INSTALLED = (os.path.dirname(os.path.abspath(__file__)), *site.getsitepackages(),
              sysconfig.get_paths()["stdlib"])
CODE_WITHOUT_NUMBER = 1
OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation, which PyTorch's exception does not name
EARLY_EXIT_VARIABLE = "GRAPHPROOF_EXIT"


class PeerFailure(Exception):
    """Another rank voted that a phase failed. This rank's evidence has the vote."""


class RefusedByCode(Exception):
    """The code of the subject refused the case in words that a rule names. The evidence has it."""


class CaseFailure(Exception):
    """This rank met an error. Its evidence has it, and its peers know."""


def error_type(error: BaseException) -> tuple:
    """The library and the number of an error, as the `error` line has them."""
    code = getattr(error, "error_code", None)
    text = str(error)
    if "NCCL" in text:
        return "nccl", int(code or 0)
    if type(error).__name__ == "OutOfMemoryError":
        return "cuda", OUT_OF_MEMORY
    if type(error).__name__ == "AcceleratorError" or "CUDA error" in text:
        return "cuda", int(code or 0)
    return "exception", 0


def _shown(frame) -> str:
    return f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}"


def place_of(error: BaseException) -> str:
    """The innermost line of code that raised the error."""
    frames = traceback.extract_tb(error.__traceback__)
    return _shown(frames[-1]) if frames else ""


def beginning_of(error: BaseException) -> str:
    """Where an error began that was raised while another was handled, as PyTorch does at the end of
    a capture that had failed inside: what was raised first, in which line, and which line of the
    innermost code that is installed nowhere called it. Empty for an error that began itself."""
    def earlier(one: BaseException) -> BaseException | None:
        return one.__cause__ or (None if one.__suppress_context__ else one.__context__)

    first = error
    while earlier(first) is not None:
        first = earlier(first)
    if first is error:
        return ""
    frames = traceback.extract_tb(first.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_INSTALLED)]
    caller = f", called by {_shown(own[-1])}" if own and own[-1] is not frames[-1] else ""
    text = str(first).partition("\n")[0]
    return f"it began with {type(first).__name__}: {text} at {place_of(first)}{caller}"


def described(error: BaseException) -> tuple:
    """What the `error` line says of an error: library, code, place and message."""
    kind, code = error_type(error)
    message = str(error)
    if not isinstance(error, Error):
        # The further lines of PyTorch's errors of CUDA advise on debugging in general.
        text = message.partition("\n")[0] if kind == "cuda" else message
        message = "; ".join(part for part in (f"{type(error).__name__}: {text}",
                                              beginning_of(error)) if part)
    return kind, code, place_of(error), message


class CaseScope:
    """Used from the thread that runs the case; `write` from any thread."""

    def __init__(self, evidence, heartbeat, rank: int, refusals: dict):
        """`refusals`: rule -> what the code says that refuses what the rule forbids."""
        self._evidence, self._heartbeat, self._refusals = evidence, heartbeat, refusals
        # Whether the step is being captured. Between two of its graphs the phase is that of
        # replays.
        self.capturing = False
        self._vote = None
        self._boundary, self.phase, self.arm, self.step = "validate", "validate", "", 0
        self._spent, self._since = {}, time.monotonic()
        self._failure_voted = False
        ends = os.environ.get(EARLY_EXIT_VARIABLE, "")
        phase, _, of_rank = ends.partition(",")
        self._ends_in = phase if of_rank == str(rank) else None

    def write(self, kind: str, **fields) -> None:
        self._evidence.write(kind, **fields)

    def votes_through(self, vote) -> None:
        """`vote(boundary, code)` returns the codes of all ranks. Before that nobody can vote."""
        self._vote = vote

    def spent(self, phase: str, ms: float) -> None:
        self._spent[(phase, "")] = self._spent.get((phase, ""), 0.0) + ms

    def _account(self) -> None:
        now = time.monotonic()
        key = (self.phase, self.arm)
        self._spent[key] = self._spent.get(key, 0.0) + (now - self._since) * 1000
        self._since = now

    def enter(self, phase: str, arm: str, step: int) -> None:
        self._account()
        self.phase, self.arm, self.step = phase, arm, step
        self._heartbeat.phase(phase, arm, step)
        if self._ends_in == phase:
            os._exit(EXIT_PLANTED)

    def boundary(self, phase: str) -> None:
        """The phase that the next vote ends, also after a failure."""
        self._boundary = phase

    def write_phases(self) -> None:
        self._account()
        for (phase, arm), ms in self._spent.items():
            self.write("phase", phase=phase, arm=arm, ms=ms)
        self._spent.clear()

    def vote(self, code: int) -> None:
        self._failure_voted = self._failure_voted or code != 0
        codes = self._vote(self._boundary, code)
        self.write("vote", phase=self._boundary, codes=codes)
        failed = ", ".join(f"rank {rank} with code {one}"
                           for rank, one in enumerate(codes) if one != 0)
        if code == 0 and failed:
            raise PeerFailure(f"vote after phase {self._boundary}; got {failed}; want no error on "
                              "any rank; no rank may enter a collective without its peers; next: "
                              "read the evidence of that rank")

    def report(self, error: BaseException) -> int:
        """Writes the error and returns its code for a vote."""
        return self._write_error(*described(error))

    def _write_error(self, kind: str, code: int, call: str, message: str) -> int:
        self.write("error", phase=self.phase, arm=self.arm, step=self.step, type=kind, code=code,
                   call=call, message=message)
        return code or CODE_WITHOUT_NUMBER

    def fail(self, *description) -> None:
        """Writes an error of another process of this rank, as described() has it, votes for it, and
        raises CaseFailure."""
        code = self._write_error(*description)
        if not self._failure_voted:
            self.vote(code)
        raise CaseFailure(description[-1])

    def _refused(self, error: BaseException) -> str | None:
        """The rule in whose words the code refused while it was set up or captured, if any."""
        if not self.capturing and PHASES.index(self.phase) > PHASES.index(CAPTURE):
            return None
        return next((rule for rule, words in self._refusals.items() if words in str(error)), None)

    def section(self, boundary: str, work) -> None:
        """Runs `work` and votes for `boundary`. After an error it votes too, so that no rank waits.
        An exception of a user's code, SystemExit among them, ends the case and not the evidence."""
        self._boundary = boundary
        try:
            work()
        except (PeerFailure, CaseFailure):
            raise
        except (Exception, SystemExit) as error:
            rule = self._refused(error)
            if rule is not None:
                self.write("refused", phase=CAPTURE if self.capturing else self.phase, rule=rule,
                           device_initialised=True,
                           what=f"the code of the subject refused the case at {place_of(error)}",
                           got=" ".join(str(error).split()), want="what the rule allows",
                           why="the rule forbids this combination",
                           next=f"./graphproof explain {rule}")
                raise RefusedByCode(rule) from error
            traceback.print_exception(error)
            code = self.report(error)
            if not self._failure_voted and self._vote:
                try:
                    self.vote(code)
                except Exception as vote_error:
                    self.report(vote_error)
            raise CaseFailure(str(error)) from error
        self.vote(0)


__all__ = ["CaseFailure", "CaseScope", "PeerFailure", "RefusedByCode", "monotonic_ms"]
