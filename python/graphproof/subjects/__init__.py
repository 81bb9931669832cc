"""The subjects: which there are, whether their packages are installed, and who builds them.

Nothing here imports torch: `python -m graphproof.subjects --json` answers in a moment.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
from collections.abc import Callable

from graphproof.message import Error

NAMES = ("torch", "torch_compile", "fsdp2", "transformer_engine", "megatron_core", "script")


def ranges() -> dict:
    """subject -> package -> [the first version, the first version that is too new]. Versions of
    ranges.json were run or read; outside of them nobody knows."""
    with open(os.path.join(os.path.dirname(__file__), "ranges.json"), encoding="utf-8") as file:
        return json.load(file)


def refusals() -> dict:
    """rule -> what the code of a subject says when it refuses what the rule forbids. The rules
    themselves are in matrix/rules."""
    with open(os.path.join(os.path.dirname(__file__), "refusals.json"), encoding="utf-8") as file:
        return json.load(file)


def template_file() -> str:
    """The commented example of a script, which runs as it is."""
    return os.path.join(os.path.dirname(__file__), "template.py")


def _key(version: str) -> tuple:
    """The numbers of a version: "2.11.0+cu130" is (2, 11, 0). A local part does not count."""
    return tuple(int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3])


def available(subject: str, version_of: Callable = importlib.metadata.version) -> dict:
    """Whether the subject can run here: available, version (of all its packages), why (empty if it
    can), packages. Reads metadata and imports nothing."""
    if subject not in NAMES:
        raise Error("the subject of a case", subject, ", ".join(NAMES),
                    "nobody knows how to build another one", "correct axis subject")
    found, problems = {}, []
    for package, (first, beyond) in ranges()[subject].items():
        try:
            version = found[package] = version_of(package)
        except importlib.metadata.PackageNotFoundError:
            problems.append(f"{package} is not installed; want {first} or newer, below {beyond}")
            continue
        if not _key(first) <= _key(version) < _key(beyond):
            problems.append(f"{package} {version} is too "
                            f"{'old' if _key(version) < _key(first) else 'new'}; want {first} or "
                            f"newer, below {beyond}")
    shown = {**found, **optional_packages(subject)}
    return {"available": not problems, "why": "; ".join(problems),
            "version": ", ".join(f"{package} {version}" for package, version in shown.items()),
            "packages": shown}


def optional_packages(subject: str) -> dict:
    """package -> version of what only some cases of a subject need. Nothing is imported: HybridEP
    is a part of DeepEP's package, of one branch alone, and has a file there."""
    found = {}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        if subject == "torch":
            found["apex"] = importlib.metadata.version("apex")
        if subject == "megatron_core" and _has_file("deep_ep", "hybrid_ep_buffer.py"):
            found["hybrid-ep"] = importlib.metadata.version("deep_ep")
    return found


def _has_file(package: str, file: str) -> bool:
    found = importlib.util.find_spec(package)
    folders = found.submodule_search_locations or () if found else ()
    return any(os.path.exists(os.path.join(folder, file)) for folder in folders)


def builder(subject: str, script: str | None = None) -> Callable:
    """The function build(case) -> Subject. `script` is the user's file, for subject script."""
    if subject == "script":
        from graphproof.subjects.script import load
        return load(script)
    return importlib.import_module(f"graphproof.subjects.{subject}_subject").build
