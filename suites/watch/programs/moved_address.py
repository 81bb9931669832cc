"""A parameter is replaced by a new tensor after the capture, as loading a checkpoint by assignment
does.

defect: the graph goes on with the old weights, and the optimizer updates the new ones.
sound:  the new values are copied into the captured parameter.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
torch.manual_seed(0)
model = torch.nn.Linear(256, 256, bias=False).cuda()
x = torch.randn(32, 256, device="cuda")
stream = torch.cuda.Stream()
with torch.cuda.stream(stream), torch.no_grad():
    for _ in range(3):
        model(x)
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    y = model(x)
graph.replay()
checkpoint = {"weight": torch.randn(256, 256, device="cuda")}
model.load_state_dict(checkpoint, assign=defect)
for _ in range(20):
    graph.replay()
print("as eager", torch.equal(y, model(x)))
