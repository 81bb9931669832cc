"""A graph reads a tensor that only the graph needs, and whose owner releases it.

defect: the mask is a local variable of the function that captures; its memory returns to the
        allocator, and the next tensor of that size is written over it.
sound:  the mask lives as long as the graph.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
x = torch.ones(4096, device="cuda")
graph = torch.cuda.CUDAGraph()
kept = []


def capture():
    mask = (torch.rand(4096, device="cuda") > 0.5).float()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        result = (x * mask).sum()
    if not defect:
        kept.append(mask)
    return result


result = capture()
for index in range(20):
    other = torch.full((4096,), float(index), device="cuda")  # may take the place of the mask
    graph.replay()
print("sum", result.item())
