"""A captured step copies its input on a side stream.

defect: the kernel that reads the input does not wait for the copy, only the end of the capture
        does, so a replay computes with the old input, the new one, or some of both.
sound:  the kernel's stream waits for the copy first.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
staging = torch.ones(1 << 20, device="cuda")
batch = torch.zeros(1 << 20, device="cuda")
side = torch.cuda.Stream()
torch.cuda.synchronize()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        batch.copy_(staging)
    if not defect:
        main.wait_stream(side)
    out = batch * 2
    main.wait_stream(side)
for step in range(20):
    staging.fill_(step)
    graph.replay()
torch.cuda.synchronize()
print("sum", out.sum().item())
