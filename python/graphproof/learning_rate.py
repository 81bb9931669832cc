"""The learning rate of each step, and the rate that an update really used.

The host sets another rate before every step. The rate in effect is measured from how far a
parameter moved, as in suites/case/learning_rate.cpp: p' = p - r g, so r is the least squares
solution of (p - p') = r g.
"""

import math
from dataclasses import dataclass

import torch

from graphproof.subject import gradient_of, local

# An update is measured by one in so many elements of the watched parameter, by no fewer and by no
# more: of many elements the best move furthest, and in a large model of bf16 one in 64 bounds the
# rate to no better than a sixth.
SHARE_MEASURED, LEAST_MEASURED, MOST_MEASURED = 64, 16, 1024


@dataclass(frozen=True)
class Schedule:
    """start * (1 - decay * step), at least `least`; there it alternates, so that no two
    consecutive steps have the same rate."""
    start: float
    decay: float
    least: float

    def at(self, step: int) -> float:
        rate = self.start * (1.0 - self.decay * step)
        return rate if rate >= self.least else self.least * (1.0 if step % 2 == 0 else 0.9)


SGD = Schedule(start=0.1, decay=0.05, least=0.01)
ADAM = Schedule(start=0.001, decay=0.05, least=0.0001)


class Chained:
    """Several optimizers of one kind that step together, as Megatron-Core has for experts."""

    def __init__(self, members: list):
        self.members = members

    @property
    def param_groups(self) -> list:
        return [group for member in self.members for group in member.param_groups]

    @property
    def state(self) -> dict:
        return {parameter: state for member in self.members
                for parameter, state in member.state.items()}


def _member(optimizer):
    """The optimizer, or one of those that are chained."""
    return optimizer.members[0] if isinstance(optimizer, Chained) else optimizer


def _is_fused(optimizer, name: str) -> bool:
    """Whether it is the optimizer `name` of Transformer Engine or of Apex, which are no subclasses
    of torch.optim's."""
    kind = type(_member(optimizer))
    return kind.__name__ == name and \
        kind.__module__.partition(".")[0] in ("transformer_engine", "apex")


def is_adam(optimizer) -> bool:
    """Whether its state is Adam's: exp_avg and exp_avg_sq. AdamW is one of PyTorch's Adams."""
    return isinstance(_member(optimizer), torch.optim.Adam) or _is_fused(optimizer, "FusedAdam")


def is_sgd(optimizer) -> bool:
    return type(_member(optimizer)) is torch.optim.SGD or _is_fused(optimizer, "FusedSGD")


def adam_steps(optimizer) -> float:
    """The number of steps in Adam's bias correction. Waits for the device if it is there."""
    parameter, group = watched(optimizer)
    return float(group["step"] if "step" in group else optimizer.state[parameter]["step"])


def schedule_of(optimizer) -> Schedule:
    return ADAM if is_adam(optimizer) else SGD


