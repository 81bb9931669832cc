"""One rank stops replaying, and the others wait inside a collective for ever.

defect: rank 1 waits for something else in the middle of training. Rank 0 hangs in the driver call
        that waits for its next replay: watch it with --hang-after 12s. A timer ends the program
        after a minute, where nothing notices the hang.
sound:  all ranks replay equally often.
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
timer = threading.Timer(60, os._exit, args=(3,))
timer.daemon = True
timer.start()
for step in range(10):
    if defect and step == 5 and dist.get_rank() == 1:
        threading.Event().wait()  # such as a data loader whose worker died
    graph.replay()
    torch.cuda.synchronize()
graph.reset()
dist.destroy_process_group()
timer.cancel()
print("done")
