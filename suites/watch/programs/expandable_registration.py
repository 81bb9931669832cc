"""Expandable segments and captured collectives with NCCL's registration of captured buffers.

defect: PYTORCH_CUDA_ALLOC_CONF asks for expandable segments and NCCL_GRAPH_REGISTER is left on,
        which can hang or read wrong memory (NCCL registers addresses whose physical memory may
        change).
sound:  NCCL_GRAPH_REGISTER=0.
"""
import os
import sys

defect = sys.argv[1] == "defect"
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
os.environ["NCCL_GRAPH_REGISTER"] = "1" if defect else "0"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
dist.init_process_group("nccl")
x = torch.ones(1 << 20, device="cuda")
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
