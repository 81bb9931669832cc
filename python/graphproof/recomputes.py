"""How many parts of a model ran under a checkpoint, and how many of them a backward pass ran again.

A subject hands `counted(function)` to a checkpoint in place of a function. What the checkpoint does
with it is counted and not changed.
"""

from dataclasses import dataclass

import torch


def in_backward() -> bool:
    """Whether what runs now, such as a forward pass that recomputes, is in a backward pass."""
    return torch._C._current_graph_task_id() != -1


def _capturing() -> bool:
    return torch.cuda.is_current_stream_capturing()


@dataclass
class Counts:
    """Parts that ran outside of captures and inside, and those of them that ran again."""
    parts: int = 0
    parts_again: int = 0
    captured: int = 0
    captured_again: int = 0

    def add(self, again: bool) -> None:
        """Counts a run of a part, from the thread that runs it. In a backward pass on a GPU that is
        one of autograd's; the thread that runs the step waits for it."""
        name = ("captured" if _capturing() else "parts") + ("_again" if again else "")
        setattr(self, name, getattr(self, name) + 1)


class Recomputes:
    """What one arm ran under checkpoints. `warming_up`: warming_up() -> whether a library runs
    parts now that belong to no step and to no graph; they are not counted."""

    current = None  # that of the arm whose step runs

    def __init__(self, warming_up):
        # An object of its own, because graphs keep functions that count, and must not keep the arm.
        self.counts, self.warming_up = Counts(), warming_up


def counted(function):
    """`function` for a checkpoint, with its runs counted. Without gradients a checkpoint keeps
    nothing, and nothing is counted."""
    current = Recomputes.current
    if current is None or not torch.is_grad_enabled() or \
            current.warming_up() and not _capturing():
        return function
    counts, runs = current.counts, 0

    def run(*args, **kwargs):
        nonlocal runs
        # The first run may be in a backward pass too: that of a part within one that runs again.
        if runs == 0 or runs == 1 and in_backward():
            counts.add(again=runs == 1)
            runs += 1
        return function(*args, **kwargs)

    return run
