"""A program ends in the middle of its replays, without destroying anything.

defect: os._exit() while replays are in flight: no handler runs, graphs and their pool are left
        to the driver.
sound:  waits for the last replay and resets the graph.
"""
import os
import sys

import torch

defect = sys.argv[1] == "defect"
x = torch.zeros(1 << 24, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(50):
        x.add_(1)
for _ in range(50):
    graph.replay()
print("leaving", flush=True)
if defect:
    os._exit(0)
torch.cuda.synchronize()
graph.reset()
