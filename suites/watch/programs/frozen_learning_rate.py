"""A captured optimizer step under a schedule of the learning rate.

defect: the learning rate is a Python number, so the kernels of the graph keep the one of the
        capture, whatever the schedule says.
sound:  it is a tensor on the device, into which the schedule writes.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
weight = torch.ones(4096, device="cuda", requires_grad=True)
weight.grad = torch.ones_like(weight)
rate = 0.1 if defect else torch.tensor(0.1, device="cuda")
optimizer = torch.optim.Adam([weight], lr=rate, capturable=True)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        optimizer.step()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    optimizer.step()
for _ in range(20):
    graph.replay()
    schedule.step()
torch.cuda.synchronize()
print("sum", weight.sum().item())
