"""The line `config`: what the case asks of libraries, and what they report."""

import torch
# use_deterministic_algorithms() imports it, which takes a second. Here an import server does it
# once for all ranks.
import torch._inductor  # noqa: F401

VARIABLES = {"nccl_graph_register": "NCCL_GRAPH_REGISTER", "nccl_algo": "NCCL_ALGO",
             "nccl_proto": "NCCL_PROTO"}


def apply(case) -> None:
    """Sets what a rank sets in its own process. Arms are compared byte for byte, so every operator
    must use one order of sums; memory is not filled, which would add kernels to captures."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.autograd.set_multithreading_enabled(case.autograd_threads == "on")


def write(scope, device, case, versions: dict) -> None:
    """Writes the line. `versions`: name -> version of the packages of the subject."""
    asked = {"autograd_threads": case.autograd_threads, "capture_mode": case.capture_mode}
    effective = {**device.settings(), "torch": torch.__version__, **versions,
                 "autograd_threads": "on" if torch.autograd.is_multithreading_enabled() else "off",
                 "capture_mode": case.capture_mode, "mpi_thread_level": "none",
                 "deterministic": torch.are_deterministic_algorithms_enabled()}
    if device.name == "cuda":
        asked["allocator"] = case.allocator
        # PyTorch's process groups issue every collective of a subject; a single rank issues none.
        asked["comm"] = case.axis("comm", "nccl")
        effective["comm"] = "c10d" if case.world_size > 1 else asked["comm"]
        for axis, variable in VARIABLES.items():
            if case.axis(axis, "unset") != "unset":
                asked[variable] = case.axes[axis]
    scope.write("config", asked=asked, effective=effective)
