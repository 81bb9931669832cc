"""The rank program of graphproof for subjects that are written in Python.

A subject is a real implementation: PyTorch, Transformer Engine, Megatron-Core or a file of the
user. `python -m graphproof.rank --batch FILE` reads the batch file of the launcher, runs every arm
of every case and writes the evidence that the C++ rank program (suites/rank) writes for our own
workloads. It decides nothing: graphproof-judge does.
"""

from graphproof.case import Case
from graphproof.subject import Captured, Subject

__all__ = ["Captured", "Case", "Subject"]
