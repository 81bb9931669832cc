"""Transformer Engine's own make_graphed_callables on two of its layers, trained for 20 steps, with
FP8 where the argument `fp8` asks for it."""
import sys

import torch
import transformer_engine.pytorch as te
from transformer_engine.common.recipe import DelayedScaling

use_fp8 = sys.argv[1:] == ["fp8"]
torch.manual_seed(1)
recipe = DelayedScaling(amax_history_len=4) if use_fp8 else None
layers = [te.LayerNormMLP(256, 1024, params_dtype=torch.bfloat16, device="cuda") for _ in range(2)]
samples = tuple((torch.randn(64, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True),)
                for _ in layers)
layers = te.make_graphed_callables(tuple(layers), samples, enabled=use_fp8, recipe=recipe)
optimizer = torch.optim.AdamW([p for layer in layers for p in layer.parameters()], lr=1e-3)
for step in range(20):
    y = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    target = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16)
    optimizer.zero_grad(set_to_none=True)
    with te.autocast(enabled=use_fp8, recipe=recipe):
        for layer in layers:
            y = layer(y)
    loss = torch.nn.functional.mse_loss(y, target)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
print("loss", loss.item())
