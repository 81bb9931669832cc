"""Faults in torch.cuda.make_graphed_callables."""

import torch

from graphproof.planted.source import changed


def _change(old: str, new: str) -> None:
    changed(torch.cuda.graphs, "make_graphed_callables", old, new)
    torch.cuda.make_graphed_callables = torch.cuda.graphs.make_graphed_callables


def no_copy_in() -> None:
    _change("static_input_surface[i].copy_(inputs[i])", "pass")


def no_gradient_copy_in() -> None:
    _change("g.copy_(grad)", "pass")


def no_forward_launch() -> None:
    _change("fwd_graph.replay()", "pass")


def no_backward_launch() -> None:
    _change("bwd_graph.replay()", "pass")


def gradients_twice() -> None:
    _change("b.detach() if b is not None else b", "b.detach() * 2 if b is not None else b")


def old_forward() -> None:
    _change("if func.training == graph_training_state:", "if not func.training:")


def wrong_graph() -> None:
    _change("fwd_graphs[i],", "fwd_graphs[-1 - i],")


def pool_of_its_own() -> None:
    _change("with torch.cuda.graph(fwd_graph, pool=mempool):",
            "with torch.cuda.graph(fwd_graph):")
