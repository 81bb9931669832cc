"""The rank program of graphproof for subjects that are written in Python.

A subject is a real implementation: PyTorch, Transformer Engine, Megatron-Core or a file of the
user. `python -m graphproof.rank --batch FILE` reads the batch file of the launcher, runs every arm
of every case and writes the evidence that the C++ rank program (suites/rank) writes for our own
workloads. It decides nothing: graphproof-judge does. `python -m graphproof.starter` starts the
ranks of a batch from one import.
"""

from graphproof.case import Case

__all__ = ["Captured", "Case", "Subject"]


def __getattr__(name: str):
    """Captured and Subject, whose module imports torch: `python -m graphproof.subjects`, which the
    launcher asks at the start of a run, has to answer without it."""
    if name not in ("Captured", "Subject"):
        raise AttributeError(f"module graphproof has no attribute {name}")
    from graphproof import subject
    return getattr(subject, name)
