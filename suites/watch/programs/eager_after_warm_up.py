"""A wrapper that replays a graph falls back to eager for good after an exception.

defect: one batch of another shape makes the wrapper switch to eager, and nothing switches it
        back.
sound:  a batch of another shape runs eagerly, the next ones replay again.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(20)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(32, 64, device="cuda")


def forward_backward(batch):
    loss = model(batch).pow(2).mean()
    loss.backward()


stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        forward_backward(x)
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for parameter in model.parameters():
        parameter.grad.zero_()
    forward_backward(x)
eager = False
for index in range(60):
    batch = torch.randn(16 if index == 20 else 32, 64, device="cuda")
    fits = batch.shape == x.shape
    if not fits and defect:
        eager = True
    if fits and not eager:
        x.copy_(batch)
        graph.replay()
    else:
        optimizer.zero_grad(set_to_none=False)
        forward_backward(batch)
    optimizer.step()
torch.cuda.synchronize()
print("done")
