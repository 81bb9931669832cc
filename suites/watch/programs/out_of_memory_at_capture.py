"""The private pool of a capture does not fit next to what eager holds.

defect: nearly all memory is taken when the capture begins; it fails, and the program runs
        eagerly.
sound:  what is not needed is given back before the capture.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
free, total = torch.cuda.mem_get_info()
hog = torch.empty(int(free * 0.97), dtype=torch.uint8, device="cuda")
x = torch.ones(1 << 20, device="cuda")
if not defect:
    del hog
    torch.cuda.empty_cache()


def step():
    return sum((x.repeat(256) * index).sum() for index in range(4))


graph = torch.cuda.CUDAGraph()
replay = graph.replay
try:
    with torch.cuda.graph(graph):
        kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(3)]
        y = step()
except torch.OutOfMemoryError as error:
    print("capture:", str(error)[:80])

    def replay():
        return x.sum()
for _ in range(20):
    replay()
torch.cuda.synchronize()
print("done")
