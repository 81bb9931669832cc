"""Ranks run with different settings, as when a launcher does not hand on the environment.

defect: only rank 0 has CUDA_DEVICE_MAX_CONNECTIONS=1, so only its streams share one connection,
        on which the order of communication and computation relies.
sound:  both have it.
"""
import os
import sys

defect = sys.argv[1] == "defect"
if os.environ["RANK"] == "0" or not defect:
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"

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
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
graph.reset()
dist.destroy_process_group()
print("done")
