"""Which callables of Transformer Engine are captured and in which order they run. Its modules are
stood in for by PyTorch's, its graphs by functions that note who called them."""

import sys
import types
import unittest
from unittest import mock

import torch
import torch._dynamo  # by optimizers; not while sys.modules is patched, which would import it twice
from torch import nn

from graphproof.case import Case
from graphproof.device import stand_in
from graphproof.message import Error
from graphproof.subjects import transformer_engine_subject as te
from judged_batch import axes_of

stand_in.install()


class Part(nn.Module):
    """Takes any of the arguments that a module of Transformer Engine has, and keeps the hidden
    size. `given` is what its calls were given besides their input."""

    def __init__(self, hidden_size: int, params_dtype: torch.dtype, **arguments):
        super().__init__()
        self.linear = nn.Linear(hidden_size, hidden_size, dtype=params_dtype)
        self.arguments, self.given = arguments, []

    def forward(self, x: torch.Tensor, **keywords) -> torch.Tensor:
        self.given.append(keywords)
        return self.linear(x)


class Graphs:
    """make_graphed_callables, whose callables run the module and note (module, microbatch)."""

    def __init__(self):
        self.launched, self.asked = [], None

    def make(self, modules: tuple, samples: tuple, _order: list, **options) -> tuple:
        self.asked = (len(modules), len(samples), _order)

        def callable_of(module, microbatch: int):
            def graphed(x, **keywords):
                self.launched.append((module, microbatch))
                return module(x, **keywords)
            return graphed

        return tuple(callable_of(module, microbatch)
                     for microbatch in range(len(samples) // len(modules)) for module in modules)


def packages(graphs: Graphs) -> dict:
    pytorch = types.SimpleNamespace(MultiheadAttention=Part, LayerNormMLP=Part,
                                    TransformerLayer=Part, make_graphed_callables=graphs.make)
    return {"transformer_engine": types.SimpleNamespace(pytorch=pytorch),
            "transformer_engine.pytorch": pytorch}


class Parts(unittest.TestCase):
    def subject(self, name: str, graphs: Graphs):
        case = Case(axes_of(f"subject=transformer_engine,impl=transformer_engine,{name}"), seed=1,
                    device="cpu")
        torch.manual_seed(2)
        modules = mock.patch.dict(sys.modules, packages(graphs))
        modules.start()
        self.addCleanup(modules.stop)
        return te.build(case)

    def test_the_named_parts_of_each_layer_are_captured_and_run_by_the_graphs_of_their_microbatch(
            self):
        for name, kinds in (("modules=mlp", ("mlp",)), ("modules=attn", ("attn",)),
                            ("modules=attn+mlp", ("attn", "mlp"))):
            graphs = Graphs()
            subject = self.subject(f"{name},microbatches=3", graphs)
            captured = subject.capture(subject.step, subject.batch(0))
            count = 2 * len(kinds)
            with self.subTest(case=name):
                self.assertEqual(graphs.asked, (count, 3 * count, [1, -1] * 3))
                captured.step(subject.batch(1))
                order = [getattr(layer, kind) for layer in subject.layers for kind in kinds]
                self.assertEqual(graphs.launched, [(part, microbatch) for microbatch in range(3)
                                                   for part in order])

    def test_whole_layers_are_captured_without_modules(self):
        graphs = Graphs()
        subject = self.subject("microbatches=2", graphs)
        captured = subject.capture(subject.step, subject.batch(0))
        captured.step(subject.batch(1))
        self.assertEqual(graphs.launched, [(layer, microbatch) for microbatch in range(2)
                                           for layer in subject.layers])

    def test_the_graphs_compute_what_the_modules_do_and_go_when_they_are_closed(self):
        for name in ("modules=attn+mlp,microbatches=2", "microbatches=2"):
            graphs = Graphs()
            subject = self.subject(name, graphs)
            batch = subject.batch(4)
            start = [parameter.detach().clone() for parameter in subject.model.parameters()]
            eager = subject.step(batch)
            with torch.no_grad():
                for parameter, value in zip(subject.model.parameters(), start):
                    parameter.copy_(value)
            captured = subject.capture(subject.step, batch)
            self.assertTrue(torch.equal(captured.step(batch), eager), name)
            launched = len(graphs.launched)
            captured.close()
            subject.step(batch)
            self.assertEqual(len(graphs.launched), launched, name)

    def test_weights_are_rounded_by_the_first_microbatch_of_a_step_in_every_part(self):
        subject = self.subject("modules=attn+mlp,microbatches=2,fp8_weights=true", Graphs())
        subject.step(subject.batch(0))
        for layer in subject.layers:
            for part in (layer.attn, layer.mlp):
                self.assertEqual(part.given, [{"is_first_microbatch": True},
                                              {"is_first_microbatch": False}])

    def test_each_part_gets_its_own_arguments(self):
        case = Case(axes_of("subject=transformer_engine,modules=mlp,ffn=96,activation=swiglu"), 1)
        self.assertEqual((te.part_of(case, "mlp")["ffn_hidden_size"],
                          te.part_of(case, "mlp")["activation"]), (96, "swiglu"))
        self.assertNotIn("ffn_hidden_size", te.part_of(case, "attn"))
        self.assertTrue(te.part_of(case, "attn")["input_layernorm"])

    def test_parts_that_a_layer_does_not_have_are_refused(self):
        with self.assertRaisesRegex(Error, r"axis modules of a case.*got \['moe'\]"):
            self.subject("modules=moe", Graphs())


if __name__ == "__main__":
    unittest.main()
