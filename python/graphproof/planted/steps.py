"""Faults in the parts of a training step, which show only in captured steps."""

import contextlib
import importlib
import itertools
import threading

import torch
import torch.distributed as dist
import torch.utils.checkpoint

from graphproof.arms.arm import Arm

PINNED_BYTES = 1 << 20


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


def autocast_missing_at_replay() -> None:
    te = importlib.import_module("transformer_engine.pytorch")
    capture, autocast = Arm._capture, te.autocast

    def capturing(self, batch):
        capture(self, batch)
        run = self.captured.step

        def outside(fresh):
            te.autocast = lambda **_: contextlib.nullcontext()
            try:
                return run(fresh)
            finally:
                te.autocast = autocast

        self.captured.step = outside

    Arm._capture = capturing


class _SoftmaxInWorkspace(torch.autograd.Function):
    """Softmax over the last dimension that keeps its result for the backward pass in a workspace
    of its caller."""

    @staticmethod
    def forward(ctx, x, softmax, workspace):
        ctx.workspace = workspace.copy_(softmax(x.detach(), -1))
        return workspace.clone()

    @staticmethod
    def backward(ctx, gradient):
        kept = ctx.workspace
        return torch._softmax_backward_data(gradient, kept, -1, kept.dtype), None, None


def workspace_shared_by_graphs() -> None:
    softmax, workspaces = torch.Tensor.softmax, {}

    def in_workspace(self, *args, **kwargs):
        if _capturing() and self.requires_grad:
            return _SoftmaxInWorkspace.apply(self, softmax, workspaces[self.shape])
        # Made in an eager step, so that it is no graph's own.
        workspaces.setdefault(self.shape, torch.empty_like(self.detach()))
        return softmax(self, *args, **kwargs)

    torch.Tensor.softmax = in_workspace


def memory_pinned_by_another_thread() -> None:
    base = torch.cuda.CUDAGraph.__mro__[1]
    begin, sizes = base.capture_begin, itertools.count(1)

    def pin() -> None:
        with contextlib.suppress(RuntimeError):  # the capture is what has to fail
            torch.empty(next(sizes) * PINNED_BYTES, dtype=torch.uint8, pin_memory=True)

    def capture_begin(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        # As the thread of a data loader does: each size is one that no cache has.
        loader = threading.Thread(target=pin)
        loader.start()
        loader.join()

    base.capture_begin = capture_begin


def loss_read_on_host() -> None:
    backward = torch.Tensor.backward

    def reading(self, *args, **kwargs):
        if not _capturing():
            self.item()
        return backward(self, *args, **kwargs)

    torch.Tensor.backward = reading


def recompute_not_captured() -> None:
    checkpoint = torch.utils.checkpoint.checkpoint

    def plain_in_captures(function, *args, **options):
        return function(*args) if _capturing() else checkpoint(function, *args, **options)

    torch.utils.checkpoint.checkpoint = plain_in_captures
