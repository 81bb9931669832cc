"""An executable graph whose kernel runs in clusters is updated to a capture whose kernel does not.

defect: the driver accepts the update and goes on to launch the kernel in clusters of two blocks; a
        matrix product that counts on clusters of one then computes wrong numbers (mlx#2748).
sound:  the kernel of the second capture asks for clusters of one block.
"""
import ctypes
import sys

import torch

defect = sys.argv[1] == "defect"
cudart = ctypes.CDLL("libcudart.so.13")
CLUSTER_DIMENSION = 4  # cudaLaunchAttributeClusterDimension


def run_in_clusters(graph, blocks):
    """Of the one kernel of `graph`."""
    node, count = ctypes.c_void_p(), ctypes.c_size_t(1)
    assert cudart.cudaGraphGetNodes(ctypes.c_void_p(graph.raw_cuda_graph()), ctypes.byref(node),
                                    ctypes.byref(count)) == 0
    value = (ctypes.c_uint * 16)(blocks, 1, 1)
    assert cudart.cudaGraphKernelNodeSetAttribute(node, CLUSTER_DIMENSION, value) == 0


def capture(other):
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        x.add_(other)
    return graph


x = torch.ones(1 << 20, device="cuda")
others = [torch.ones(1 << 20, device="cuda") for _ in range(2)]
first = capture(others[0])
run_in_clusters(first, 2)
first.instantiate()
second = capture(others[1])
if not defect:
    run_in_clusters(second, 1)
info = (ctypes.c_void_p * 3)()
error = cudart.cudaGraphExecUpdate(ctypes.c_void_p(first.raw_cuda_graph_exec()),
                                   ctypes.c_void_p(second.raw_cuda_graph()), info)
assert error == 0, error
for _ in range(20):
    first.replay()
torch.cuda.synchronize()
print("x", x[0].item())
