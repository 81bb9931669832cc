"""The nodes of a captured CUDA graph, read from the driver by ctypes."""

import ctypes
from collections import Counter

from graphproof.digest import Hash64

# CUgraphNodeType, as the census of the C++ rank program names them.
_TYPES = {0: "kernel", 1: "memcpy", 2: "memset", 3: "host", 4: "graph", 5: "empty",
          6: "event_wait", 7: "event_record", 8: "semaphore_signal", 9: "semaphore_wait",
          10: "mem_alloc", 11: "mem_free", 12: "batch_mem_op", 13: "conditional"}
_KERNEL = 0


class _KernelParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS of CUDA 12 (cuda.h)."""
    _fields_ = [("func", ctypes.c_void_p), ("grid", ctypes.c_uint * 3),
                ("block", ctypes.c_uint * 3), ("shared_bytes", ctypes.c_uint),
                ("params", ctypes.c_void_p), ("extra", ctypes.c_void_p),
                ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p)]


def _check(code: int, call: str) -> None:
    if code != 0:
        raise RuntimeError(f"CUDA error: {call} returned {code}")


def _kernel_name(driver, node) -> str:
    """The name of a kernel node; empty where the driver does not tell (before CUDA 12.3)."""
    params, name = _KernelParams(), ctypes.c_char_p()
    if driver.cuGraphKernelNodeGetParams_v2(node, ctypes.byref(params)) != 0:
        return ""
    if params.func and hasattr(driver, "cuFuncGetName") and \
            driver.cuFuncGetName(ctypes.byref(name), ctypes.c_void_p(params.func)) == 0:
        kernel = name.value or b""
    elif params.kernel and hasattr(driver, "cuKernelGetName") and \
            driver.cuKernelGetName(ctypes.byref(name), ctypes.c_void_p(params.kernel)) == 0:
        kernel = name.value or b""
    else:
        kernel = b""
    text = kernel.decode(errors="replace")
    if text.startswith("triton_"):
        # PyTorch's compiler measures which grid of such a kernel is fastest, and processes decide
        # differently: on two H200 (64, 1, 1) and (32, 1, 1) for a function of Transformer Engine.
        return text
    return f"{text} {tuple(params.grid)} {tuple(params.block)}"


def census_of(graph) -> tuple:
    """The number of nodes, the number by type, and a digest of types, kernels and their grids (but
    those of Triton) in the order of the capture. `graph` holds a capture with its template
    graph."""
    driver = ctypes.CDLL("libcuda.so.1")
    handle = ctypes.c_void_p(graph.raw_cuda_graph())
    count = ctypes.c_size_t()
    _check(driver.cuGraphGetNodes(handle, None, ctypes.byref(count)), "cuGraphGetNodes")
    if count.value == 0:
        return 0, {}, Hash64().hex()  # as of the graph with which PyTorch's compiler makes its pool
    nodes = (ctypes.c_void_p * count.value)()
    _check(driver.cuGraphGetNodes(handle, nodes, ctypes.byref(count)), "cuGraphGetNodes")
    types, hash64 = Counter(), Hash64()
    for node in nodes:
        kind = ctypes.c_int()
        node = ctypes.c_void_p(node)
        _check(driver.cuGraphNodeGetType(node, ctypes.byref(kind)), "cuGraphNodeGetType")
        types[_TYPES.get(kind.value, "other")] += 1
        hash64.add_text(_TYPES.get(kind.value, "other"))
        if kind.value == _KERNEL:
            hash64.add_text(_kernel_name(driver, node))
    return count.value, dict(types), hash64.hex()
