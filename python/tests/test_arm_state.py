"""What an arm compares of its model and of its optimizer."""

import types
import unittest

import torch
from torch import nn

from graphproof.arms.arm import Arm
from graphproof.learning_rate import Chained
from graphproof.subjects.megatron_core_subject import is_bias_of_a_router


class WithBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
        self.register_buffer("expert_bias", torch.zeros(2))
        self.register_buffer("scratch", torch.zeros(2))


def state_of(optimizer, compared=lambda name: True) -> dict:
    """name -> tensor of an arm whose model has one layer."""
    model = nn.Sequential(WithBuffers())
    arm = Arm.__new__(Arm)
    arm.subject = types.SimpleNamespace(model=model, optimizer=optimizer(model),
                                        compared_buffers=compared)
    arm.parameters = [(f"param:{name}", parameter)
                      for name, parameter in model.named_parameters()]
    return dict(Arm.state(arm))


class State(unittest.TestCase):
    def test_copies_that_an_optimizer_holds_are_compared_also_without_a_state(self):
        # The copy differs by less than the precision of the model's parameter.
        copy = torch.full((2,), 1 + 2.0 ** -12)
        for optimizer in (lambda model: torch.optim.SGD([copy], lr=1.0),
                          lambda model: Chained([torch.optim.SGD([copy], lr=1.0)])):
            state = state_of(optimizer)
            copies = [name for name in state if name.startswith("state:copy")]
            self.assertEqual(len(copies), 1)
            self.assertIs(state[copies[0]], copy)

    def test_the_state_of_a_copy_has_its_name(self):
        copy = torch.ones(2, requires_grad=True)

        def stepped(model):
            optimizer = torch.optim.Adam([copy], lr=0.1)
            copy.grad = torch.ones(2)
            optimizer.step()
            return optimizer

        names = {name for name in state_of(stepped) if name.startswith("state:")}
        self.assertEqual(names, {"state:copy 1", "state:copy 1.step", "state:copy 1.exp_avg",
                                 "state:copy 1.exp_avg_sq"})

    def test_parameters_of_the_model_are_no_copies(self):
        names = set(state_of(lambda model: torch.optim.SGD(model.parameters(), lr=0.1)))
        self.assertEqual(names, {"param:0.weight", "buffer:0.expert_bias", "buffer:0.scratch"})

    def test_of_the_buffers_of_megatron_core_the_bias_of_a_router_is_compared(self):
        names = set(state_of(lambda model: None, is_bias_of_a_router))
        self.assertEqual(names, {"param:0.weight", "buffer:0.expert_bias"})


if __name__ == "__main__":
    unittest.main()
