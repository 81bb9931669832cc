"""Which cuDNN a process has: that of PyTorch, or a second one beside it.

Transformer Engine loads the one of the system, under /usr/local/cuda, unless CUDNN_HOME names
another (transformer_engine/common/__init__.py). PyTorch loads the one that it was installed with.
With two versions in a process, each finds parts of the other, and fused attention fails with
CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED.
"""

import ctypes
import importlib.util
import os
import re

# What Transformer Engine looks at, in this order.
VARIABLES = ("CUDNN_HOME", "CUDNN_PATH")


def home_of_torch() -> str | None:
    """The folder of the cuDNN that PyTorch was installed with, or None. Imports nothing."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    home = os.path.join(os.path.dirname(os.path.dirname(spec.origin)), "nvidia", "cudnn")
    library = os.path.join(home, "lib")
    found = os.path.isdir(library) and any(name.startswith("libcudnn.so")
                                           for name in os.listdir(library))
    return home if found else None


def choose_that_of_torch(environment) -> None:
    """Has packages load PyTorch's cuDNN, unless the user has chosen another one."""
    home = home_of_torch()
    if home is not None and not any(environment.get(name) for name in VARIABLES):
        environment[VARIABLES[0]] = home


def mapped(maps: str = "/proc/self/maps") -> list:
    """The files of libcudnn.so that this process has mapped. Others begin with its name, and are
    parts of it."""
    found = set()
    with open(maps, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.search(r"\s(/\S*/libcudnn\.so[.\d]*)$", line.rstrip())
            if match:
                found.add(match.group(1))
    return sorted(found)


def version_of(file: str) -> str:
    """What a library that is mapped says: "9.19.0", or "unknown"."""
    try:
        get = ctypes.CDLL(file).cudnnGetVersion
    except (OSError, AttributeError):
        return "unknown"
    get.restype = ctypes.c_size_t
    number = get()
    if number < 90000:  # as encoded before cuDNN 9
        return f"{number // 1000}.{number // 100 % 10}.{number % 100}"
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def setting(maps: str = "/proc/self/maps") -> str:
    """For the line `config`: "9.19.0 of /FILE", with " and " between several, or "none"."""
    return " and ".join(f"{version_of(file)} of {file}" for file in mapped(maps)) or "none"
