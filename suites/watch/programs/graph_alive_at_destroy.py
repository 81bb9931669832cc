"""The process group is destroyed while a graph with its collectives is alive.

defect: the graph is still referenced when destroy_process_group() is called; NCCL waits for the
        graph to be destroyed, for ever. A timer ends the program after twenty seconds.
sound:  the graph is reset before the process group goes.
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
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
if not defect:
    graph.reset()
    del graph
timer = threading.Timer(20, os._exit, args=(3,))
timer.daemon = True
timer.start()
dist.destroy_process_group()
timer.cancel()
print("destroyed")
