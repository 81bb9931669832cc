"""The device of tests: CPU tensors with the stand-in for CUDA graphs."""

import gc
import time

import torch
import torch.distributed as dist

from graphproof.device import observed_graph, stand_in


# How often tensors are counted again, and after which pause, where they have become more.
RECOUNTS, RECOUNT_PAUSE_S = 5, 0.01


def _census(graph) -> tuple:
    names = graph.names()
    from graphproof.digest import Hash64
    hash64 = Hash64()
    for name in names:
        hash64.add_text(name)
    return len(names), {"kernel": len(names)}, hash64.hex()


def _tensor_bytes() -> int:
    """Bytes of all storages that a live tensor of Python owns."""
    storages = {}
    for value in gc.get_objects():
        # type() and not isinstance(), which would run the properties of proxies.
        if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided:
            storage = value.untyped_storage()
            storages[storage._cdata] = storage.nbytes()
    return sum(storages.values())


class Ended:
    """A mark behind work that has ended: everything runs at once."""

    @staticmethod
    def query() -> bool:
        return True


class CpuDevice:
    """One for each process. Used from one thread."""

    name, torch_device, backend = "sim", "cpu", "gloo"
    unobserved = {
        "D19.capture_status": "stand_in: CPU tensors on a recorder of operators; no CUDA graph was "
                              "captured",
        "D56.races": "stand_in: it runs operators in program order and records no accesses",
        "D06.freed_memory": "stand_in: the allocator of the CPU does not tell which memory is free",
    }

    def __init__(self, gpu: int = 0):
        stand_in.install()
        observed_graph.install(stand_in.StandInGraph, _census, stand_in.pool_bytes, self.mark)
        self.generators = {"default": torch.default_generator}
        self._counted = 0  # bytes of tensors when they were last counted
        # The same after empty_cache(), and whether the next count is one of those.
        self._emptied, self._empties = 0, False
        # What the imports left is looked at no more: it holds no tensors of a case.
        gc.collect()
        gc.freeze()

    def synchronize(self) -> None:
        """Everything has run already."""

    def empty_cache(self) -> None:
        self.return_memory()
        # A model that has gone must not hide that a little of it stays for a moment.
        self._counted, self._empties = self._emptied, True

    def return_memory(self) -> None:
        gc.collect()

    def memory(self) -> dict:
        """Bytes: of tensors, of the allocator, of graph pools, and in use on the device. There is
        no cache between tensors and this device, so reserved and device are the tensors' bytes."""
        allocated = self._counted_bytes()
        return {"allocated": allocated, "reserved": allocated, "pool": stand_in.pool_bytes(),
                "device": allocated}

    def _counted_bytes(self) -> int:
        """Bytes of tensors. A thread of gloo lets go of those of a collective a moment after the
        wait for it has returned, so more bytes than before are counted again."""
        count = _tensor_bytes()
        for _ in range(RECOUNTS if dist.is_initialized() else 0):
            if count <= self._counted:
                break
            time.sleep(RECOUNT_PAUSE_S)
            count = _tensor_bytes()
        self._counted = count
        if self._empties:
            self._emptied, self._empties = count, False
        return count

    def overwrite_free_memory(self) -> int:
        return 0

    def delay_work(self, others: bool, ms: float) -> int:
        """Delays nothing, because nothing runs late here: 0 streams."""
        return 0

    def waits_told(self, note):
        """A region in which note() is called for each operator that needs a value on the host."""
        return stand_in.HostOperators(note)

    def mark(self, earlier: Ended | None = None) -> Ended:
        return Ended()

    def busy_ms(self, head_start_ms: float, work) -> float | None:
        return None

    def settings(self) -> dict:
        return {"graphs": "stand_in", "nccl_compiled": "none", "nccl_loaded": "none",
                "libnccl_mapped": 0}
