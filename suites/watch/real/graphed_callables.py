"""PyTorch's own make_graphed_callables on the layers of a small model, trained for 30 steps."""
import torch

torch.manual_seed(1)
layers = [torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256),
                              torch.nn.Dropout(0.1)).cuda() for _ in range(4)]
samples = tuple((torch.randn(64, 256, device="cuda", requires_grad=True),) for _ in layers)
layers = torch.cuda.make_graphed_callables(tuple(layers), samples)
parameters = [p for layer in layers for p in layer.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
for step in range(30):
    x = torch.randn(64, 256, device="cuda", requires_grad=True)
    target = torch.randn(64, 256, device="cuda")
    optimizer.zero_grad(set_to_none=True)
    y = x
    for layer in layers:
        y = layer(y)
    loss = torch.nn.functional.mse_loss(y, target)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
print("loss", loss.item())
