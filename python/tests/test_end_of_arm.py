"""What libraries keep in one place of the process goes with the arm that put it there. Transformer
Engine and Megatron-Core are stood in for by what they would be asked for."""

import gc
import sys
import types
import unittest
import weakref
from unittest import mock

import torch
from torch import nn

from graphproof.case import Case
from graphproof.subjects import megatron_core_subject as megatron
from graphproof.subjects.transformer_engine_subject import TeTraining
from judged_batch import axes_of


class Layer(nn.Module):
    """A layer as impl local leaves it: with a runner that holds the outputs of its capture."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.runners = []

    def capture(self) -> None:
        runner = nn.Module()
        runner.base_module = self
        runner.fwd_graph_outputs = runner.fwd_graph_output_surface = self.linear(torch.ones(2, 4))
        self.runners.append(runner)


class Wrapper(nn.Module):
    """A data parallel wrapper, whose hooks on the accumulators of gradients refer to it."""

    def __init__(self, layer: Layer):
        super().__init__()
        self.layer = layer
        self.accumulators = [p.expand_as(p).grad_fn.next_functions[0][0]
                             for p in layer.parameters()]
        for accumulator in self.accumulators:
            accumulator.register_hook(lambda *_: self)


def model_after(end) -> nn.Module | None:
    """What is left of a model after `end(runner)` and a collection."""
    wrapper = Wrapper(Layer())
    wrapper.layer.capture()
    for runner in wrapper.layer.runners:
        end(runner)
    left = weakref.ref(wrapper)
    del wrapper, runner
    gc.collect()
    return left()


class Runners(unittest.TestCase):
    def test_a_model_goes_with_the_outputs_that_its_runners_captured(self):
        self.assertIsNotNone(model_after(lambda runner: None))
        self.assertIsNone(model_after(megatron.empty_runner))


class Manager:
    resets = 0

    @classmethod
    def reset(cls) -> None:
        cls.resets += 1


def packages() -> dict:
    """What sys.modules has while an arm is closed."""
    quantization = types.SimpleNamespace(FP8GlobalStateManager=Manager)
    core = types.SimpleNamespace(full_cuda_graph=types.SimpleNamespace())
    return {"transformer_engine": types.SimpleNamespace(), "megatron": types.SimpleNamespace(),
            "transformer_engine.pytorch": types.SimpleNamespace(), "megatron.core": core,
            "transformer_engine.pytorch.quantization": quantization}


class Scales(unittest.TestCase):
    def resets(self, close) -> int:
        Manager.resets = 0
        with mock.patch.dict(sys.modules, packages()):
            close()
        return Manager.resets

    def test_transformer_engines_list_is_emptied_at_the_end_of_an_arm_with_fp8(self):
        for recipe, wanted in ((object(), 1), (None, 0)):
            training = types.SimpleNamespace(recipe=recipe)
            self.assertEqual(self.resets(lambda: TeTraining.close(training)), wanted)

    def test_megatron_cores_eager_arms_empty_it_too(self):
        for precision, wanted in (("fp8_delayed", 1), ("fp8_current", 1), ("bf16", 0)):
            case = Case(axes_of(f"subject=megatron_core,precision={precision}"), seed=1)
            training = types.SimpleNamespace(case=case, chunks=[nn.Linear(1, 1)])
            with self.subTest(precision=precision):
                self.assertEqual(
                    self.resets(lambda: megatron.MegatronTraining.close(training)), wanted)


if __name__ == "__main__":
    unittest.main()
