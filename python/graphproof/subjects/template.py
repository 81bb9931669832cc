"""A subject of your own: graphproof runs it eagerly and from CUDA graphs, and compares.

Run it:  ./graphproof repro subject=script,impl=manual,env.GRAPHPROOF_SCRIPT=/full/path/of/this/file
Change the model, the step and the inputs below; everything else can stay.
"""

import torch
from torch import nn

from graphproof import Case, Subject


def build(case: Case) -> Subject:
    """Called once for each arm of the case, with the seeds of Python and PyTorch set before."""
    # `case` has the value of every axis. The model needs as many counted layers as case.layers.
    layers = [nn.Sequential(nn.Linear(case.hidden, case.hidden), nn.GELU())
              for _ in range(case.layers)]
    model = nn.Sequential(*layers, nn.Linear(case.hidden, 1)).to(case.device)

    # A captured optimizer reads its learning rate from a tensor: graphproof writes another rate
    # into it before each step, and a number would be frozen at the capture.
    rate = torch.tensor(0.1, device=case.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, fused=True)

    def batch(step: int) -> dict:
        """The inputs of one step, on the case's device. The same step gives the same inputs."""
        drawn = torch.Generator().manual_seed(case.seed + step)
        shape = (case.microbatches, case.microbatch_size, case.hidden)
        return {"x": torch.randn(shape, generator=drawn).to(case.device)}

    def step(inputs: dict) -> torch.Tensor:
        """Forward and backward of every microbatch, then the optimizer. Returns the losses, one for
        each microbatch. Gradients are cleared at the beginning, because they are compared later."""
        optimizer.zero_grad(set_to_none=False)
        losses = []
        for x in inputs["x"]:
            loss = model(x).square().mean()
            (loss / len(inputs["x"])).backward()
            losses.append(loss.detach())
        optimizer.step()
        return torch.stack(losses)

    # Without `capture` the whole step becomes one graph, and inputs are copied into it. To capture
    # in another way, write capture(step, batch) -> graphproof.Captured and pass it here.
    return Subject(model=model, step=step, batch=batch, optimizer=optimizer, layers=layers)
