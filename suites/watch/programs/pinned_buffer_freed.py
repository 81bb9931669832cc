"""A graph copies from pinned host memory whose owner frees it after the capture.

defect: the buffer is given back to the driver; replays read memory that is gone.
sound:  the buffer lives as long as the graph.
"""
import ctypes
import sys

import torch

defect = sys.argv[1] == "defect"
cudart = ctypes.CDLL("libcudart.so.13")
pointer = ctypes.c_void_p()
torch.zeros(1, device="cuda")
assert cudart.cudaHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20), 0) == 0
there = torch.empty(1 << 18, device="cuda")


def copy_in():
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    error = cudart.cudaMemcpyAsync(ctypes.c_void_p(there.data_ptr()), pointer,
                                   ctypes.c_size_t(1 << 20), 1, stream)
    assert error == 0, error


graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    copy_in()
    total = there.sum()
graph.replay()
torch.cuda.synchronize()
if defect:
    cudart.cudaFreeHost(pointer)
for _ in range(10):
    graph.replay()
try:
    torch.cuda.synchronize()
    print("sum", total.item())
except RuntimeError as error:
    print("failed:", str(error).splitlines()[0])
    sys.stdout.flush()
    import os
    os._exit(1)
