"""What Transformer Engine keeps of FP8 in one place of the process when models have gone."""


def forget_fp8_state() -> None:
    """Empties Transformer Engine's list of amax histories and scales, to which every module of
    delayed scaling adds its own and from which none is taken when a model goes. Called at the end
    of an arm: a module that ran on would never see its scale updated again."""
    from transformer_engine.pytorch.quantization import FP8GlobalStateManager
    FP8GlobalStateManager.reset()
