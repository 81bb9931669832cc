"""Faults in Transformer Engine's graphed callables. Their places are those of versions 2.9 to 2.20;
`changed` refuses another."""

from graphproof.planted.source import changed, replaced


def _change(old: str, new: str, times: int = 1) -> None:
    changed("transformer_engine.pytorch.graph", "_make_graphed_callables", old, new, times)


def te_inputs_not_copied() -> None:
    _change("static_input_surface[i].copy_(inputs[i])", "pass")


def te_gradients_not_copied() -> None:
    _change("g.copy_(grad)", "pass")


def te_gradient_scales_not_updated() -> None:
    _change("FP8GlobalStateManager.reduce_and_update_fp8_tensors(forward=False)", "pass")


def te_rounded_weights_kept() -> None:
    _change('skip_fp8_weight_update = not user_kwargs["is_first_microbatch"]',
            "skip_fp8_weight_update = True")


# A replay is launched on the stream that the caller names, or on the current one.
def te_forward_not_launched() -> None:
    _change("fwd_graph.replay()", "pass", times=2)


def te_backward_not_launched() -> None:
    _change("bwd_graph.replay()", "pass", times=2)


def te_callables_swap_graphs() -> None:
    _change("fwd_graphs[i],", "fwd_graphs[-1 - i],")


def te_pools_not_shared() -> None:
    _change("mempool = graph_pool_handle() if pool is None else pool", "mempool = None")


def te_warm_up_scales_kept() -> None:
    changed("transformer_engine.pytorch.graph", "make_graphed_callables",
            "restore_fp8_tensors(modules, saved_fp8_tensors)", "pass")


def te_resume_with_new_scales() -> None:
    replaced("transformer_engine.pytorch.module.base",
             "TransformerEngineBaseModule.set_extra_state",
             lambda function: lambda module, state: None)
