"""A training step of a small GPT, eager and from CUDA graphs, with PyTorch alone.

    python3 reproducer.py                                 # one rank
    torchrun --nproc-per-node N reproducer.py             # N ranks
    ... --device cpu                                      # without a GPU: the eager steps only

Prints the loss of every step of both. Exit code 0: all losses and parameters are the same, bit for
bit. 1: they differ. 124: it did not end within two minutes (a hang; the stacks are printed).
torchrun turns every failure into 1.
"""

import argparse
import contextlib
import faulthandler
import json
import math
import os
import sys
import threading

CASE = json.loads(r"""{}""")
# Some of these are read when CUDA, cuBLAS or NCCL is loaded.
os.environ.update(CASE.get("environment", {}))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

HANG_S = 120


class Attention(nn.Module):
    def __init__(self, case):
        super().__init__()
        hidden, length = case["hidden"], case["seq_length"]
        self.heads, self.width = case["heads"], hidden // case["heads"]
        self.norm = norm_of(case)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=case["qkv_bias"])
        self.out = nn.Linear(hidden, hidden, bias=case["linear_bias"])
        self.dropout = nn.Dropout(0.1 if case["dropout"] else 0.0)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.register_buffer("later", later, persistent=False)

    def forward(self, x):
        x = one_path(x)
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(self.width)).float()
        shares = scores.masked_fill(self.later, float("-inf")).softmax(-1).to(v.dtype)
        return self.dropout(self.out((shares @ v).transpose(1, 2).reshape(b, s, h)))


class Mlp(nn.Module):
    def __init__(self, case):
        super().__init__()
        hidden, ffn = case["hidden"], case["ffn"] or 4 * case["hidden"]
        self.gated = case["activation"] == "swiglu"
        self.norm = norm_of(case)
        self.up = nn.Linear(hidden, ffn * (2 if self.gated else 1), bias=case["linear_bias"])
        self.down = nn.Linear(ffn, hidden, bias=case["linear_bias"])
        self.dropout = nn.Dropout(0.1 if case["dropout"] else 0.0)

    def forward(self, x):
        x = self.up(self.norm(one_path(x)))
        if self.gated:
            gate, x = x.chunk(2, -1)
            x = F.silu(gate) * x
        else:
            x = F.gelu(x)
        return self.dropout(self.down(x))


class Layer(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.attn, self.mlp = Attention(case), Mlp(case)

    def forward(self, x):
        x = x + self.attn(x)
        return x + self.mlp(x)


class Gpt(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.tokens = nn.Embedding(case["vocab"], case["hidden"])
        self.layers = nn.ModuleList(Layer(case) for _ in range(case["layers"]))
        self.norm = norm_of(case)
        self.head = nn.Linear(case["hidden"], case["vocab"], bias=False)

    def forward(self, tokens, labels):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x)).float()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def one_path(x):
    """x with one path for its gradient. With the residual, a norm that uses it twice would make
    three terms, whose sum has another order when the part is a graph of its own."""
    return x.view_as(x)


def norm_of(case):
    kind = nn.RMSNorm if case["normalization"] == "RMSNorm" else nn.LayerNorm
    return kind(case["hidden"])


