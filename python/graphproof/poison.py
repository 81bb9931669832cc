"""Poison: values that no kernel computes, written into outputs before a replay.

An output that the replay did not write still holds them. The patterns are those of
fixtures/inspect/poison.cpp: for floating types a NaN that no arithmetic produces, for all other
types the byte 0xA5.
"""

import torch

_FLOAT = 0xFFA5 - (1 << 16)  # the bytes a5 ff, as a signed word of 16 bits
_BYTE = 0xA5


def _patterned(tensor: torch.Tensor) -> torch.Tensor:
    # .data has the same bytes, no autograd history and a version counter of its own.
    flat = tensor.data.view(-1)
    wide = tensor.is_floating_point() and tensor.element_size() >= 2
    return flat.view(torch.int16 if wide else torch.uint8)


def poison(named: list) -> int:
    """Fills named tensors [(name, tensor)] on the current stream. Returns the number of bytes.
    ValueError for a tensor that is not contiguous. Not during a capture."""
    total = 0
    for name, tensor in named:
        if not tensor.is_contiguous():
            raise ValueError(f"poison: {name} is not contiguous")
        if tensor.numel() == 0:
            continue
        words = _patterned(tensor)
        words.fill_(_FLOAT if words.dtype == torch.int16 else _BYTE)
        total += tensor.numel() * tensor.element_size()
    return total


def canary_words(named: list) -> int:
    """How many elements still hold what poison() wrote. Waits for the current stream."""
    count = 0
    for _, tensor in named:
        if tensor.numel() == 0:
            continue
        words = _patterned(tensor.detach().contiguous())
        pattern = _FLOAT if words.dtype == torch.int16 else _BYTE
        count += int((words.view(tensor.numel(), -1) == pattern).all(dim=1).sum())
    return count
