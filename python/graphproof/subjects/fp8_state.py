"""What Transformer Engine keeps of FP8 in places of the process when models have gone."""


def forget_fp8_state() -> None:
    """Empties Transformer Engine's list of amax histories and scales, to which every module of
    delayed scaling adds its own and from which none is taken when a model goes; and what its choice
    of an attention backend was made for, which refers to the scales of the layer that asked last.
    Called at the end of an arm: a module that ran on would never see its scale updated again."""
    from transformer_engine.pytorch.attention import dot_product_attention
    from transformer_engine.pytorch.quantization import FP8GlobalStateManager
    FP8GlobalStateManager.reset()
    # A private name: a version that keeps its choice elsewhere must still end its arms. What it
    # keeps there shows in the memory that is left.
    chosen = getattr(dot_product_attention, "_attention_backends", None)
    if chosen is not None:
        chosen["attention_params"] = None  # the next layer chooses again
