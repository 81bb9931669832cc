"""Ranks replay the graph of a step with a collective an unequal number of times.

defect: rank 1 has one batch fewer and ends its loop early; the last replay of rank 0 waits for
        it. A timer ends the program after fifteen seconds.
sound:  the number of steps is agreed on before the loop.
"""
import os
import sys
import threading

import torch
import torch.distributed as dist

defect = sys.argv[1] == "defect"
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
dist.init_process_group("nccl")
x = torch.ones(1 << 16, device="cuda")
for _ in range(3):
    dist.all_reduce(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, capture_error_mode="thread_local"):
    dist.all_reduce(x)
steps = 10 - (1 if defect and dist.get_rank() == 1 else 0)
timer = threading.Timer(15, os._exit, args=(3,))
timer.daemon = True
timer.start()
for _ in range(steps):
    graph.replay()
torch.cuda.synchronize()
timer.cancel()
graph.reset()
dist.destroy_process_group()
print("done")
