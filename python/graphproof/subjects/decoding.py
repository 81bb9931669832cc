"""Inference with the model of subject torch: each step decodes one token of every sequence.

Keys and values lie in buffers that a step writes in place, and the position is a tensor that a step
advances, so that a graph of one step serves all of them. After seq_length steps the oldest tokens
are overwritten. Letters: B sequences, S tokens that are kept, H hidden size.
"""

import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn

from graphproof.case import Case
from graphproof.subject import Subject
from graphproof.subjects.gpt import Gpt, make_batch


class DecodingLayer(nn.Module):
    """A layer of the model over kept keys and values [B, heads, S, H / heads]."""

    def __init__(self, case: Case, layer: nn.Module, dtype: torch.dtype):
        super().__init__()
        self.layer = layer
        shape = (case.microbatch_size, case.heads, case.seq_length, case.hidden // case.heads)
        self.register_buffer("keys", torch.zeros(shape, dtype=dtype))
        self.register_buffer("values", torch.zeros(shape, dtype=dtype))

    def forward(self, x: torch.Tensor, slot: torch.Tensor, unseen: torch.Tensor) -> torch.Tensor:
        """x [B, 1, H]; slot [1] int64, where this token is kept; unseen [S] bool."""
        part = self.layer.attn
        b, _, h = x.shape
        q, k, v = part.qkv(part.norm(x)).view(b, 1, 3, part.heads, -1).permute(2, 0, 3, 1, 4)
        cosine, sine = part.cosine.index_select(0, slot), part.sine.index_select(0, slot)

        def turned(one: torch.Tensor) -> torch.Tensor:
            left, right = one.float().chunk(2, -1)
            return torch.cat((left * cosine - right * sine, right * cosine + left * sine),
                             -1).to(one.dtype)

        self.keys.index_copy_(2, slot, turned(k).to(self.keys.dtype))
        self.values.index_copy_(2, slot, v.to(self.values.dtype))
        scores = turned(q) @ self.keys.transpose(-1, -2) / math.sqrt(part.width)
        shares = scores.float().masked_fill(unseen, float("-inf")).softmax(-1)
        x = x + part.out((shares.to(self.values.dtype) @ self.values).transpose(1, 2)
                         .reshape(b, 1, h))
        return x + self.layer.mlp(x)


class Decoder(nn.Module):
    """The model of subject torch with kept keys and values and the number of decoded tokens."""

    def __init__(self, case: Case, dtype: torch.dtype):
        super().__init__()
        self.model = Gpt(case).eval()
        self.layers = nn.ModuleList(DecodingLayer(case, layer, dtype)
                                    for layer in self.model.layers)
        self.register_buffer("decoded", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("slots", torch.arange(case.seq_length), persistent=False)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """tokens and labels [B] int64; returns the mean loss of the next tokens, a scalar."""
        slot = self.decoded % len(self.slots)
        self.decoded.add_(1)
        unseen = self.slots >= self.decoded
        x = self.model.tokens(tokens)[:, None]
        for layer in self.layers:
            x = layer(x, slot, unseen)
        return F.cross_entropy(self.model.head(self.model.norm(x)).float()[:, 0], labels)


class Decoding:
    """An inference job of a case: `model`, its inputs and its step."""

    def __init__(self, case: Case):
        self.case, self._low = case, case.precision == "bf16"
        self.model = Decoder(case, torch.bfloat16 if self._low else torch.float32).to(case.device)

    def batch(self, step: int) -> dict:
        """tokens and labels [B] int64 of a step."""
        made = make_batch(self.case, step)
        return {name: values[0, :, 0].contiguous() for name, values in made.items()}

    def losses(self, model, inputs: dict) -> torch.Tensor:
        """The loss [1] of a step of `model`, which is that of this job or its compiled code."""
        autocast = torch.autocast(self.case.device, dtype=torch.bfloat16, cache_enabled=False) \
            if self._low else contextlib.nullcontext()
        with torch.no_grad(), autocast:
            return model(inputs["tokens"], inputs["labels"]).reshape(1)


def build(case: Case) -> Subject:
    """The subject of a case with schedule decode."""
    job = Decoding(case)
    return Subject(model=job.model, step=lambda inputs: job.losses(job.model, inputs),
                   batch=job.batch, layers=list(job.model.layers))
