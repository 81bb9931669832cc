"""Two graphs share a memory pool and are replayed in another order than they were captured in.

defect: the second graph reuses the memory of what the first one left, so replaying the second
        first and reading the first one's output afterwards reads what the second wrote.
sound:  replayed in the order of capture, each output read before the next replay.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
x = torch.ones(1 << 20, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    a = x * 2
    a_sum = a.sum()
del a
with torch.cuda.graph(second, pool=first.pool()):
    b = x * 3
    b_sum = b.sum()
for _ in range(20):
    for graph in (second, first) if defect else (first, second):
        graph.replay()
torch.cuda.synchronize()
print("sums", a_sum.item(), b_sum.item())
