"""A loop keeps something of every replay.

defect: each step appends the result, a copy of it on the host and an open file to a list, so memory
        of the device, of the host and descriptors run out in a long run.
sound:  only the last four steps are kept.
"""
import collections
import os
import sys

import torch

defect = sys.argv[1] == "defect"
x = torch.zeros(1 << 18, device="cuda")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2

history = collections.deque(maxlen=None if defect else 4)
for step in range(400):
    x.fill_(step)
    graph.replay()
    history.append((y.clone(), y.cpu(), open(os.devnull)))
torch.cuda.synchronize()
print("kept", len(history))
