"""A graph is captured on one stream while the work goes to another.

defect: the work is enqueued on a stream that does not take part in the capture, so the graph is
        empty and its replays do nothing.
sound:  the work is enqueued on the capturing stream.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
x = torch.zeros(4096, device="cuda")
elsewhere = torch.cuda.Stream()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, capture_error_mode="relaxed"):
    if defect:
        with torch.cuda.stream(elsewhere):
            x.add_(1)
    else:
        x.add_(1)
for _ in range(20):
    graph.replay()
torch.cuda.synchronize()
print("x", x[0].item())
