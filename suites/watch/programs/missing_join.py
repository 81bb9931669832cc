"""A captured step forks to a side stream and does not wait for it.

defect: the capture ends with work that was forked and never joined: the driver refuses it, and
        the program goes on without a graph.
sound:  the capturing stream waits for the side stream.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
x = torch.ones(1 << 20, device="cuda")
side = torch.cuda.Stream()


def step():
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        y = x * 2
    z = x + 1
    if not defect:
        main.wait_stream(side)
    return y, z


graph = torch.cuda.CUDAGraph()
replay = graph.replay
try:
    with torch.cuda.graph(graph):
        out = step()
except RuntimeError as error:
    print("capture:", str(error).splitlines()[0])
    replay = step
for _ in range(20):
    replay()
torch.cuda.synchronize()
print("done")
