"""Faults in the parts of a training step, which show only in captured steps."""

import torch
import torch.distributed as dist

from graphproof.arms.arm import Arm


def _capturing() -> bool:
    return torch.cuda.is_current_stream_capturing()


def _left_out_of_captures(owner, name: str) -> None:
    """Function `name` of `owner` does nothing while a capture is open."""
    function = getattr(owner, name)

    def sometimes(*args, **kwargs):
        return None if _capturing() else function(*args, **kwargs)

    setattr(owner, name, sometimes)


def gradients_not_cleared() -> None:
    _left_out_of_captures(torch.optim.Optimizer, "zero_grad")


def gradients_not_clipped() -> None:
    _left_out_of_captures(torch.nn.utils, "clip_grad_norm_")


def gradients_not_reduced() -> None:
    _left_out_of_captures(dist, "all_reduce")


def dropout_left_out() -> None:
    drop = torch.native_dropout
    torch.native_dropout = lambda x, p, train: drop(x, 0.0 if _capturing() else p, train)


def other_capture_mode() -> None:
    base = torch.cuda.CUDAGraph
    begin = base.capture_begin
    base.capture_begin = lambda self, pool=None, capture_error_mode="global": begin(
        self, pool=pool, capture_error_mode="relaxed")


def captured_every_step() -> None:
    run = Arm.run

    def forgetting(self, index, step_input):
        if self.captured is not None and not self.free:
            self.drop_graphs()
        return run(self, index, step_input)

    Arm.run = forgetting


def captured_evaluation_with_dropout() -> None:
    _left_out_of_captures(torch.nn.Module, "eval")


def decoded_keys_not_kept() -> None:
    _left_out_of_captures(torch.Tensor, "index_copy_")
