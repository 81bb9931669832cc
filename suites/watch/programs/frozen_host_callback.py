"""A host function that hands out work is launched inside the captured region.

defect: the capture holds a host node that runs a Python function: it runs in every replay on a
        driver thread, with the arguments of the capture.
sound:  the host function runs outside the graph.
"""
import ctypes
import sys

import torch

defect = sys.argv[1] == "defect"
cudart = ctypes.CDLL("libcudart.so.13")
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
seen = []
callback = CALLBACK(lambda data: seen.append(data))
x = torch.zeros(1024, device="cuda")


def step(number):
    x.add_(1)
    if defect or not torch.cuda.is_current_stream_capturing():
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        error = cudart.cudaLaunchHostFunc(stream, callback, ctypes.c_void_p(number))
        assert error == 0, error


graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step(1)
for number in range(2, 20):
    graph.replay()
    if not defect:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        cudart.cudaLaunchHostFunc(stream, callback, ctypes.c_void_p(number))
torch.cuda.synchronize()
print("callbacks", len(seen), "different arguments", len(set(seen)))
