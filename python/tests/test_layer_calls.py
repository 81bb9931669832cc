"""How graphed callables of PyTorch can be called, by torch.cuda.make_graphed_callables itself on
the stand-in: what equals eager calls, what is refused, and what is taken without a word; and graphs
of inference ahead of training."""

import types
import unittest
from unittest import mock

import torch

from graphproof.case import Case
from graphproof.device import stand_in
from graphproof.subjects import refusals
from graphproof.subjects import torch_subject as subject_torch
from judged_batch import axes_of

stand_in.install()

NAME = "subject=torch,impl=callables,capture_mode=global,microbatches=2"


def built(calls: str):
    torch.manual_seed(3)
    return subject_torch.build(Case(axes_of(f"{NAME},layer_calls={calls}"), seed=1, device="cpu"))


def graphed(function, *samples):
    """A graphed callable over copies of `samples`, which stay as they are."""
    copies = tuple(one.clone().requires_grad_(one.requires_grad) for one in samples)
    return torch.cuda.make_graphed_callables(function, copies, allow_unused_input=True)


class Calls(unittest.TestCase):
    def test_nested_arguments_of_each_microbatch_reach_the_graphs(self):
        eager, subject = built("nested"), built("nested")
        wanted = [eager.step(eager.batch(step)).tolist() for step in range(3)]
        first = subject.step(subject.batch(0)).tolist()
        captured = subject.capture(subject.step, subject.batch(1))
        self.assertEqual([first, *(captured.step(subject.batch(step)).tolist()
                                   for step in (1, 2))], wanted)
        for left, right in zip(eager.model.parameters(), subject.model.parameters()):
            self.assertTrue(torch.equal(left, right))

    def test_every_other_way_runs_eagerly_and_is_refused_in_the_words_of_its_rule(self):
        for calls, rule in (("dataclass", "P005"), ("keywords", "P006"),
                            ("second_derivative", "P007")):
            subject = built(calls)
            self.assertTrue(subject.step(subject.batch(0)).isfinite().all())
            before = [module.forward for module in subject.layers]
            with self.subTest(calls=calls), self.assertRaises(Exception) as raised:
                subject.capture(subject.step, subject.batch(1))
            self.assertIn(refusals()[rule], str(raised.exception))
            self.assertEqual([module.forward for module in subject.layers], before)

    def test_the_derivative_is_part_of_the_loss(self):
        plain, subject = built("plain"), built("second_derivative")
        self.assertGreater(float(subject.step(subject.batch(0)).sum()),
                           float(plain.step(plain.batch(0)).sum()))


class EarlierGraphs(unittest.TestCase):
    def capture(self, graph_arm: bool, earlier: str) -> tuple:
        """(number of graphs captured when the subject is built, generators whose state was
        renewed)."""
        case = Case(axes_of(f"subject=torch,impl=full_iteration,dropout=true,"
                            f"earlier_graph={earlier}"), seed=1, device="cpu").of_arm(graph_arm)
        renewed = []
        generator = types.SimpleNamespace(clone_state=lambda: "copy",
                                          graphsafe_set_state=renewed.append)
        with mock.patch.object(torch.cuda, "default_generators", (generator,)), \
                subject_torch.graphs_made() as graphs:
            subject = subject_torch.build(case)
            made = len(graphs)
            subject.close()
        return made, renewed

    def test_arms_with_graphs_have_one_and_clone_the_state_if_the_case_says_so(self):
        for graph_arm, earlier, wanted in ((True, "inference_mode", (1, [])),
                                           (True, "cloned_state", (1, ["copy"])),
                                           (False, "inference_mode", (0, [])),
                                           (True, "none", (0, []))):
            with self.subTest(graph_arm=graph_arm, earlier=earlier):
                self.assertEqual(self.capture(graph_arm, earlier), wanted)


class Silence(unittest.TestCase):
    """docs/findings/callables-take-other-arguments.md"""

    def test_one_sequence_is_broadcast_to_the_batch_of_the_capture(self):
        call = graphed(lambda x: 2 * x, torch.zeros(3, 2, requires_grad=True))
        x = torch.ones(1, 2, requires_grad=True)
        result = call(x)
        self.assertEqual(tuple(result.shape), (3, 2))
        result.sum().backward()
        self.assertEqual(x.grad.tolist(), [[6.0, 6.0]])  # two of them are of sequences it lacks

    def test_a_dictionary_is_read_by_the_order_of_its_keys(self):
        call = torch.cuda.make_graphed_callables(
            lambda given: given["left"] - given["right"],
            ({"left": torch.zeros(2, requires_grad=True), "right": torch.zeros(2)},))
        two, one = 2 * torch.ones(2), torch.ones(2)
        self.assertEqual(call({"left": two, "right": one}).tolist(), [1.0, 1.0])
        self.assertEqual(call({"right": one, "left": two}).tolist(), [-1.0, -1.0])

    def test_a_gradient_that_the_sample_did_not_ask_for_is_lost(self):
        call = graphed(lambda x, y: x * y, torch.zeros(2, requires_grad=True), torch.zeros(2))
        x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
        call(x, y).sum().backward()
        self.assertEqual((x.grad.tolist(), y.grad), ([1.0, 1.0], None))

    def test_another_type_is_converted(self):
        call = graphed(lambda x: x + 0, torch.zeros(2, requires_grad=True))
        self.assertEqual(call(torch.ones(2, dtype=torch.float64)).dtype, torch.float32)

    def test_a_new_parameter_is_not_read(self):
        layer = torch.nn.Linear(2, 2, bias=False)
        graphed(layer, torch.zeros(1, 2, requires_grad=True))
        old, layer.weight = layer.weight, torch.nn.Parameter(torch.zeros(2, 2))
        x = torch.ones(1, 2)
        result = layer(x)
        self.assertEqual(result.tolist(), (x @ old.T).tolist())
        result.sum().backward()
        self.assertEqual((layer.weight.grad, old.grad.tolist()), (None, [[1.0, 1.0]] * 2))

    def test_a_missing_argument_is_replaced_by_a_parameter_of_its_shape(self):
        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(3 * torch.ones(2))

            def forward(self, x, y):
                return x + y * self.weight

        module = Scaled()
        graphed(module, torch.zeros(2, requires_grad=True), torch.zeros(2))
        self.assertEqual(module(torch.ones(2)).tolist(), [10.0, 10.0])  # 1 + 3 * 3


if __name__ == "__main__":
    unittest.main()
