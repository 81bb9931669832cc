"""A captured step reads its batch from a static input that the loop forgets to fill.

defect: the loop assigns the new batch to a Python name, so the buffer that the graph reads
        keeps the batch of the capture for ever.
sound:  each batch is copied into the static input before the replay.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
torch.manual_seed(0)
model = torch.nn.Linear(64, 64).cuda()
static_input = torch.randn(32, 64, device="cuda")


def step():
    for parameter in model.parameters():
        parameter.grad.zero_()
    loss = model(static_input).pow(2).mean()
    loss.backward()
    return loss


for parameter in model.parameters():
    parameter.grad = torch.zeros_like(parameter)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for index in range(20):
    batch = torch.randn(32, 64).pin_memory()
    if defect:
        fresh_input = batch.cuda(non_blocking=True)  # the graph does not read this tensor
    else:
        static_input.copy_(batch, non_blocking=True)
    graph.replay()
    optimizer.step()
print("loss", loss.item())
