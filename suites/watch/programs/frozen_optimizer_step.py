"""A hand-written Adam passes the step number of its bias correction as a Python number.

defect: the number of the step at capture stays in the parameters of the captured kernels.
sound:  the step is a tensor on the device that the graph counts on.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
p = torch.ones(4096, device="cuda")
grad, m, v = torch.randn_like(p), torch.zeros_like(p), torch.zeros_like(p)
host_step, device_step = 0, torch.zeros((), device="cuda")


def update():
    m.lerp_(grad, 0.1)
    v.mul_(0.999).addcmul_(grad, grad, value=0.001)
    if defect:
        correction = 1 - 0.9 ** max(host_step, 1)
        p.sub_(1e-3 / correction * m / (v.sqrt() + 1e-8))
    else:
        device_step.add_(1)
        correction = 1 - torch.pow(0.9, device_step)
        p.sub_(1e-3 / correction * m / (v.sqrt() + 1e-8))


stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        host_step += 1
        update()
torch.cuda.current_stream().wait_stream(stream)
host_step += 1
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    update()
for _ in range(20):
    host_step += 1
    graph.replay()
print("p", p.sum().item())