def set_rate(optimizer, rate: float) -> None:
    """Sets the rate as a training loop does: into the tensor if it is one, else as a number."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def watched(optimizer):
    """The parameter whose movement is measured: the largest, because its many elements give the
    most precise estimate. Returns (parameter, its group). A frozen one does not move, but where no
    parameter has requires_grad they are the copies in fp32 that Megatron-Core updates."""
    pairs = [(parameter, group) for group in optimizer.param_groups
             for parameter in group["params"]]
    trained = [pair for pair in pairs if pair[0].requires_grad]
    return max(trained or pairs, key=lambda pair: pair[0].numel())


def unknown_update(optimizer) -> str:
    """Why the update of this optimizer cannot be computed again; empty if it can."""
    if optimizer is None:
        return "the subject has no optimizer"
    for group in optimizer.param_groups:
        if group.get("maximize") or group.get("amsgrad"):
            return "maximize and amsgrad are not computed again"
        if is_sgd(optimizer) and (group["momentum"] or group["dampening"]):
            return "the update of SGD with momentum is not computed again"
    if _is_fused(optimizer, "FusedAdam"):
        if getattr(_member(optimizer), "master_weights", None):
            return "FusedAdam updates copies of the parameters that it does not hand out"
        for name in ("exp_avg_dtype", "exp_avg_sq_dtype"):
            if getattr(_member(optimizer), name, torch.float32) != torch.float32:
                return "FusedAdam keeps its state in a smaller type than fp32"
        if not all(group["bias_correction"] for group in optimizer.param_groups):
            return "the update of FusedAdam without bias correction is not computed again"
        if not _member(optimizer).adam_w_mode and \
                any(group["weight_decay"] for group in optimizer.param_groups):
            return "the update of FusedAdam with weight decay in the gradient is not computed again"
    if not is_sgd(optimizer) and not is_adam(optimizer):
        return f"the update of {type(optimizer).__name__} is not known"
    return ""


def effective_rate(optimizer, before: torch.Tensor, rate: float, steps: int,
                   gradient=gradient_of) -> tuple:
    """The rate by which the watched parameter moved from `before`, and the largest error of this
    measurement. NaN twice if the gradient is zero. `steps` counts the optimizer's steps;
    `gradient(parameter)` is what it read. Waits for the device."""
    parameter, group = watched(optimizer)
    decay = group["weight_decay"]
    start = before.double()
    # Roundings of a direction, relative to it: in the type of the parameter and in fp32.
    half_ulps, half_ulps_fp32, roundings = 2.0, 0.0, 1.0
    if is_adam(optimizer):
        state = optimizer.state[parameter]
        beta1, beta2 = (float(beta) for beta in group["betas"])
        root = local(state["exp_avg_sq"]).double().sqrt() / math.sqrt(1 - beta2 ** steps)
        direction = local(state["exp_avg"]).double() / (root + group["eps"]) / (1 - beta1 ** steps)
        half_ulps += 16.0  # eight roundings, twice that for the devices' own root and division
        # The optimizer has 1 - beta^t in fp32, where little is left of it in the first steps. The
        # base, its power and the difference are rounded; the second one enters through a root.
        half_ulps_fp32 = (steps + 3) * (1 / (1 - beta1 ** steps) + 0.5 / (1 - beta2 ** steps))
        decoupled = isinstance(_member(optimizer), torch.optim.AdamW) or \
            group.get("decoupled_weight_decay") or _is_fused(optimizer, "FusedAdam")
        if decay and decoupled:
            direction = direction + decay * start
            half_ulps, roundings = half_ulps + 2, roundings + 1
    else:
        direction = gradient(parameter).double()
        if decay:
            direction = direction + decay * start
            half_ulps, roundings = half_ulps + 2, roundings + 1
    end = local(parameter.detach()).double()
    size = torch.maximum(start.abs(), end.abs())
    kept = _most_precise(size, direction)
    start, end, direction, size = (t.flatten()[kept] for t in (start, end, direction, size))
    moved_g, g_g, g_size = torch.stack([((start - end) * direction).sum(),
                                        (direction * direction).sum(),
                                        (direction * size).abs().sum()]).tolist()
    if not g_g > 0:
        return math.nan, math.nan
    half_ulp, half_ulp_fp32 = (torch.finfo(dtype).eps / 2
                               for dtype in (parameter.dtype, torch.float32))
    return moved_g / g_g, half_ulp * (roundings * g_size / g_g + half_ulps * abs(rate)) + \
        half_ulp_fp32 * half_ulps_fp32 * abs(rate)


def _most_precise(size: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """The places of the elements whose rounding hides least of their movement: those that are small
    and move far. In bf16 all elements together would not show a rate that is wrong by a tenth."""
    ratio = torch.where(direction == 0, torch.inf, size / direction.abs()).flatten()
    share = min(MOST_MEASURED, ratio.numel() // SHARE_MEASURED)
    count = min(ratio.numel(), max(LEAST_MEASURED, share))
    return ratio.topk(count, largest=False).indices
