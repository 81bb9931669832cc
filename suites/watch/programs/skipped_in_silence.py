"""torch.compile is asked for CUDA graphs and takes none.

defect: the compiled function writes into a tensor that its caller made anew, for which PyTorch
        leaves its graphs out; a counter says so, and the program goes on without them.
sound:  the function returns its result instead.
"""
import sys

import torch

defect = sys.argv[1] == "defect"


@torch.compile(mode="reduce-overhead")
def f(x, total):
    if defect:
        total.add_(x.relu() * 2 + 1)
        return total * 2
    return (total + x.relu() * 2 + 1) * 2


x = torch.randn(4096, device="cuda")
for _ in range(12):
    torch.compiler.cudagraph_mark_step_begin()
    total = torch.zeros(4096, device="cuda")
    y = f(x, total)
torch.cuda.synchronize()
print("sum", y.sum().item())
