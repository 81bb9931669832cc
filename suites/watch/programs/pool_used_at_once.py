"""Two graphs with one memory pool are replayed on two streams.

defect: nothing orders the streams, so both graphs may run at the same time and write their
        intermediate results over each other's.
sound:  each stream waits for the other one's replay.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
x = torch.ones(1 << 20, device="cuda")
streams = torch.cuda.Stream(), torch.cuda.Stream()
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    a = x * 2
    a_sum = a.sum()
del a
with torch.cuda.graph(second, pool=first.pool()):
    b = x * 3
    b_sum = b.sum()
torch.cuda.synchronize()
for _ in range(20):
    for graph, stream, other in (first, *streams), (second, *reversed(streams)):
        if not defect:
            stream.wait_stream(other)
        with torch.cuda.stream(stream):
            graph.replay()
torch.cuda.synchronize()
print("sums", a_sum.item(), b_sum.item())
