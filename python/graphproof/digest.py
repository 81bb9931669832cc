"""Digests of tensors, bit for bit those of fixtures/inspect/tensor_digest.h.

A digest is 16 hex digits over names, types, shapes and bytes in order. The hash is that of
fixtures/tensors/hash.h: each word of 8 bytes is mixed before it enters the state.
"""

import ctypes
import hashlib
import struct

import torch

_MASK = (1 << 64) - 1
_WORD_1, _WORD_2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_STATE_ADD = 0x52DCE729
_START = 0x9E3779B97F4A7C15

# at::toString(ScalarType)
_TYPE_NAMES = {
    torch.uint8: "Byte", torch.int8: "Char", torch.int16: "Short", torch.int32: "Int",
    torch.int64: "Long", torch.float16: "Half", torch.float32: "Float", torch.float64: "Double",
    torch.bool: "Bool", torch.bfloat16: "BFloat16", torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble", torch.float8_e5m2: "Float8_e5m2",
    torch.float8_e4m3fn: "Float8_e4m3fn",
}

# Arms repeat each other's steps byte for byte, and the hash is slow in Python. The state after some
# words is therefore kept by the state before them and their SHA-256, which no two contents share.
LEAST_KEPT_WORDS, MOST_KEPT = 256, 1 << 15


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


class Hash64:
    """The hash of everything added so far. Used from one thread."""

    _after = {}  # (state, SHA-256 of words) -> state

    def __init__(self):
        self._state = _START

    def _word(self, word: int) -> None:
        mixed = (word & _MASK) * _WORD_1 & _MASK
        mixed = (mixed << 31 | mixed >> 33) * _WORD_2 & _MASK
        state = self._state ^ mixed
        self._state = ((state << 27 | state >> 37) & _MASK) * 5 + _STATE_ADD & _MASK

    def add_number(self, number: int) -> None:
        self._word(number)

    def add_bytes(self, data: bytes) -> None:
        """Adds the bytes and their number, so that "ab", "c" differs from "a", "bc"."""
        self._word(len(data))
        whole = len(data) // 8 * 8
        for (word,) in struct.iter_unpack("<Q", data[:whole]):
            self._word(word)
        if whole < len(data):
            self._word(int.from_bytes(data[whole:], "little"))

    def add_text(self, text: str) -> None:
        self.add_bytes(text.encode())

    def add_tensor_bytes(self, host: torch.Tensor) -> None:
        """Adds the bytes of a contiguous host tensor. Same result as add_bytes() of them."""
        flat = host.reshape(-1).view(torch.uint8)
        size = flat.numel()
        self._word(size)
        whole = size // 8 * 8
        if whole:
            # A clone, because a view of 8 bytes needs an aligned start.
            self._words(flat[:whole].clone().view(torch.int64))
        if whole < size:
            self._word(int.from_bytes(bytes(flat[whole:].tolist()), "little"))

    def _words(self, words: torch.Tensor) -> None:
        """Adds words [n] int64 in host memory."""
        if words.numel() < LEAST_KEPT_WORDS:
            self._state = self._state_after(words)
            return
        content = (ctypes.c_char * (8 * words.numel())).from_address(words.data_ptr())
        key = self._state, hashlib.sha256(content).digest()
        if key not in Hash64._after:
            if len(Hash64._after) >= MOST_KEPT:
                Hash64._after.clear()
            Hash64._after[key] = self._state_after(words)
        self._state = Hash64._after[key]

    def _state_after(self, words: torch.Tensor) -> int:
        # The mixing of a word depends on that word alone, so it runs on all words at once.
        words = words * _signed(_WORD_1)
        words = (words << 31) | ((words >> 33) & ((1 << 31) - 1))
        state, mask, add = self._state, _MASK, _STATE_ADD
        for word in (words * _WORD_2).tolist():
            state ^= word & mask
            state = ((state << 27 | state >> 37) & mask) * 5 + add & mask
        return state

    def hex(self) -> str:
        h = self._state
        h ^= h >> 33
        h = h * 0xFF51AFD7ED558CCD & _MASK
        h ^= h >> 33
        h = h * 0xC4CEB9FE1A85EC53 & _MASK
        return f"{h ^ h >> 33:016x}"


def host_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous copy in host memory that does not follow its original. Waits for the device."""
    whole = tensor.detach()
    if whole.device.type == "cpu":
        return whole.clone(memory_format=torch.contiguous_format)
    return whole.contiguous().cpu()


def on_host(named: list) -> list:
    """Copies of named tensors [(name, tensor)] in host memory. Not during a capture."""
    return [(name, host_copy(tensor)) for name, tensor in named]


def digest(named: list) -> str:
    """The digest of named tensors [(name, tensor)] on any device. Not during a capture."""
    hash64 = Hash64()
    for name, tensor in named:
        hash64.add_text(name)
        hash64.add_text(_TYPE_NAMES.get(tensor.dtype, str(tensor.dtype)))
        hash64.add_number(tensor.dim())
        for size in tensor.shape:
            hash64.add_number(size)
        host = tensor if tensor.device.type == "cpu" else tensor.detach().cpu()
        hash64.add_tensor_bytes(host.detach().contiguous())
    return hash64.hex()


def digest_of(tensor: torch.Tensor) -> str:
    """The digest of one tensor's bytes, without its type and shape."""
    hash64 = Hash64()
    hash64.add_tensor_bytes(tensor.detach().cpu().contiguous())
    return hash64.hex()
