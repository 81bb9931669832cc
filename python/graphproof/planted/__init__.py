"""Faults: defects of public reports, put back into the installed packages when a rank starts.

A case names its fault by axis `fault`, so that none is left on unnoticed. Each has a detector, the
check that must fail, and a case; the clean twin is that case without the fault.
"""

from collections.abc import Callable
from dataclasses import dataclass

from graphproof.message import Error
from graphproof.planted import allocation, callables, graphs, optimizers, steps


@dataclass(frozen=True)
class Fault:
    """A defect. `plant()` replaces functions of this process and returns nothing."""
    id: str
    title: str
    detector: str
    case: str  # the name of the case that it is planted in
    plant: Callable


_WHOLE = "subject=torch,impl=manual,microbatches=2,optimizer_kernels=fused"
_ADAM = "subject=torch,impl=manual,microbatches=2,optimizer=adam,optimizer_kernels=fused"
_DROPOUT = _WHOLE + ",dropout=true"
_TWO_RANKS = _WHOLE + ",dp=2,comm=c10d"
_CALLABLES = "subject=torch,impl=callables,microbatches=2,capture_mode=global"

FAULTS = {fault.id: fault for fault in (
    Fault("M250", "a graphed callable does not copy its inputs in", "D01.lockstep", _CALLABLES,
          callables.no_copy_in),
    Fault("M251", "a graphed callable does not copy the gradient of its output in", "D01.lockstep",
          _CALLABLES, callables.no_gradient_copy_in),
    Fault("M252", "a graphed callable returns without launching its forward graph", "D43.replays",
          _CALLABLES, callables.no_forward_launch),
    Fault("M253", "a graphed callable returns without launching its backward graph", "D43.replays",
          _CALLABLES, callables.no_backward_launch),
    Fault("M254", "a graphed callable hands its gradients on twice", "D11.accumulated_gradients",
          _CALLABLES, callables.gradients_twice),
    Fault("M255", "a graphed module runs its old forward in training", "D43.replays", _CALLABLES,
          callables.old_forward),
    Fault("M256", "graphed callables are matched with each other's graphs", "D35.pool_order",
          _CALLABLES, callables.wrong_graph),
    Fault("M257", "each graphed callable captures into a pool of its own", "D31.pool_sharing",
          _CALLABLES, callables.pool_of_its_own),
    Fault("M258", "replays draw the random numbers of the capture", "D08.masks", _DROPOUT,
          graphs.frozen_generators),
    Fault("M259", "every third launch does nothing", "D03.outputs_written", _WHOLE,
          graphs.empty_launches),
    Fault("M260", "graphs stay alive after they were reset", "D32.pools_released", _WHOLE,
          graphs.kept_alive),
    Fault("M261", "every launch keeps a tensor", "D31.allocator_series", _WHOLE,
          allocation.tensor_kept),
    Fault("M262", "a parameter is bound to other memory after the capture", "D07.static_addresses",
          _WHOLE, allocation.parameter_rebound),
    Fault("M263", "the learning rate of the capture is used for ever", "D04.learning_rate", _WHOLE,
          optimizers.frozen_rate),
    Fault("M264", "the captured optimizer reads a rate that was freed", "D05.operands_alive",
          _WHOLE, optimizers.freed_rate),
    Fault("M265", "the optimizer reads its rate on the host", "D19.capture_status", _WHOLE,
          optimizers.rate_on_the_host),
    Fault("M266", "Adam does not count captured steps", "D04.optimizer_step", _ADAM,
          optimizers.frozen_steps),
    Fault("M267", "the gradients of a captured step are scaled twice", "D11.accumulated_gradients",
          _WHOLE, optimizers.gradients_doubled),
    Fault("M268", "the losses of a replay are handed out without a copy", "D12.kept_losses",
          _WHOLE, graphs.losses_not_copied),
    Fault("M269", "the inputs of a replay are not copied into the graph's", "D01.lockstep", _WHOLE,
          graphs.inputs_not_copied),
    Fault("M270", "a captured step is launched twice", "D43.replays", _WHOLE,
          graphs.launched_twice),
    Fault("M271", "a capture changes the parameters", "D36.capture_changes_nothing", _WHOLE,
          optimizers.parameters_changed),
    Fault("M272", "a captured step does not clear its gradients", "D11.accumulated_gradients",
          _WHOLE, steps.gradients_not_cleared),
    Fault("M273", "a captured step drops nothing", "D08.masks", _DROPOUT, steps.no_dropout),
    Fault("M274", "a captured step does not clip its gradients", "D01.lockstep",
          _WHOLE + ",clip_grad=true", steps.not_clipped),
    Fault("M275", "weight decay is left out of the captured optimizer", "D04.learning_rate",
          _WHOLE + ",weight_decay=true", optimizers.decay_left_out),
    Fault("M276", "captures begin in another mode than asked for", "D28.effective_config", _WHOLE,
          steps.other_mode),
    Fault("M277", "every step is captured again", "D43.replays", _WHOLE, steps.captured_again),
    Fault("M278", "a captured step does not reduce its gradients over the ranks", "D01.lockstep",
          _TWO_RANKS, steps.not_reduced),
    Fault("M279", "Adam reads its rate on the host", "D19.capture_status", _ADAM,
          optimizers.adam_rate_on_the_host),
)}


def plant(fault: str) -> None:
    """Plants the fault of a case; "none" plants nothing. Once a process: a case with a fault has
    a batch of its own. Error for a fault that this package does not know."""
    if fault == "none":
        return
    if fault not in FAULTS:
        raise Error("the fault of a case", fault, "none, or one of " + ", ".join(FAULTS),
                    "a case under the name of a fault must have it",
                    "plant faults of graphproof's own engines with subject=reference")
    FAULTS[fault].plant()
