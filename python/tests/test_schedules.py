"""What other schedules than train ask of an arm: evaluation by a library that captures it by
itself, and a resumed job where graphs of one arm must go before another one captures."""

import itertools
import types
import unittest
from unittest import mock

import torch

from graphproof.arms import order
from graphproof.arms.observer import ArmObserver
from graphproof.arms.schedules import Evaluator
from graphproof.device.observed_graph import GraphInfo
from graphproof.subject import Captured


class Lines:
    """The lines that an arm writes."""

    def __init__(self):
        self.written = []

    def enter(self, *_) -> None:
        """Phases are no matter here."""

    boundary = vote = enter

    def write(self, kind: str, **fields) -> None:
        self.written.append({"kind": kind, **fields})

    def of(self, kind: str) -> list:
        return [line for line in self.written if line["kind"] == kind]


def arm_of(evaluate, step) -> types.SimpleNamespace:
    """A graph arm of impl full_iteration whose library captures within the evaluation that comes
    next: `step` returns its losses."""
    case = types.SimpleNamespace(impl="full_iteration", warmup_steps=1, microbatches=2,
                                 device="cpu")
    subject = types.SimpleNamespace(evaluate=evaluate,
                                    capture_evaluation=lambda batch: Captured(step=step))
    observer = types.SimpleNamespace(captures=0, first_captures=0, replays=0, announced=0,
                                     inspected=0, capturing=None, begin_step=lambda: None)
    device = types.SimpleNamespace(synchronize=lambda: None)
    return types.SimpleNamespace(
        parts=types.SimpleNamespace(case=case, scope=Lines(), device=device), graphs=True,
        name="lockstep_graph", index=3, subject=subject, observer=observer, closes=[])


class Evaluations(unittest.TestCase):
    def run_three(self, step) -> tuple:
        """The losses of three evaluations, of which the first is eager, and the arm's lines."""
        arm = arm_of(lambda batch: torch.full((2,), 0.5), step)
        evaluator = Evaluator(arm)
        losses = [evaluator.losses(number, number)[0][1].tolist() for number in range(3)]
        return losses, arm.parts.scope

    def test_losses_without_a_static_tensor_are_watched_in_a_place_of_the_arm(self):
        losses, lines = self.run_three(lambda batch: torch.full((2,), float(batch)))
        self.assertEqual(losses, [[0.5, 0.5], [1.0, 1.0], [2.0, 2.0]])
        self.assertEqual([line["registered"] for line in lines.of("address")], [1, 1])
        self.assertEqual([line["moved"] for line in lines.of("address")], [[], []])
        self.assertEqual([(line["outputs"], line["compared"], line["canary_words"])
                          for line in lines.of("poison")], [(1, 1, 0), (1, 1, 0)])

    def test_losses_that_a_replay_did_not_write_are_told(self):
        place = torch.zeros(2)
        with mock.patch.object(torch, "empty", lambda *_, **__: place):
            # The library hands out its own memory, which no replay has written since the poison.
            _, lines = self.run_three(lambda batch: place)
        self.assertEqual([line["canary_words"] for line in lines.of("poison")], [2, 2])


class Order(unittest.TestCase):
    def observer(self) -> ArmObserver:
        subject = types.SimpleNamespace(graphs=["first", "second"], captured_modules={},
                                        captures_alike=True, empty_graphs=False)
        arm = types.SimpleNamespace(
            parts=types.SimpleNamespace(scope=Lines(), device=types.SimpleNamespace(
                synchronize=lambda: None)),
            name="lockstep_graph", index=2, subject=subject, eager_steps=2, state=lambda: [],
            generators=dict, generator_states=dict,
            counters=types.SimpleNamespace(values=lambda: [0], runs={}))
        return ArmObserver(arm)

    def replayed(self, evaluation_is_known: bool) -> int:
        """Launches out of order, where evaluation has a graph in the pool of the step's two."""
        observer, graphs = self.observer(), []
        for index in range(3):
            info = GraphInfo(index=index, mode="global", pool=(0, 1), nodes=1)
            observer.capturing = ("validation", 2) if index == 2 and evaluation_is_known else None
            observer.before_capture(index)
            observer.after_capture(info)
            graphs.append(types.SimpleNamespace(info=info, operands=lambda: None))
        for index in (0, 1, 2, 2, 0, 1):
            observer.before_replay(graphs[index])
        self.assertEqual(observer.replays, 6)
        return observer.out_of_order

    def test_a_graph_of_evaluation_has_no_place_in_the_order_of_the_step(self):
        self.assertEqual(self.replayed(evaluation_is_known=True), 0)
        self.assertEqual(self.replayed(evaluation_is_known=False), 1)


class Resumed(unittest.TestCase):
    def test_arms_of_an_exclusive_library_end_before_the_job_that_resumes(self):
        for exclusive, in_new_process in itertools.product((True, False), (True, False)):
            alive, closed, kept, arms = [], [], [], []

            def made(parts, name, graphs, free, exclusive=exclusive, closed=closed, arms=arms):
                arms.append(mock.MagicMock())
                arms[-1].subject.exclusive = exclusive
                arms[-1].close = lambda: closed.append(name)
                return arms[-1]

            case = types.SimpleNamespace(steps=2, schedule="resume", resume_step=1)
            device = types.SimpleNamespace(overwrite_free_memory=lambda: 0)
            resumption = types.SimpleNamespace(folder="here") if in_new_process else None
            parts = types.SimpleNamespace(case=case, scope=Lines(), device=device,
                                          new_process=resumption)
            inputs = [types.SimpleNamespace(word="fresh")] * 3
            runs = "run_in_new_process" if in_new_process else "run_resumed"
            with mock.patch.object(order, "Arm", made), \
                    mock.patch.object(order, "write_comparison"), \
                    mock.patch.object(order.History, "add"), \
                    mock.patch.object(order, runs,
                                      lambda *_, kept=kept, alive=alive: alive.append(len(kept))):
                order.run_lockstep(parts, inputs, kept)
            with self.subTest(exclusive=exclusive, in_new_process=in_new_process):
                self.assertEqual(alive, [0 if exclusive else 2])
                self.assertEqual(closed, ["lockstep_eager", "lockstep_graph"] if exclusive else [])
                self.assertEqual(arms[1].checkpoint.mock_calls,
                                 [mock.call("here")] if in_new_process else [])
                self.assertEqual(arms[1].save.call_count, 0 if in_new_process else 1)


if __name__ == "__main__":
    unittest.main()
