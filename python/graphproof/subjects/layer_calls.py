"""Axis layer_calls: how the model of subject torch calls its layers, of which graphs can be made by
torch.cuda.make_graphed_callables, and what its step asks of them.

Letters: B sequences of a microbatch, S tokens of a sequence, H hidden size.
"""

from dataclasses import dataclass

import torch
from torch.utils import _pytree

from graphproof.subjects.gpt import Layer, ScaledGpt

SLOPE_WEIGHT = 0.01  # of the squares of a derivative that are added to the loss
SIZE = 0.1           # of what a layer is given besides its hidden states, next to 1


@dataclass
class Gains:
    """What the parts of a layer are multiplied by, [B, S, 1] each. PyTorch looks for tensors in it,
    because it is registered as a container."""
    attn: torch.Tensor
    mlp: torch.Tensor


@dataclass
class Unregistered:
    """Hidden states [B, S, H], in a container that PyTorch does not know."""
    hidden: torch.Tensor


_pytree.register_dataclass(Gains)


class NestedLayer(Layer):
    """A layer whose argument is a dictionary with a list and a dataclass, and so is its result."""

    def forward(self, given: dict) -> dict:
        x, (before_attn, before_mlp), gains = given["hidden"], given["offsets"], given["gains"]
        x = x + gains.attn * self.attn(x + before_attn)
        return {"hidden": x + gains.mlp * self.mlp(x + before_mlp)}


class WrappedLayer(Layer):
    """A layer whose argument is a dataclass that PyTorch does not know."""

    def forward(self, given: Unregistered) -> torch.Tensor:
        return super().forward(given.hidden)


class CallingGpt(ScaledGpt):
    """The model of subject torch, whose layers are called as axis layer_calls says."""

    def __init__(self, case):
        self.calls = case.axis("layer_calls", "plain")
        super().__init__(case)

    def layer_class(self) -> type:
        return {"nested": NestedLayer, "dataclass": WrappedLayer}.get(self.calls, Layer)

    def embedded(self, tokens: torch.Tensor) -> torch.Tensor:
        # Kept for what differs from microbatch to microbatch: the arguments besides the hidden
        # states, and a derivative of the loss.
        self.first = super().embedded(tokens)
        return self.first

    def run_layer(self, layer, x: torch.Tensor) -> torch.Tensor:
        if self.calls == "nested":
            return layer(self.nested(x))["hidden"]
        if self.calls == "dataclass":
            return layer(Unregistered(x))
        return layer(x=x) if self.calls == "keywords" else layer(x)

    def nested(self, x: torch.Tensor) -> dict:
        """The argument of a nested layer."""
        first = SIZE * self.first.detach()
        means = first.mean(-1, keepdim=True)
        return {"hidden": x, "offsets": [first, first.flip(1)],
                "gains": Gains(1 + means, 1 - means)}

    def with_slope(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss and the squares of its derivative by the embedded tokens, whose own derivative
        is a second one through all layers."""
        slope, = torch.autograd.grad(loss, self.first, create_graph=True)
        return loss + SLOPE_WEIGHT * slope.square().sum()


def sample(case, shape: tuple) -> tuple:
    """Arguments of a layer for its capture. `shape`: [B, S, H]. The hidden states alone need a
    gradient."""
    def drawn(shape: tuple, needs_gradient: bool = False) -> torch.Tensor:
        return torch.randn(shape, device=case.device, requires_grad=needs_gradient)

    calls, hidden = case.axis("layer_calls", "plain"), drawn(shape, True)
    if calls == "dataclass":
        return (Unregistered(hidden),)
    if calls != "nested":
        return (hidden,)
    per_token = (*shape[:2], 1)
    return ({"hidden": hidden, "offsets": [drawn(shape), drawn(shape)],
             "gains": Gains(drawn(per_token), drawn(per_token))},)
