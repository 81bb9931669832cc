"""Collectives between machines are captured with a version of NCCL that dead-locks on them.

defect: the communicator reaches over two machines (NCCL is told that each rank is a machine of its
        own), and NCCL is older than 2.30.4. Replays may dead-lock; a timer ends the program then.
sound:  the ranks are on one machine, as they are.
"""
import os
import sys
import threading

defect = sys.argv[1] == "defect"
if defect:
    os.environ["NCCL_HOSTID"] = "machine-" + os.environ["RANK"]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
dist.init_process_group("nccl")
x = torch.ones(1 << 16, device="cuda")
for _ in range(3):
    dist.all_reduce(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, capture_error_mode="thread_local"):
    dist.all_reduce(x)
timer = threading.Timer(20, os._exit, args=(3,))
timer.daemon = True
timer.start()
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
graph.reset()
dist.destroy_process_group()
timer.cancel()
print("done")
