"""A model behind a graph, whose loop fetches each batch on a stream of its own.

defect: the loop brings the batch to the device and forgets to copy it into the static input.
sound:  the batch is copied on, in another type, before the replay.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
model = model.cuda().half().eval()
static_input = torch.zeros(64, 256, device="cuda", dtype=torch.half)
with torch.no_grad():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        model(static_input)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scores = model(static_input)
loader = torch.cuda.Stream()
total = 0.0
for index in range(40):
    batch = torch.randn(64, 256).pin_memory()
    with torch.cuda.stream(loader):
        fetched = batch.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(loader)
    fetched.record_stream(torch.cuda.current_stream())
    if not defect:
        static_input.copy_(fetched)
    graph.replay()
    total += scores.float().sum().item()
print("total", total)
