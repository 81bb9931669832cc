"""Dropout draws from a generator of its own, and is not registered with the graph.

defect: the generator is not registered with the graph, so the capture is refused by PyTorch
        (which the program takes for a reason to run without graphs).
sound:  register_generator_state() before the capture.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
generator = torch.Generator(device="cuda")
generator.manual_seed(1)
x = torch.ones(4096, device="cuda")


def dropout():
    return x * (torch.rand(4096, device="cuda", generator=generator) > 0.1)


stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        dropout()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
if not defect:
    graph.register_generator_state(generator)
try:
    with torch.cuda.graph(graph):
        y = dropout()
    replay = graph.replay
except RuntimeError as error:
    print("no graph:", str(error).splitlines()[0])
    replay = dropout
for _ in range(20):
    replay()
torch.cuda.synchronize()
print("done")
