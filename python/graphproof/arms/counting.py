"""Counters on the device: how often each layer ran forward, and the dropout masks it drew.

A counter is a tensor that the layer's forward adds one to, so that a replay counts what it runs.
"""

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

from graphproof.recomputes import in_backward


class ModuleRuns:
    """How often Python ran a module forward and backward: replays do not count."""

    def __init__(self):
        self.forwards = self.backwards = 0


class LayerCounters:
    """Counts the forward passes of `layers` on `device`, without those of recomputations, and what
    Python runs of them and of `modules`. `compiled`: whether also in compiled code. `methods`: what
    runs a layer forward. `warming_up`: warming_up() -> whether a pass that runs now is no part of
    a step."""

    def __init__(self, layers, modules, device: str, compiled: bool, methods=("forward",),
                 warming_up=lambda: False):
        self._compiled, self._warming_up = compiled, warming_up
        self.tensor = torch.zeros(len(layers), dtype=torch.int64, device=device)
        self.runs = {module: ModuleRuns() for module in [*layers, *modules]}
        for index, layer in enumerate(layers):
            for method in methods:
                if hasattr(layer, method):
                    self._count(layer, method, self.tensor.narrow(0, index, 1))
        for module in modules:
            if module not in set(layers):
                self._count(module, "forward", None)

    def _count(self, layer, method: str, slot: torch.Tensor | None) -> None:
        forward, runs = getattr(layer, method), self.runs[layer]

        def counted(*args, **kwargs):
            if torch.compiler.is_compiling():
                # Compiled code counts on the device alone.
                if slot is not None and self._compiled:
                    slot.add_(1)
                return forward(*args, **kwargs)
            again = in_backward() or self._warming_up()
            if not again:
                runs.forwards += 1
                if slot is not None:
                    with torch.no_grad():
                        slot.add_(1)
            result = forward(*args, **kwargs)
            tensors = (one for one in tree_leaves(result) if isinstance(one, torch.Tensor))
            first = next(tensors, None)
            if not again and first is not None and first.requires_grad:
                first.register_hook(lambda gradient: self._ran_backward(runs))
            return result

        # An attribute of the instance: hooks would be refused by make_graphed_callables.
        setattr(layer, method, counted)

    @staticmethod
    def _ran_backward(runs: ModuleRuns) -> None:
        runs.backwards += 1

    def values(self) -> list:
        """Waits for the device."""
        return self.tensor.tolist()


class DropoutMasks:
    """Keeps the masks of every torch.nn.Dropout of a model in tensors that stay where they are.

    The module then calls native_dropout, which is what F.dropout calls on a GPU and which also
    returns the mask. A later microbatch overwrites the mask of an earlier one.
    """

    def __init__(self, model: torch.nn.Module | None):
        self._masks = {}
        self.modules = 0  # whose masks are kept
        for name, module in model.named_modules() if model is not None else ():
            if type(module) is torch.nn.Dropout:
                self._keep(name, module)
                self.modules += 1

    def _keep(self, name: str, module: torch.nn.Dropout) -> None:
        def forward(x):
            if not module.training or module.p == 0:
                return F.dropout(x, module.p, module.training)
            result, mask = torch.native_dropout(x, module.p, True)
            if in_backward():
                return result
            kept = self._masks.get(name)
            if kept is None:
                kept = self._masks[name] = torch.empty_like(mask)
            kept.copy_(mask)
            return result

        module.forward = forward

    def named(self) -> list:
        """[("mask:NAME", tensor)] of all masks drawn so far."""
        return [(f"mask:{name}", mask) for name, mask in self._masks.items()]
