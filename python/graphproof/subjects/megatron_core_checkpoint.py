"""A checkpoint of a Megatron-Core job that is kept in memory, and loaded under live graphs.

What Megatron-Core's own checkpoints have of one rank: parameters, what a step changes besides them,
and the optimizer with its copies in fp32. Generators are kept by the arm.
"""

import torch

from graphproof.learning_rate import Chained
from graphproof.subject import copied


def _members(optimizer) -> list:
    return optimizer.members if isinstance(optimizer, Chained) else [optimizer]


def _places(optimizer) -> list:
    """The parameters of the optimizer in the order of its groups."""
    return [parameter for member in _members(optimizer) for group in member.param_groups
            for parameter in group["params"]]


def _tensors(model: torch.nn.Module, is_result, optimizer) -> list:
    """The tensors that a step changes, besides those that the optimizer makes for itself. Copies
    in fp32 are parameters of the optimizer; where there are none, they are those of the model."""
    buffers = [buffer for name, buffer in model.named_buffers() if is_result(name)]
    return [*model.parameters(), *buffers, *_places(optimizer)]


def save(model: torch.nn.Module, is_result, optimizer) -> dict:
    """Copies of what a later step depends on. `is_result(name)`: whether a buffer of the model is
    changed by steps."""
    members = _members(optimizer)
    return {"tensors": [tensor.detach().clone()
                        for tensor in _tensors(model, is_result, optimizer)],
            "states": [[copied(dict(member.state[parameter]))
                        for group in member.param_groups for parameter in group["params"]]
                       for member in members],
            # Transformer Engine's Adam counts its steps in its groups.
            "steps": [[copied(group.get("step")) for group in member.param_groups]
                      for member in members]}


def load(saved: dict, model: torch.nn.Module, is_result, optimizer) -> None:
    """Puts a checkpoint back, by copies into the tensors that are there, whose addresses live
    graphs know. What an optimizer that has made no step yet lacks is made anew."""
    with torch.no_grad():
        for tensor, value in zip(_tensors(model, is_result, optimizer), saved["tensors"],
                                 strict=True):
            tensor.copy_(value)
    for member, states, steps in zip(_members(optimizer), saved["states"], saved["steps"],
                                     strict=True):
        parameters = [parameter for group in member.param_groups
                      for parameter in group["params"]]
        for parameter, values in zip(parameters, states, strict=True):
            _load_state(member.state[parameter], values)
        for group, step in zip(member.param_groups, steps, strict=True):
            if step is not None:
                _load_state(group, {"step": step})


def _load_state(state: dict, values: dict) -> None:
    for key, value in values.items():
        if isinstance(value, torch.Tensor) and isinstance(state.get(key), torch.Tensor):
            state[key].copy_(value)
        else:
            state[key] = copied(value)
