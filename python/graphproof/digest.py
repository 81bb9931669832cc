"""Digests of tensors: 16 hex digits over names, types, shapes and bytes in order.

They are the first 64 bits of a SHA-256, which a CPU computes at more than a gigabyte a second. The
C++ rank program has another hash (fixtures/tensors/hash.h): digests are compared within a case,
whose ranks all run one program.
"""

import ctypes
import hashlib
import struct

import torch

# at::toString(ScalarType)
_TYPE_NAMES = {
    torch.uint8: "Byte", torch.int8: "Char", torch.int16: "Short", torch.int32: "Int",
    torch.int64: "Long", torch.float16: "Half", torch.float32: "Float", torch.float64: "Double",
    torch.bool: "Bool", torch.bfloat16: "BFloat16", torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble", torch.float8_e5m2: "Float8_e5m2",
    torch.float8_e4m3fn: "Float8_e4m3fn",
}


class Hash64:
    """The hash of everything added so far. Used from one thread."""

    def __init__(self):
        self._sha = hashlib.sha256()

    def add_number(self, number: int) -> None:
        self._sha.update(struct.pack("<q", number))

    def add_bytes(self, data) -> None:
        """Adds the bytes and their number, so that "ab", "c" differs from "a", "bc"."""
        self.add_number(len(data))
        self._sha.update(data)

    def add_text(self, text: str) -> None:
        self.add_bytes(text.encode())

    def add_tensor_bytes(self, host: torch.Tensor) -> None:
        """Adds the bytes of a contiguous host tensor. Same result as add_bytes() of them."""
        size = host.numel() * host.element_size()
        self.add_bytes((ctypes.c_char * size).from_address(host.data_ptr()) if size else b"")

    def hex(self) -> str:
        return self._sha.hexdigest()[:16]


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
