"""A checkpoint in files, which a job reads that resumes in a new process.

Tensors lie where they were saved: every rank loads its own file on the same device.
"""

import os

import torch


def file_of(folder: str, rank: int, what: str) -> str:
    return os.path.join(folder, f"rank-{rank}.{what}.pt")


def write(folder: str, rank: int, what: str, value) -> None:
    """Writes what torch.save takes, whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    file = file_of(folder, rank, what)
    torch.save(value, file + ".part")
    os.rename(file + ".part", file)


def read(folder: str, rank: int, what: str):
    """What was written. The file is this job's own, and may have any Python object."""
    return torch.load(file_of(folder, rank, what), weights_only=False)


def save_states(folder: str, rank: int, **parts) -> None:
    """Writes the state_dict of each part, such as model=MODEL. A part that is None has none."""
    write(folder, rank, "states", {name: part.state_dict() for name, part in parts.items()
                                   if part is not None})


def load_states(folder: str, rank: int, **parts) -> None:
    """Has each part load its state_dict, in the order that they are given in."""
    states = read(folder, rank, "states")
    for name, part in parts.items():
        if part is not None:
            part.load_state_dict(states[name])
