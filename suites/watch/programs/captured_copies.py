"""An optimizer that copies its whole state inside a captured step.

defect: each captured step rebuilds the master weights through a snapshot, five copies there and
        five back, although the update needs one copy.
sound:  the step updates the master weights in place and copies them once into the weights.
"""
import sys

import torch

defect = sys.argv[1] == "defect"


class MasterSGD(torch.optim.Optimizer):
    """SGD with fp32 master weights, reduced to what this program needs."""

    def __init__(self, weights):
        super().__init__(weights, {"lr": 1e-3})
        self.masters = [weight.detach().clone() for weight in weights]
        self.snapshots = [torch.empty_like(weight) for weight in weights]

    @torch.no_grad()
    def step(self):
        weights = self.param_groups[0]["params"]
        for weight, master, snapshot in zip(weights, self.masters, self.snapshots):
            for _ in range(5 if defect else 0):
                snapshot.copy_(master)
                master.copy_(snapshot)
            master.add_(weight.grad, alpha=-self.param_groups[0]["lr"])
            weight.copy_(master)


weights = [torch.randn(1024, 1024, device="cuda", requires_grad=True) for _ in range(8)]
for weight in weights:
    weight.grad = torch.randn_like(weight)
optimizer = MasterSGD(weights)
optimizer.step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    optimizer.step()
for _ in range(20):
    graph.replay()
torch.cuda.synchronize()
print("sum", weights[0].sum().item())
