"""Faults in the class torch.cuda.CUDAGraph and around its launches."""

import torch

from graphproof import subject
from graphproof.arms import arm
from graphproof.device.observed_graph import Observed

STILL_RUNNING_MS = 50.0


def _base():
    """The class below the observed one, so that the observer sees what a library would see."""
    return torch.cuda.CUDAGraph.__mro__[1]


def _generators() -> list:
    return [torch.default_generator, *(torch.cuda.default_generators
                                       if torch.cuda.is_initialized() else ())]


def frozen_generators() -> None:
    base = _base()
    begin, replay = base.capture_begin, base.replay

    def capture_begin(self, *args, **kwargs):
        self.numbers = [(generator, generator.get_state()) for generator in _generators()]
        begin(self, *args, **kwargs)

    def frozen(self):
        for generator, state in self.numbers:
            generator.set_state(state)
        replay(self)

    base.capture_begin, base.replay = capture_begin, frozen


def empty_launches() -> None:
    base = _base()
    replay, count = base.replay, [0]

    def sometimes(self):
        count[0] += 1
        if count[0] % 3:
            replay(self)

    base.replay = sometimes


def graphs_kept_alive() -> None:
    _base().reset = lambda self: _kept.append(self)


_kept = []  # the graphs of graphs_kept_alive()


def losses_not_copied() -> None:
    def capture(*args):
        captured = clean(*args)
        run = captured.step

        def replay(fresh):
            run(fresh)
            return captured.losses

        captured.step = replay
        return captured

    clean, arm.capture_whole_step = arm.capture_whole_step, capture


def inputs_not_copied() -> None:
    subject.copy_into = lambda static, batch: None


def launched_twice() -> None:
    graph = torch.cuda.CUDAGraph
    replay = graph.replay

    def twice(self):
        replay(self)
        replay(self)

    graph.replay = twice


def graphs_dropped_while_running() -> None:
    drop = arm.Arm.drop_graphs

    def at_once(self):
        own = [graph for graph in Observed.live if self.observer and self.observer.owns(graph)]
        if own:
            self.parts.device.delay_work(others=False, ms=STILL_RUNNING_MS)
        for graph in own:
            graph.replay()
        drop(self)

    arm.Arm.drop_graphs = at_once
