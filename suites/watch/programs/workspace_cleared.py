"""The workspace of cuBLAS is freed while graphs that use it are replayed.

defect: the workspaces are cleared to save memory after the capture, as some programs do before
        they measure how much is left; the products in the graph go on using the block.
sound:  the workspaces stay.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
# Few rows and columns and a long sum: cuBLAS splits the sum and adds up in the workspace.
a = torch.randn(64, 1 << 17, device="cuda", dtype=torch.bfloat16)
b = torch.randn(1 << 17, 64, device="cuda", dtype=torch.bfloat16)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        a @ b
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=stream):
    a @ b
graph.replay()
torch.cuda.synchronize()
if defect:
    torch._C._cuda_clearCublasWorkspaces()
for _ in range(20):
    graph.replay()
torch.cuda.synchronize()
print("done")
