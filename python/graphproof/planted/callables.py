"""Faults in torch.cuda.make_graphed_callables, and calls of what it returns that it takes without a
word (docs/findings/callables-take-other-arguments.md)."""

import torch

from graphproof.arms.arm import Arm
from graphproof.planted.source import changed, replaced


def _change(old: str, new: str) -> None:
    changed("torch.cuda.graphs", "make_graphed_callables", old, new)


def callable_inputs_not_copied() -> None:
    _change("static_input_surface[i].copy_(inputs[i])", "pass")


def callable_gradients_not_copied() -> None:
    _change("g.copy_(grad)", "pass")


def callable_forward_not_launched() -> None:
    _change("fwd_graph.replay()", "pass")


def callable_backward_not_launched() -> None:
    _change("bwd_graph.replay()", "pass")


def callable_gradients_doubled() -> None:
    _change("b.detach() if b is not None else b", "b.detach() * 2 if b is not None else b")


def callable_runs_old_forward() -> None:
    _change("if func.training == graph_training_state:", "if not func.training:")


def callable_evaluates_from_graph() -> None:
    _change("if func.training == graph_training_state:", "if True:")


def callables_swap_graphs() -> None:
    _change("fwd_graphs[i],", "fwd_graphs[-1 - i],")


def callable_pools_not_shared() -> None:
    _change("with torch.cuda.graph(fwd_graph, pool=mempool):",
            "with torch.cuda.graph(fwd_graph):")


def callable_arguments_reordered() -> None:
    def reordering(nested):
        def reordered(model, x):
            given = nested(model, x)
            return {name: given[name] for name in ("offsets", "hidden", "gains")}
        return reordered

    replaced("graphproof.subjects.layer_calls", "CallingGpt.nested", reordering)


def callable_argument_broadcast() -> None:
    leaves = "torch.utils._pytree.arg_tree_leaves(*user_args)"
    _change(f"flatten_user_args = {leaves}", f"flatten_user_args = [one[:1] for one in {leaves}]")


def callable_parameter_replaced() -> None:
    capture = Arm._capture

    def capturing(self, batch):
        capture(self, batch)
        layer = self.subject.layers[-1].mlp.up
        old, new = layer.weight, torch.nn.Parameter(layer.weight.detach().clone())
        layer.weight, new.grad = new, torch.zeros_like(new)
        # The optimizer is that of the model as it is now, and so is what is compared.
        for group in self.subject.optimizer.param_groups:
            group["params"] = [new if one is old else one for one in group["params"]]
        self.parameters = [(name, new if one is old else one) for name, one in self.parameters]

    Arm._capture = capturing
