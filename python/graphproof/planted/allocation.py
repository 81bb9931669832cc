"""Faults that keep, free or move memory around launches."""

import torch

from graphproof.arms.arm import Arm


def tensor_kept_by_launch() -> None:
    graph = torch.cuda.CUDAGraph
    replay, kept = graph.replay, []

    def leaking(self):
        replay(self)
        kept.append(torch.zeros(1024, device="cuda" if torch.cuda.is_initialized() else "cpu"))

    graph.replay = leaking


def parameter_rebound() -> None:
    run = Arm.run

    def rebinding(self, index, step_input):
        if self.captured is not None:
            # As a checkpoint that is loaded by assignment, between two replays.
            parameter = self.parameters[-1][1]
            parameter.data = parameter.data.clone()
        return run(self, index, step_input)

    Arm.run = rebinding


def optimizer_state_replaced_by_load() -> None:
    load = Arm.load

    def replacing(self, saved):
        load(self, saved)
        # As an optimizer's load_state_dict may do.
        for state in self.subject.optimizer.state.values():
            for key, value in state.items():
                state[key] = value.clone()

    Arm.load = replacing
