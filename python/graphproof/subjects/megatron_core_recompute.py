"""Counts what Megatron-Core runs under its checkpoints (graphproof/recomputes.py)."""

import functools
import importlib

from graphproof.recomputes import counted


def count_recomputes() -> None:
    """Has the functions counted that Megatron-Core's modules hand to a checkpoint, once a process.
    They look the checkpoints up in these places in each call."""
    from megatron.core import tensor_parallel
    from megatron.core.extensions.transformer_engine import HAVE_TE
    if getattr(tensor_parallel.checkpoint, "counts", False):
        return
    _count(tensor_parallel, 0)
    _count(tensor_parallel.CheckpointWithoutOutput, 1)
    if HAVE_TE:
        _count(importlib.import_module("transformer_engine.pytorch.distributed"), 0)


def _count(owner, place: int) -> None:
    """Has argument `place` of `owner.checkpoint` counted."""
    checkpoint = owner.checkpoint

    @functools.wraps(checkpoint)
    def counting(*args, **kwargs):
        return checkpoint(*args[:place], counted(args[place]), *args[place + 1:], **kwargs)

    counting.counts = True
    owner.checkpoint = counting
