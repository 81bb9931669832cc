"""A second library of NCCL is loaded next to the one of PyTorch.

defect: an extension brings a libnccl of its own, here a copy of the file under another path. Each
        of the two has communicators of which the other knows nothing.
sound:  the extension loads the library that is there.
"""
import ctypes
import os
import shutil
import sys
import tempfile

import torch

defect = sys.argv[1] == "defect"
torch.cuda.init()
with open("/proc/self/maps") as maps:
    loaded = next(line.split()[-1] for line in maps if "libnccl.so" in line)
with tempfile.TemporaryDirectory() as folder:
    path = loaded
    if defect:
        path = shutil.copy(loaded, os.path.join(folder, "libnccl.so.2"))
    extension = ctypes.CDLL(path)  # never unloaded
    version = ctypes.c_int()
    extension.ncclGetVersion(ctypes.byref(version))
    x = torch.ones(4096, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    for _ in range(10):
        graph.replay()
    torch.cuda.synchronize()
print("version", version.value, "sum", y.sum().item())
