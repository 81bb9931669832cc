"""CUDA through PyTorch's Python, for arms that run on a GPU.

Whatever PyTorch does not offer is asked of the driver by ctypes, so that no compiler is needed.
"""

import contextlib
import ctypes
import gc
import os
import re
import warnings

import torch

from graphproof.device import cudnn, observed_graph
from graphproof.device.cuda_nodes import census_of

# Streams of PyTorch's pool, which hands them out in turn.
POOL_STREAMS = 32
# What PyTorch says where the host waits (c10/cuda/CUDAFunctions.cpp, warn_or_error_on_sync).
WAIT_WARNING = "called a synchronizing CUDA operation"
BYTE_OF_NAN = 0xFF  # in every floating type all bits set are a NaN


def pool_bytes() -> int:
    """Bytes that the allocator holds in graph pools."""
    return sum(segment["total_size"] for segment in torch.cuda.memory_snapshot()
               if tuple(segment["segment_pool_id"]) != (0, 0))


def _mapped_nccl() -> list:
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            match = re.search(r"\s(/\S*libnccl\.so\S*)$", line.rstrip())
            if match:
                found.add(match.group(1))
    return sorted(found)


def _version_text(number: int) -> str:
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class CudaDevice:
    """The GPU of this rank. Made after the ranks have voted to begin. Used from one thread."""

    name, torch_device, backend = "cuda", "cuda", "nccl"
    unobserved: dict = {}

    def __init__(self, gpu: int = 0):
        torch.cuda.set_device(gpu)
        torch.cuda.init()
        observed_graph.install(torch.cuda.CUDAGraph, census_of, pool_bytes, self.mark)
        self.generators = {"default": torch.cuda.default_generators[gpu]}
        self._others = None
        # How many clock cycles torch.cuda._sleep needs for a millisecond.
        self._cycles_per_ms = torch.cuda.get_device_properties(gpu).clock_rate \
            if hasattr(torch.cuda.get_device_properties(gpu), "clock_rate") else 1_500_000

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def empty_cache(self) -> None:
        """Not between two replays of a graph, which may use a workspace of cuBLAS."""
        # One for each stream that has multiplied anything; kept, it would look like an arm's leak.
        torch._C._cuda_clearCublasWorkspaces()
        self.return_memory()

    def return_memory(self) -> None:
        """Returns what no tensor owns and no graph's pool holds, also between replays."""
        gc.collect()
        torch.cuda.empty_cache()

    def memory(self) -> dict:
        """Bytes: of tensors, of the allocator, of graph pools, and in use on the device by any
        process. Waits for the device."""
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        return {"allocated": torch.cuda.memory_allocated(),
                "reserved": torch.cuda.memory_reserved(), "pool": pool_bytes(),
                "device": total - free}

    def overwrite_free_memory(self) -> int:
        """Fills what the allocator caches and no tensor owns with NaN, except graph pools. Returns
        the number of bytes. Not during a capture."""
        torch.cuda.synchronize()
        driver = ctypes.CDLL("libcuda.so.1")
        total = 0
        for segment in torch.cuda.memory_snapshot():
            if tuple(segment["segment_pool_id"]) != (0, 0):
                continue
            address = segment["address"]
            for block in segment["blocks"]:
                start = block.get("address", address)
                if block["state"] == "inactive":
                    code = driver.cuMemsetD8_v2(ctypes.c_uint64(start),
                                                ctypes.c_ubyte(BYTE_OF_NAN),
                                                ctypes.c_size_t(block["size"]))
                    if code != 0:
                        raise RuntimeError(f"CUDA error: cuMemsetD8 returned {code}")
                    total += block["size"]
                address += block["size"]
        torch.cuda.synchronize()
        return total

    def delay_work(self, others: bool, ms: float) -> int:
        """Delays what is enqueued next on the current stream, or on all other streams of PyTorch's
        pool and the default stream. Returns how many streams."""
        cycles = int(ms * self._cycles_per_ms)
        current = torch.cuda.current_stream()
        if not others:
            torch.cuda._sleep(cycles)
            return 1
        if self._others is None:
            streams = {stream.cuda_stream: stream
                       for stream in (torch.cuda.Stream() for _ in range(POOL_STREAMS))}
            streams[0] = torch.cuda.default_stream()
            self._others = streams
        delayed = 0
        for handle, stream in self._others.items():
            if handle != current.cuda_stream:
                with torch.cuda.stream(stream):
                    torch.cuda._sleep(cycles)
                delayed += 1
        return delayed

    @contextlib.contextmanager
    def waits_told(self, note):
        """A region in which note() is called where the host waits for the device, as far as PyTorch
        can tell: in calls of its own, such as item() and copies to the host."""
        before, show = torch.cuda.get_sync_debug_mode(), warnings.showwarning

        def told(message, *args, **kwargs):
            if WAIT_WARNING in str(message):
                note()
            else:
                show(message, *args, **kwargs)

        with warnings.catch_warnings():
            # This one each time; Python shows a warning of one place once.
            warnings.filterwarnings("always", message=f".*{WAIT_WARNING}")
            warnings.showwarning = told
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield
            finally:
                torch.cuda.set_sync_debug_mode(before)

    def mark(self, earlier=None):
        """A mark behind all work of the current stream so far: query() says whether that has ended,
        without a wait. `earlier`: a mark that nobody needs any more, which is moved there."""
        event = torch.cuda.Event() if earlier is None else earlier
        event.record()
        return event

    def busy_ms(self, head_start_ms: float, work) -> float | None:
        """The time between two events around `work`, enqueued behind a wait of `head_start_ms`, so
        that the host is ahead of the device. Waits for the device."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(int(head_start_ms * self._cycles_per_ms))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end)

    def settings(self) -> dict:
        """What the libraries report, for the line `config`."""
        allocator = torch.cuda.memory._snapshot()["allocator_settings"]
        mapped = _mapped_nccl()
        loaded = "none"
        if mapped:
            version = ctypes.c_int()
            if ctypes.CDLL(mapped[0]).ncclGetVersion(ctypes.byref(version)) == 0:
                loaded = _version_text(version.value)
        return {
            "graphs": "cuda",
            "allocator": "expandable" if allocator.get("expandable_segments") else "default",
            "nccl_compiled": ".".join(str(part) for part in torch.cuda.nccl.version()[:3]),
            "nccl_loaded": loaded, "libnccl_mapped": len(mapped), "libcudnn": cudnn.setting(),
            **{name: os.environ.get(name, "unset")
               for name in ("NCCL_GRAPH_REGISTER", "NCCL_ALGO", "NCCL_PROTO")},
        }
