"""Another thread pins memory while the main thread captures in the mode `global`.

defect: a data loader's thread allocates pinned memory during the capture, which the driver
        refuses to it, and the capture is lost.
sound:  the thread has pinned its buffers before the capture begins.
"""
import sys
import threading

import torch

defect = sys.argv[1] == "defect"
x = torch.ones(4096, device="cuda")
go, done = threading.Event(), threading.Event()


def loader():
    if defect:
        go.wait()
    try:
        torch.empty(40_000_000, pin_memory=True)
    except RuntimeError as error:
        print("loader:", str(error).splitlines()[0])
    done.set()


thread = threading.Thread(target=loader)
thread.start()
if not defect:
    done.wait()
graph = torch.cuda.CUDAGraph()
replay = graph.replay
try:
    with torch.cuda.graph(graph):
        y = x * 2
        go.set()
        done.wait()
        z = y + 1
except RuntimeError as error:
    print("capture:", str(error).splitlines()[0])

    def replay():
        return x * 2 + 1

thread.join()
for _ in range(20):
    replay()
torch.cuda.synchronize()
print("done")
