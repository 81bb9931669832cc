"""A small GPT of torch.nn modules, for subjects that bring no model of their own.

Letters: B sequences of a microbatch, S tokens of a sequence, H hidden size.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import checkpoint

from graphproof.recomputes import counted

DROPOUT = 0.1


def norm_of(case, width: int) -> nn.Module:
    return nn.RMSNorm(width) if case.normalization == "RMSNorm" else nn.LayerNorm(width)


def one_path(x: torch.Tensor) -> torch.Tensor:
    """The input of a part, with one path for its gradient. The norm may use it more than once; with
    the residual these would be three terms, whose sum has another order when the part is a graph
    of its own."""
    return x.view_as(x)


class Attention(nn.Module):
    """Causal self-attention with its norm and its dropout, without the residual. [B, S, H]."""

    def __init__(self, case, dropout: float):
        super().__init__()
        hidden, length = case.hidden, case.seq_length
        self.heads, self.width = case.heads, case.hidden // case.heads
        self.norm = norm_of(case, hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=case.qkv_bias)
        self.out = nn.Linear(hidden, hidden, bias=case.linear_bias)
        self.dropout = nn.Dropout(dropout)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.register_buffer("later", later, persistent=False)
        half = self.width // 2
        angles = torch.outer(torch.arange(length).float(),
                             10000.0 ** -(torch.arange(half).float() / half))
        self.register_buffer("cosine", angles.cos(), persistent=False)  # [S, width / 2]
        self.register_buffer("sine", angles.sin(), persistent=False)

    def rotated(self, x: torch.Tensor) -> torch.Tensor:
        """Rotary positions. [B, heads, S, width]."""
        left, right = x.float().chunk(2, -1)
        cosine, sine = self.cosine[:x.shape[2]], self.sine[:x.shape[2]]
        turned = torch.cat((left * cosine - right * sine, right * cosine + left * sine), -1)
        return turned.to(x.dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = one_path(x)
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        # Products instead of a fused attention, whose backward has no fixed order of sums.
        scores = self.rotated(q) @ self.rotated(k).transpose(-1, -2) / math.sqrt(self.width)
        later = self.later[:s, :s]
        shares = scores.float().masked_fill(later, float("-inf")).softmax(-1).to(v.dtype)
        return self.dropout(self.out((shares @ v).transpose(1, 2).reshape(b, s, h)))


class Mlp(nn.Module):
    """Two linear layers with their norm and dropout, without the residual. [B, S, H]. The gate of
    swiglu doubles the rows of the first."""

    def __init__(self, case, dropout: float):
        super().__init__()
        hidden, ffn = case.hidden, case.ffn or 4 * case.hidden
        self.gated = case.activation == "swiglu"
        self.norm = norm_of(case, hidden)
        self.up = nn.Linear(hidden, ffn * (2 if self.gated else 1), bias=case.linear_bias)
        self.down = nn.Linear(ffn, hidden, bias=case.linear_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.up(self.norm(one_path(x)))
        if self.gated:
            gate, x = x.chunk(2, -1)
            x = F.silu(gate) * x
        else:
            x = F.gelu(x)
        return self.dropout(self.down(x))


class Layer(nn.Module):
    """Attention and MLP with their residuals. [B, S, H]. `run(module, x)` calls a part; the model
    puts torch.utils.checkpoint there for parts that are recomputed."""

    def __init__(self, case, dropout: float, run):
        super().__init__()
        self.attn, self.mlp = Attention(case, dropout), Mlp(case, dropout)
        self.run = run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.run("core_attn", self.attn, x)
        return x + self.run("mlp", self.mlp, x)


class Gpt(nn.Module):
    """Token embeddings, layers with rotary positions, a norm and the output layer."""

    def __init__(self, case):
        super().__init__()
        dropout = DROPOUT if case.dropout else 0.0
        self.parts, self.whole_layers = recomputed(case)
        self.checkpointed = {"use_reentrant": case.axis("checkpoint", "") == "reentrant",
                             "preserve_rng_state": bool(case.dropout)}
        self.tokens = nn.Embedding(case.vocab, case.hidden)
        self.layers = nn.ModuleList(self.layer_class()(case, dropout, self.run_part)
                                    for _ in range(case.layers))
        self.norm = norm_of(case, case.hidden)
        self.head = nn.Linear(case.hidden, case.vocab, bias=False)

    def layer_class(self) -> type:
        return Layer

    def run_part(self, part: str, module: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return self.run_checkpointed(module, x) if part in self.parts else module(x)

    def run_checkpointed(self, module: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return checkpoint.checkpoint(counted(module), x, **self.checkpointed)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """tokens and labels [B, S] int64, where S may be shorter than seq_length; returns the mean
        loss of the tokens that have a label, a scalar in fp32."""
        x = self.embedded(tokens)
        for index, layer in enumerate(self.layers):
            x = self.run_checkpointed(layer, x) if index < self.whole_layers \
                else self.run_layer(layer, x)
        return F.cross_entropy(self.logits(x).flatten(0, 1), labels.flatten())

    def embedded(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens [B, S] int64; returns [B, S, H]."""
        return self.tokens(tokens)

    def run_layer(self, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        """[B, S, H]."""
        return layer(x)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """x [B, S, H]; returns [B, S, vocabulary] in fp32."""
        return self.head(self.norm(x)).float()


class ScaledGpt(Gpt):
    """The same with a parameter of no dimension, which optimizers treat in ways of their own."""

    def __init__(self, case):
        super().__init__(case)
        self.scale = nn.Parameter(torch.ones(()))

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        return super().logits(x) * self.scale


def recomputed(case) -> tuple:
    """Which parts of every layer are recomputed, and how many layers as a whole: the first n of
    full(block,n), all of full(uniform,n)."""
    word, _, arguments = case.recompute.rstrip(")").partition("(")
    if word == "selective":
        return set(arguments.split(",")), 0
    if word != "full":
        return set(), 0
    method, _, count = arguments.partition(",")
    return set(), min(int(count), case.layers) if method == "block" else case.layers


def make_batch(case, step: int) -> dict:
    """tokens and labels [microbatches, B, S] int64 of this rank in step number `step`."""
    generator = torch.Generator().manual_seed(case.seed * 1_000_003 + step * 1009 + case.rank)
    shape = (case.microbatches, case.microbatch_size, case.seq_length + 1)
    drawn = torch.randint(0, case.vocab, shape, generator=generator).to(case.device)
    return {"tokens": drawn[..., :-1].contiguous(), "labels": drawn[..., 1:].contiguous()}