class Run:
    """One model with its steps, eager or captured after the warm-up steps."""

    def __init__(self, case, device, graphs):
        self.case, self.device, self.graphs = case, device, graphs
        torch.manual_seed(case["seed"])
        self.model = Gpt(case).to(device)
        self.trained = self.model
        if dist.is_initialized() and case["overlap_grad_reduce"]:
            self.trained = nn.parallel.DistributedDataParallel(
                self.model, device_ids=None if device == "cpu" else [torch.cuda.current_device()],
                broadcast_buffers=False)
        self.optimizer = self.make_optimizer()
        self.captured = []
        self.replayed = None

    def make_optimizer(self):
        case, parameters = self.case, list(self.model.parameters())
        in_graph = case["impl"] == "manual" or case["optimizer_graph"]
        decay = 0.01 if case["weight_decay"] else 0.0
        groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": decay},
                  {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}]
        rate = 0.1 if case["optimizer"] == "sgd" else 0.001
        rate = torch.tensor(rate, device=self.device) if in_graph else rate
        options = {"fused": case["optimizer_kernels"] == "fused",
                   "foreach": case["optimizer_kernels"] == "foreach"}
        if case["optimizer"] == "sgd":
            return torch.optim.SGD(groups, lr=rate, **options)
        return torch.optim.Adam(groups, lr=rate, capturable=in_graph, **options)

    def batch(self, step):
        """tokens and labels [microbatches, B, S] int64 of this rank."""
        case, rank = self.case, dist.get_rank() if dist.is_initialized() else 0
        generator = torch.Generator().manual_seed(case["seed"] * 1_000_003 + step * 1009 + rank)
        shape = (case["microbatches"], case["microbatch_size"], case["seq_length"] + 1)
        drawn = torch.randint(0, case["vocab"], shape, generator=generator).to(self.device)
        return drawn[..., :-1].contiguous(), drawn[..., 1:].contiguous()

    def autocast(self):
        if self.case["precision"] != "bf16":
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16,
                              cache_enabled=self.case["autocast_cache"])

    def forward_backward(self, tokens, labels):
        self.optimizer.zero_grad(set_to_none=False)
        losses, count = [], self.case["microbatches"]
        wrapped = self.trained is not self.model
        for index in range(count):
            hold = self.trained.no_sync() if wrapped and index + 1 < count \
                else contextlib.nullcontext()
            with hold:
                with self.autocast():
                    loss = self.trained(tokens[index], labels[index])
                (loss / count).backward()
            losses.append(loss.detach())
        if dist.is_initialized() and not wrapped:
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad.div_(dist.get_world_size())
        return torch.stack(losses)

    def update(self):
        if self.case["clip_grad"]:
            nn.utils.clip_grad_norm_(list(self.model.parameters()), 1.0)
        self.optimizer.step()

    def eager_step(self, tokens, labels):
        losses = self.forward_backward(tokens, labels)
        self.update()
        return losses

    def record(self, work):
        """One graph of `work`, in the pool of the others; what it returned, and its replay."""
        graph = torch.cuda.CUDAGraph()
        pool = self.captured[0].pool() if self.captured else None
        with torch.cuda.graph(graph, pool=pool, stream=torch.cuda.current_stream(),
                              capture_error_mode=self.case["capture_mode"]):
            result = work()
        self.captured.append(graph)
        return result, graph.replay

    def capture(self, tokens, labels):
        """The function of a step that replays."""
        impl, inputs = self.case["impl"], (tokens.clone(), labels.clone())
        if impl == "callables":
            self.make_callables()
            update = self.update
            if self.case["optimizer_graph"]:
                _, update = self.record(self.update)
            return lambda *fresh: (self.forward_backward(*fresh), update())[0]
        step = self.eager_step if impl == "manual" else self.forward_backward
        losses, replay = self.record(lambda: step(*inputs))
        update = (lambda: None) if impl == "manual" else self.update
        if impl == "full_iteration" and self.case["optimizer_graph"]:
            _, update = self.record(self.update)

        def replayed(*fresh):
            for static, new in zip(inputs, fresh):
                static.copy_(new)
            replay()
            update()
            return losses.clone()

        return replayed

    def make_callables(self):
        case = self.case
        modules = [module for layer in self.model.layers for module in
                   ([getattr(layer, name) for name in ("attn", "mlp") if name in case["modules"]]
                    or [layer])]
        shape = (case["microbatch_size"], case["seq_length"], case["hidden"])
        groups = [[module] for module in modules] if case["pool"] == "per_graph" else [modules]
        with self.autocast():
            for group in groups:
                samples = tuple((torch.randn(shape, device=self.device, requires_grad=True),)
                                for _ in group)
                torch.cuda.make_graphed_callables(
                    tuple(group), samples, 11 if self.trained is not self.model else 3,
                    allow_unused_input=True)

    def step(self, index):
        """The losses [microbatches] of step `index`, on the host."""
        batch = self.batch(index)
        if self.graphs and index == self.case["warmup_steps"]:
            self.replayed = self.capture(*batch)
        torch.manual_seed(self.case["seed"] + 1 + index)
        losses = (self.replayed or self.eager_step)(*batch)
        return losses.cpu()

    def parameters(self):
        return [parameter.detach().cpu() for parameter in self.model.parameters()]


def compare(case, device, graphs):
    """Runs all steps twice, eagerly both times without `graphs`. Whether all is the same."""
    second = "graph" if graphs else "eager again"
    runs = {"eager": Run(case, device, False), second: Run(case, device, graphs)}
    losses = {name: [run.step(index) for index in range(case["steps"])]
              for name, run in runs.items()}
    same = True
    for index, (left, right) in enumerate(zip(losses["eager"], losses[second])):
        equal = torch.equal(left, right)
        same &= equal
        print(f"step {index}: eager {left.tolist()} {second} {right.tolist()}"
              f"{'' if equal else '  DIFFERENT'}", flush=True)
    names = [name for name, _ in runs["eager"].model.named_parameters()]
    for name, left, right in zip(names, runs["eager"].parameters(), runs[second].parameters()):
        if not torch.equal(left, right):
            same = False
            print(f"parameter {name}: largest difference {(left - right).abs().max().item()}")
    return same


def watch_for_hang():
    def end():
        faulthandler.dump_traceback(all_threads=True)
        print(f"hang: nothing ended within {HANG_S} s", file=sys.stderr, flush=True)
        os._exit(124)

    timer = threading.Timer(HANG_S, end)
    timer.daemon = True
    timer.start()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = parser.parse_args().device
    watch_for_hang()
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    if ranks != CASE["dp"]:
        sys.exit(f"the case has {CASE['dp']} ranks and {ranks} were started; "
                 f"torchrun --nproc-per-node {CASE['dp']} {sys.argv[0]}")
    # Otherwise eager steps alone may differ. Filled memory would add kernels to captures.
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.autograd.set_multithreading_enabled(CASE["autograd_threads"] == "on")
    graphs = device == "cuda" and CASE["impl"] != "none"
    stream = torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" \
        else contextlib.nullcontext()
    case = CASE if graphs else {**CASE, "impl": "none", "optimizer_graph": False}
    with stream:
        same = compare(case, device, graphs)
    print("the same, bit for bit" if same else "they differ", flush=True)
    if not graphs:
        print("no graph was captured: this says nothing about CUDA graphs")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
