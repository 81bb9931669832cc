"""Graphs with matrix products are captured on a thread that ends before they are replayed.

defect: the thread's cuBLAS handle owns the workspace that the captured products use. Another
        thread gets the handle of the pool and with it the same workspace, and its graph runs at
        the same time.
sound:  one thread captures both graphs, and they are replayed one after the other.
"""
import sys
import threading

import torch

defect = sys.argv[1] == "defect"
a = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
graphs = [torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()]
streams = [torch.cuda.Stream(), torch.cuda.Stream()]
shared = torch.cuda.Stream()


def capture(index):
    stream = shared
    with torch.cuda.stream(stream):
        for _ in range(3):
            a @ a
    torch.cuda.synchronize()
    with torch.cuda.graph(graphs[index], stream=stream, capture_error_mode="thread_local"):
        a @ a


for index in range(2):
    if defect:
        thread = threading.Thread(target=capture, args=(index,))
        thread.start()
        thread.join()
    else:
        capture(index)
for _ in range(20):
    for index in range(2):
        with torch.cuda.stream(streams[index if defect else 0]):
            graphs[index].replay()
torch.cuda.synchronize()
print("done")
