"""Faults in torch.cuda.make_graphed_callables."""

from graphproof.planted.source import changed


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
