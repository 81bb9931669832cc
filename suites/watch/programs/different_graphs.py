"""Ranks of one data parallel group capture different steps.

defect: rank 1 has one more operation in its captured step, because a setting of the first rank
        did not reach it.
sound:  every rank captures the same step.
"""
import os
import sys

import torch
import torch.distributed as dist

defect = sys.argv[1] == "defect"
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
dist.init_process_group("nccl")
x = torch.ones(1 << 16, device="cuda")


def step():
    y = x * 2
    if defect and dist.get_rank() == 1:
        y = y.clamp(max=10)
    dist.all_reduce(y)
    return y


for _ in range(3):
    step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, capture_error_mode="thread_local"):
    y = step()
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
graph.reset()
dist.destroy_process_group()
print("done")
