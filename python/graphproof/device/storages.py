"""The memory that a capture reads or writes and does not own, held by weak references.

A CUDA graph keeps addresses and no owners. What a weak reference to a storage says is therefore
exactly what a replay depends on: whether the owner of the capture is still there.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class WeakStorage:
    """A storage that somebody else owns. Same storage, same `pointer` and `size` in bytes."""

    def __init__(self, storage: torch.UntypedStorage):
        self.pointer, self.size = storage.data_ptr(), storage.nbytes()
        self._reference = storage._weak_ref()

    def __del__(self):
        torch.UntypedStorage._free_weak_ref(self._reference)

    def expired(self) -> bool:
        return torch.UntypedStorage._expired(self._reference)

    def storage(self) -> torch.UntypedStorage | None:
        """The storage, or None if its last owner has gone."""
        return torch.UntypedStorage._new_with_weak_ptr(self._reference)


def tensors_in(*values) -> list:
    """The tensors among the arguments or results of operators, which nest them in tuples, lists
    and dicts alone. PyTorch's own walk through nests takes longer than a small operator."""
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += tensors_in(*value)
        elif isinstance(value, dict):
            found += tensors_in(*value.values())
    return found


def has_storage(tensor: torch.Tensor) -> bool:
    """Whether it is a plain tensor. Of a subclass, operators on its parts are seen instead."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided


class Made(dict):
    """What the captures of one memory pool made: StorageImpl address -> WeakStorage.

    A graph keeps this memory for as long as one of the pool lives, whatever its tensors do: a
    backward graph reads activations whose tensors went with the capture of the forward graph. The
    weak references keep an address from being given to another storage.
    """

    def add(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self:
            self[storage._cdata] = WeakStorage(storage)


class Storages:
    """The storages of one graph: those that captures of its pool made, and all others that it
    uses."""

    def __init__(self, made: Made):
        self.made = made
        self.external = {}     # StorageImpl address -> WeakStorage

    def saw_inputs(self, tensors) -> None:
        for tensor in tensors:
            if has_storage(tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.made and storage._cdata not in self.external \
                        and storage.nbytes() > 0:
                    self.external[storage._cdata] = WeakStorage(storage)

    def saw_outputs(self, tensors) -> None:
        for tensor in tensors:
            if has_storage(tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.external:
                    self.made.add(storage)

    def freed(self) -> list:
        """The external blocks whose owner has gone: "0x7f0000000200, 4096 bytes"."""
        return [f"0x{block.pointer:x}, {block.size} bytes"
                for block in self.external.values() if block.expired()]


class SeenOperands(TorchDispatchMode):
    """Notes the operands of every operator of PyTorch while a capture is open.

    What a library does past PyTorch's operators is not seen.
    """

    def __init__(self, made: Made):
        super().__init__()
        self.storages = Storages(made)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.storages.saw_inputs(tensors_in(args, kwargs))
        result = function(*args, **kwargs)
        self.storages.saw_outputs(tensors_in(result))
        return result
