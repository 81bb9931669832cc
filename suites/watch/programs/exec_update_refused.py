"""An executable graph is updated from a new capture whose shape of work differs.

defect: the second capture has another number of nodes; the driver refuses the update, the
        program does not look at the result, and replays go on with the first capture.
sound:  the second capture differs in addresses only, and the result is checked.
"""
import ctypes
import sys

import torch

defect = sys.argv[1] == "defect"
cudart = ctypes.CDLL("libcudart.so.13")
x = torch.ones(4096, device="cuda")
others = [torch.ones(4096, device="cuda") for _ in range(3)]
first = torch.cuda.CUDAGraph(keep_graph=True)
with torch.cuda.graph(first):
    x.add_(others[0])
first.instantiate()
second = torch.cuda.CUDAGraph(keep_graph=True)
with torch.cuda.graph(second):
    x.add_(others[1])
    if defect:
        x.mul_(2)


class UpdateResult(ctypes.Structure):
    _fields_ = [("result", ctypes.c_int), ("node", ctypes.c_void_p), ("from_node", ctypes.c_void_p)]


info = UpdateResult()
error = cudart.cudaGraphExecUpdate(ctypes.c_void_p(first.raw_cuda_graph_exec()),
                                   ctypes.c_void_p(second.raw_cuda_graph()), ctypes.byref(info))
if not defect:
    assert error == 0, (error, info.result)
cudart.cudaGetLastError()
for _ in range(20):
    first.replay()
torch.cuda.synchronize()
print("update", error, info.result, "x", x[0].item())
