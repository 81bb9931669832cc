"""torch.compile(mode="reduce-overhead") trains a small model with Inductor's graphs."""
import torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 512),
                            torch.nn.GELU(), torch.nn.Linear(512, 64)).cuda()
compiled = torch.compile(model, mode="reduce-overhead")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(30):
    torch.compiler.cudagraph_mark_step_begin()
    x = torch.randn(64, 256, device="cuda")
    target = torch.randint(0, 64, (64,), device="cuda")
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(compiled(x), target)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
print("loss", loss.item())
