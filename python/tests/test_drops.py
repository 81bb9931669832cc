"""Graphs that are destroyed while the device runs them are counted, for every arm of a case."""

import types
import unittest

from graphproof.arms.arm import Arm, Drops
from graphproof.arms.observer import ArmObserver
from graphproof.case import Case
from graphproof.device import observed_graph
from graphproof.device.observed_graph import Observed
from graphproof.teardown import tear_down
from judged_batch import LIMITS


class Mark:
    """A mark of a device that is told when its work has ended."""

    ended = True

    def query(self) -> bool:
        return self.ended


class Launched:
    """The class below an observed graph; there is no device."""

    def __init__(self, keep_graph: bool = False):
        pass

    def capture_begin(self, pool=None, capture_error_mode="global"):
        pass

    def capture_end(self):
        pass

    def pool(self):
        return (0, 1)

    def replay(self):
        pass

    def reset(self):
        pass


Graph = observed_graph.observed_class(Launched, lambda graph: (1, {}, ""), lambda: 0,
                                      lambda earlier: earlier or Mark())


def arm_with_graphs(drops: Drops, count: int, captured: bool = True) -> tuple:
    """An arm of which only the graphs matter, and its graphs, each launched once."""
    arm = Arm.__new__(Arm)
    arm.parts = types.SimpleNamespace(drops=drops, case=Case({}, seed=1))
    arm.observer, graphs = ArmObserver(arm), []
    for place in range(count):
        index = Observed.captures
        graph = Graph()
        graph.capture_begin()
        graph.capture_end()
        graph.replay()
        arm.observer._places[index] = place
        graphs.append(graph)
    arm.closes = []
    arm.captured = types.SimpleNamespace(
        close=lambda: [graph.reset() for graph in graphs]) if captured else None
    arm.subject = types.SimpleNamespace(close=lambda: None)
    return arm, graphs


class Teardown(unittest.TestCase):
    def setUp(self):
        notes, Observed.notes_operands = Observed.notes_operands, False
        self.addCleanup(setattr, Observed, "notes_operands", notes)

    def in_flight(self, drops: Drops, kept: list):
        """What the line of the graphs has when `kept` are the arms that still have some."""
        lines = []
        scope = types.SimpleNamespace(
            enter=lambda *args: None, section=lambda boundary, work: work(),
            write=lambda kind, **fields: lines.append(fields))
        device = types.SimpleNamespace(synchronize=lambda: None, empty_cache=lambda: None)
        tear_down(types.SimpleNamespace(scope=scope, device=device, drops=drops),
                  types.SimpleNamespace(leave_group=lambda: None), kept, [], LIMITS, False, True)
        return next(line["in_flight"] for line in lines if line["step"] == "graphs")

    def test_graphs_that_still_run_when_they_go_are_counted(self):
        for running, wanted in (((), 0), ((1,), 1), ((0, 2), 2)):
            drops = Drops()
            arm, graphs = arm_with_graphs(drops, 3)
            for place in running:
                graphs[place]._mark.ended = False
            with self.subTest(running=running):
                self.assertEqual(self.in_flight(drops, [arm]), wanted)
                self.assertEqual(drops.graphs, 3)

    def test_those_of_arms_that_were_closed_before_the_teardown_count_too(self):
        drops = Drops()
        arm, graphs = arm_with_graphs(drops, 2)
        graphs[0]._mark.ended = False
        arm.close()
        self.assertEqual(self.in_flight(drops, []), 1)

    def test_graphs_of_other_arms_are_not_this_ones(self):
        drops = Drops()
        _, others = arm_with_graphs(Drops(), 2)
        others[0]._mark.ended = False
        arm, _ = arm_with_graphs(drops, 1)
        self.assertEqual(self.in_flight(drops, [arm]), 0)
        self.assertEqual(drops.graphs, 1)

    def test_a_count_of_no_graphs_is_no_count(self):
        drops = Drops()
        arm, _ = arm_with_graphs(drops, 0, captured=False)
        self.assertIsNone(self.in_flight(drops, [arm]))

    def test_a_graph_that_was_never_launched_does_not_run(self):
        graph = Graph()
        self.assertFalse(graph.running())


if __name__ == "__main__":
    unittest.main()
