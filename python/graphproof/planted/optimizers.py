"""Faults in the optimizers of PyTorch and in what goes into them."""

import torch
from torch.optim import adam, sgd
from torch.optim.optimizer import (register_optimizer_step_post_hook,
                                   register_optimizer_step_pre_hook)

from graphproof.planted.source import changed


def _capturing() -> bool:
    return torch.cuda.is_current_stream_capturing()


def _with_rate(rate_in_capture) -> None:
    """SGD with another tensor for its rate while it is captured: rate_in_capture(tensor)."""
    fused = sgd._fused_sgd

    def captured(*args, **kwargs):
        if _capturing():
            kwargs["lr"] = rate_in_capture(kwargs["lr"])
        fused(*args, **kwargs)

    sgd._fused_sgd = captured


def frozen_rate() -> None:
    rates = {}  # a copy of the rate before each capture, which lives as long as the process

    def note(optimizer, args, kwargs):
        if not _capturing():
            for group in optimizer.param_groups:
                rates[id(group["lr"])] = group["lr"].clone()

    register_optimizer_step_pre_hook(note)
    _with_rate(lambda rate: rates.get(id(rate), rate))


def freed_rate() -> None:
    rates = []

    def note(optimizer, args, kwargs):
        if not _capturing():
            rates[:] = [optimizer.param_groups[0]["lr"].clone()]

    def forget(optimizer, args, kwargs):
        if _capturing():
            rates.clear()

    register_optimizer_step_pre_hook(note)
    register_optimizer_step_post_hook(forget)
    _with_rate(lambda rate: rates[0] if rates else rate)


def frozen_loss_scale() -> None:
    scale = torch.amp.GradScaler.scale

    def captured(scaler, outputs):
        return outputs * scaler._init_scale if _capturing() else scale(scaler, outputs)

    torch.amp.GradScaler.scale = captured


def rate_read_on_host() -> None:
    _with_rate(lambda rate: torch.full_like(rate, rate.item()))


def adam_rate_read_on_host() -> None:
    fused = adam._fused_adam

    def captured(*args, **kwargs):
        kwargs["lr"] = torch.full_like(kwargs["lr"], kwargs["lr"].item())
        fused(*args, **kwargs)

    adam._fused_adam = captured


def frozen_adam_steps() -> None:
    changed("torch.optim.adam", "_fused_adam", "torch._foreach_add_(device_state_steps, 1)",
            "torch.cuda.is_current_stream_capturing() or "
            "torch._foreach_add_(device_state_steps, 1)")


def gradients_doubled() -> None:
    def twice(optimizer, args, kwargs):
        if _capturing():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.grad.add_(parameter.grad)

    register_optimizer_step_pre_hook(twice)


def weight_decay_left_out() -> None:
    fused = sgd._fused_sgd

    def captured(*args, **kwargs):
        if _capturing():
            kwargs["weight_decay"] = 0.0
        fused(*args, **kwargs)

    sgd._fused_sgd = captured


def parameters_changed_by_capture() -> None:
    graph = torch.cuda.CUDAGraph
    base_end = graph.__mro__[1].capture_end
    last = []

    def note(optimizer, args, kwargs):
        last[:] = [optimizer]

    def ending(self):
        base_end(self)
        if last:
            with torch.no_grad():
                for group in last[0].param_groups:
                    for parameter in group["params"]:
                        parameter.add_(1e-3)

    register_optimizer_step_post_hook(note)
    graph.__mro__[1].capture_end = ending
