"""What Transformer Engine keeps of FP8 in places of the process."""

import dataclasses
import functools

from graphproof.subject import Captured


class Fp8State:
    """What Transformer Engine keeps of FP8 in one place of the process, apart for each arm.

    It lists the amax histories and scales of all modules there, and updates those of all models at
    once. Of two arms that run in turn, the one with graphs would capture the updates of both. A
    version that keeps them elsewhere is left as it is.
    """

    def __init__(self, used: bool):
        """`used`: whether the case has FP8; without it nothing is imported."""
        self._used, self._own = used, None
        self._outside = []

    def __enter__(self) -> None:
        if not self._used:
            return
        from transformer_engine.pytorch.quantization import FP8GlobalStateManager as manager
        outside = getattr(manager, "quantization_state", None)
        self._outside.append(outside)
        if outside is None:
            return
        if self._own is None:
            self._own = type(outside)()
        manager.quantization_state = self._own

    def __exit__(self, *unused) -> None:
        if not self._used:
            return
        from transformer_engine.pytorch.quantization import FP8GlobalStateManager as manager
        outside = self._outside.pop()
        if outside is None:
            return
        self._own = manager.quantization_state
        manager.quantization_state = outside

    def of(self, function):
        """`function`, run with the state of this arm."""
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self:
                return function(*args, **kwargs)
        return inside

    def of_capture(self, capture):
        """`capture`, a function that returns Captured or None; both it and what it captured run
        with the state of this arm."""
        @functools.wraps(capture)
        def inside(*args):
            with self:
                captured: Captured | None = capture(*args)
            return captured and dataclasses.replace(
                captured, step=self.of(captured.step), close=self.of(captured.close),
                leave=self.of(captured.leave))
        return inside


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
