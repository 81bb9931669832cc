"""A process of its own for a part of a case: what it does in the scope of its rank, and how its
end is told. The rank stays a process with one thread."""

import os
import signal
import threading
import time
import unittest

from graphproof.message import Error
from graphproof.new_process import NewProcess
from graphproof.scope import CaseFailure, CaseScope, PeerFailure

SILENCE_S = 30.0


class Scope(CaseScope):
    """A scope whose evidence and heartbeats are lists. `codes`: what all ranks vote."""

    def __init__(self, codes=None):
        self.lines, self.phases = [], []
        super().__init__(self, self, rank=0, refusals={})
        self.votes_through(lambda boundary, code: codes or [code])

    def write(self, kind: str, **fields) -> None:
        self.lines.append({"kind": kind, **fields})

    def phase_of(self, *place) -> None:
        self.phases.append(place)

    def enter(self, phase: str, arm: str, step: int) -> None:
        self.phase, self.arm, self.step = phase, arm, step
        self.phases.append((phase, arm, step))

    def of_kind(self, kind: str) -> list:
        return [line for line in self.lines if line["kind"] == kind]


class NewProcesses(unittest.TestCase):
    def run_of(self, work, scope: Scope, silence_s: float = SILENCE_S) -> NewProcess:
        process = NewProcess(work)
        process.run(scope, silence_s)
        return process

    def test_what_it_writes_enters_and_votes_is_done_in_its_rank(self):
        def work(scope) -> None:
            scope.enter("build", "resumed", 3)
            scope.boundary("capture")
            scope.vote(0)
            scope.write("resumed", arm="resumed", process=os.getpid())

        scope = Scope()
        process = self.run_of(work, scope)
        self.assertEqual(scope.phases, [("build", "resumed", 3)])
        self.assertEqual(scope.lines, [{"kind": "vote", "phase": "capture", "codes": [0]},
                                       {"kind": "resumed", "arm": "resumed",
                                        "process": process.pid}])
        self.assertNotEqual(process.pid, os.getpid())

    def test_its_error_is_an_error_of_the_rank_which_votes_for_it_once(self):
        def fails(scope) -> None:
            scope.enter("replay", "resumed", 4)
            raise ValueError("the shapes differ")

        def fails_in_capture(scope) -> None:
            scope.boundary("capture")
            scope.vote(7)
            raise ValueError("the shapes differ")

        for work, codes in ((fails, [1]), (fails_in_capture, [7])):
            scope = Scope()
            with self.subTest(work=work.__name__), \
                    self.assertRaisesRegex(CaseFailure, "ValueError: the shapes differ"):
                scope.section("replay", lambda work=work, scope=scope: self.run_of(work, scope))
            self.assertEqual([line["codes"] for line in scope.of_kind("vote")], [codes])
            error, = scope.of_kind("error")
            self.assertEqual(error["message"], "ValueError: the shapes differ")
            self.assertIn(work.__name__, error["call"])

    def test_it_ends_where_another_rank_has_failed(self):
        def work(scope) -> None:
            scope.vote(0)
            scope.write("resumed")

        scope, process = Scope(codes=[0, 1]), NewProcess(work)
        with self.assertRaisesRegex(PeerFailure, "rank 1 with code 1"):
            process.run(scope, SILENCE_S)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1]), 0)
        self.assertEqual(scope.of_kind("resumed"), [])

    def test_the_way_in_which_it_ended_is_told(self):
        def is_killed(scope) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        def leaves(scope) -> None:
            os._exit(3)

        def says_nothing(scope) -> None:
            time.sleep(SILENCE_S)

        rows = ((is_killed, SILENCE_S, r"signal 9 \(Killed\)"), (leaves, SILENCE_S, "exit code 3"),
                (says_nothing, 0.1, "no word for 100 ms"))
        for work, silence_s, got in rows:
            process = NewProcess(work)
            with self.subTest(work=work.__name__), \
                    self.assertRaisesRegex(Error, f"process {process.pid}, in which a part of the "
                                                  f"case runs; got {got}"):
                process.run(Scope(), silence_s)
            if work is says_nothing:
                os.kill(process.pid, signal.SIGKILL)
                os.waitpid(process.pid, 0)

    def test_one_that_no_case_has_asked_for_ends_with_its_rank(self):
        first = NewProcess(lambda scope: None)
        second = NewProcess(lambda scope: None, [first])
        # The second one does not keep the first one waiting.
        first.end()
        second.end()
        with self.assertRaises(ChildProcessError):
            os.waitpid(first.pid, 0)

    def test_a_process_with_threads_forks_none(self):
        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.start()
        try:
            with self.assertRaisesRegex(Error, "2 threads"):
                NewProcess(lambda scope: None)
        finally:
            done.set()
            thread.join()


if __name__ == "__main__":
    unittest.main()
