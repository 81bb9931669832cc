"""FSDP2 (fully_shard) over two ranks: a warm step, then one forward and backward captured and
replayed with the optimizer outside the graph."""
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
dist.init_process_group("nccl")
torch.manual_seed(1)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU())
                              for _ in range(4)]).cuda()
for block in model:
    fully_shard(block, reshard_after_forward=False)
fully_shard(model, reshard_after_forward=False)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
static = torch.randn(64, 512, device="cuda")


def forward_backward():
    loss = model(static).pow(2).mean()
    loss.backward()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(4):
        optimizer.zero_grad(set_to_none=False)
        forward_backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
replays = 0
try:
    with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
        loss = forward_backward()
    captured = True
except RuntimeError as error:
    print("capture failed:", str(error).splitlines()[0], flush=True)
    captured = False
for step in range(20):
    static.copy_(torch.randn(64, 512, device="cuda"))
    optimizer.zero_grad(set_to_none=False)
    if captured:
        graph.replay()
    else:
        forward_backward()
    optimizer.step()
torch.cuda.synchronize()
print("captured", captured, flush=True)
if captured:
    graph.reset()
dist.destroy_process_group()
