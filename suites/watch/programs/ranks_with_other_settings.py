"""Ranks run with different settings of NCCL, as when a launcher does not hand on the environment.

defect: only rank 0 has NCCL_PROTO=Simple, so its graphs hold other kernels than those of rank 1.
sound:  both have it.
"""
import os
import sys

defect = sys.argv[1] == "defect"
if os.environ["RANK"] == "0" or not defect:
    os.environ["NCCL_PROTO"] = "Simple"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
# With other protocols on each rank a collective may hang, so the ranks use groups of their own.
dist.init_process_group("gloo")
group = [dist.new_group([rank], backend="nccl") for rank in range(2)][dist.get_rank()]
x = torch.ones(1 << 16, device="cuda")
for _ in range(3):
    dist.all_reduce(x, group=group)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, capture_error_mode="thread_local"):
    dist.all_reduce(x, group=group)
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
graph.reset()
dist.barrier()
dist.destroy_process_group()
print("done")
