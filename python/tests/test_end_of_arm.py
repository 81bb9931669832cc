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
    """A layer as impl local leaves it, with a runner that holds the outputs of its capture; or with
    experts, after a step."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.runners = []
        self.token_dispatcher = types.SimpleNamespace(num_out_tokens=8)

    def route(self) -> None:
        probabilities = self.linear(torch.ones(2, 4)).softmax(-1)
        self.token_dispatcher.probs = probabilities
        self.token_dispatcher.routing_map = probabilities > 0.5
        probabilities.sum().backward()

    def capture_norm(self) -> None:
        self.mlp_norm_manager = types.SimpleNamespace(tensor=self.linear(torch.ones(2, 4)))

    def share(self) -> None:
        """Gives the parameters a distributed optimizer in fp32, which refers to the layer."""
        shares = [parameter.view(-1)[:2] for parameter in self.parameters()]
        inner = torch.optim.Adam([share.detach() for share in shares])
        inner.param_groups = [{"params": shares}]
        inner.state = {share: {} for share in shares}
        self.optimizer = types.SimpleNamespace(
            optimizer=inner, shard_fp32_groups=[list(shares)], layer=self)

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
            accumulator.register_hook(self.note)

    def note(self, *_) -> None:
        """A gradient has arrived."""


def model_after(run, end) -> nn.Module | None:
    """What is left of a model after `run(layer)`, `end(layer)` and a collection."""
    wrapper = Wrapper(Layer())
    run(wrapper.layer)
    end(wrapper.layer)
    left = weakref.ref(wrapper)
    del wrapper
    gc.collect()
    return left()


class Models(unittest.TestCase):
    def test_a_model_goes_with_the_outputs_that_its_runners_captured(self):
        def empty(layer: Layer) -> None:
            for runner in layer.runners:
                megatron.empty_runner(runner)

        self.assertIsNotNone(model_after(Layer.capture, lambda layer: None))
        self.assertIsNone(model_after(Layer.capture, empty))

    def test_a_model_with_experts_goes_with_what_its_dispatchers_hold(self):
        self.assertIsNotNone(model_after(Layer.route, lambda layer: None))
        self.assertIsNone(model_after(
            Layer.route, lambda layer: megatron.forget_routed_tokens(list(layer.modules()))))

    def test_a_model_goes_with_what_a_capture_put_ahead_of_its_mlp(self):
        self.assertIsNotNone(model_after(Layer.capture_norm, lambda layer: None))
        self.assertIsNone(model_after(
            Layer.capture_norm, lambda layer: megatron.forget_norms(list(layer.modules()))))

    def test_a_model_goes_with_its_shares_in_a_distributed_optimizer(self):
        self.assertIsNotNone(model_after(Layer.share, lambda layer: None))
        self.assertIsNone(model_after(
            Layer.share, lambda layer: megatron.forget_shares(layer.optimizer)))
        self.assertIsNone(model_after(
            Layer.share, lambda layer: megatron.forget_shares(
                types.SimpleNamespace(chained_optimizers=[layer.optimizer]))))

    def test_only_tensors_are_taken_from_a_dispatcher(self):
        layer = Layer()
        layer.route()
        megatron.forget_routed_tokens([layer, layer.linear])
        self.assertEqual(vars(layer.token_dispatcher),
                         {"num_out_tokens": 8, "probs": None, "routing_map": None})


ATTENTION = {"attention_params": None, "use_fused_attention": True}


class Manager:
    resets = 0

    @classmethod
    def reset(cls) -> None:
        cls.resets += 1


def packages(**attention) -> dict:
    """What sys.modules has while an arm is closed. `attention`: what Transformer Engine's module of
    attention has in place of its choice of a backend."""
    engine = "transformer_engine.pytorch"
    modules = {name: types.SimpleNamespace() for name in ("transformer_engine", engine, "megatron")}
    modules["megatron.core"] = types.SimpleNamespace(full_cuda_graph=types.SimpleNamespace())
    modules[f"{engine}.quantization"] = types.SimpleNamespace(FP8GlobalStateManager=Manager)
    modules[f"{engine}.attention"] = types.SimpleNamespace(
        dot_product_attention=types.SimpleNamespace(
            **(attention or {"_attention_backends": ATTENTION})))
    return modules


class Scales(unittest.TestCase):
    def resets(self, close) -> int:
        """How often the list was emptied. The choice of a backend has to be forgotten as often."""
        Manager.resets = 0
        ATTENTION["attention_params"] = scales = object()
        with mock.patch.dict(sys.modules, packages()):
            close()
        self.assertEqual(ATTENTION["attention_params"], None if Manager.resets else scales)
        self.assertTrue(ATTENTION["use_fused_attention"])
        return Manager.resets

    def test_transformer_engines_list_is_emptied_at_the_end_of_an_arm_with_fp8(self):
        for recipe, wanted in ((object(), 1), (None, 0)):
            training = types.SimpleNamespace(recipe=recipe)
            self.assertEqual(self.resets(lambda: TeTraining.close(training)), wanted)

    def test_a_version_that_keeps_its_choice_elsewhere_still_ends_its_arms(self):
        Manager.resets = 0
        with mock.patch.dict(sys.modules, packages(_kept_elsewhere={})):
            TeTraining.close(types.SimpleNamespace(recipe=object()))
        self.assertEqual(Manager.resets, 1)

    def test_megatron_cores_eager_arms_empty_it_too(self):
        for precision, wanted in (("fp8_delayed", 1), ("fp8_current", 1), ("bf16", 0)):
            case = Case(axes_of(f"subject=megatron_core,precision={precision}"), seed=1)
            training = types.SimpleNamespace(case=case, chunks=[nn.Linear(1, 1)])
            with self.subTest(precision=precision):
                self.assertEqual(
                    self.resets(lambda: megatron.MegatronTraining.close(training)), wanted)


class Iterations(unittest.TestCase):
    def test_static_inputs_of_a_whole_iteration_go_with_its_graph(self):
        # A case of other shapes would copy its inputs into them.
        buffers = {"training": [{"tokens": torch.zeros(1, 16)}], "validation": []}
        whole = types.SimpleNamespace(
            StaticBufferLoader=types.SimpleNamespace(static_buffers=buffers))
        done = []
        case = Case(axes_of("subject=megatron_core,impl=full_iteration"), seed=1)
        training = types.SimpleNamespace(
            case=case.of_arm(True), chunks=[nn.Linear(1, 1)],
            wrapper=types.SimpleNamespace(reset_cuda_graph=lambda: done.append("graph")))
        modules = {**packages(), "megatron.core": types.SimpleNamespace(full_cuda_graph=whole)}
        with mock.patch.dict(sys.modules, modules), mock.patch("torch.cuda.synchronize"):
            megatron.MegatronTraining.close(training)
        self.assertEqual((done, buffers), (["graph"], {"training": [], "validation": []}))


if __name__ == "__main__":
    unittest.main()
