"""Gradient accumulators are made on the default stream and the step is captured on another one.

defect: a backward on the default stream before the capture binds the accumulators of the
        parameters to that stream; the captured backward then involves the default stream.
sound:  the first backward runs on the stream that captures.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
torch.manual_seed(0)
model = torch.nn.Linear(64, 64).cuda()
x = torch.randn(32, 64, device="cuda")
stream = torch.cuda.Stream()
accumulators = []


def keep_accumulators():
    for parameter in model.parameters():
        accumulators.append(parameter.view_as(parameter).grad_fn.next_functions[0][0])


def step():
    loss = model(x).pow(2).mean()
    loss.backward()
    return loss


if defect:
    keep_accumulators()
    step()
torch.cuda.synchronize()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    if not defect:
        keep_accumulators()
    for _ in range(3):
        step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
replay = graph.replay
try:
    with torch.cuda.graph(graph, stream=stream):
        step()
except RuntimeError as error:
    print("capture:", str(error).splitlines()[0])
    replay = step
for _ in range(20):
    replay()
torch.cuda.synchronize()
print("done")
