"""The batch file (reports/record/job/batch.h) and the place of this process among the ranks."""

import hashlib
import json
import os
from dataclasses import dataclass, field

from graphproof.message import UsageError
from graphproof.phase import PHASES

SCHEMA = "graphproof-batch/1"


@dataclass(frozen=True)
class Place:
    """Which rank this process is. `gpu` is the index of its GPU among those that it may see."""
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    shared_gpus: int = 0  # how many GPUs the ranks of this host share; 0: each has its own
    gpu: int = 0


@dataclass(frozen=True)
class BatchCase:
    """An attempt at a case. `axes` has the value of every axis."""
    id: str
    name: str
    attempt: int
    axes: dict
    evidence_folder: str


@dataclass(frozen=True)
class Batch:
    """The cases that one set of processes runs one after the other. Limits are in milliseconds."""
    run_id: str
    batch: str
    device: str
    world_size: int
    seed: int
    isolation: str
    heartbeat_fifo: str
    store: str
    log_folder: str
    mark: str
    limits_ms: dict
    cases: list = field(default_factory=list)
    digest: str = ""  # SHA-256 of the file, which must be the same on every rank


def _required(value: dict, key: str, kind: type, where: str):
    found = value.get(key)
    # A boolean is an int to Python and is never a number here.
    if not isinstance(found, kind) or isinstance(found, bool):
        raise UsageError(f"field `{key}` of {where}", repr(found), kind.__name__,
                         "the ranks cannot run a batch that they cannot read",
                         "let ./graphproof write the batch file, or correct it")
    return found


def read_batch(file: str) -> Batch:
    """Reads the batch file. UsageError if a field is missing or of another type."""
    try:
        with open(file, "rb") as stream:
            raw = stream.read()
        value = json.loads(raw)
    except (OSError, ValueError) as error:
        raise UsageError(f"the batch file {file}", str(error), "a file of JSON",
                         "it names the cases of this process",
                         "let ./graphproof write it") from error
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise UsageError(f"the schema of {file}",
                         str(value.get("schema") if isinstance(value, dict) else value), SCHEMA,
                         "fields of another schema may mean something else",
                         "use the graphproof that belongs to this Python package")
    text = {name: _required(value, name, str, file)
            for name in ("run_id", "batch", "device", "isolation", "heartbeat_fifo", "store",
                         "log_folder", "mark")}
    if text["device"] not in ("sim", "cuda"):
        raise UsageError(f"device of {file}", text["device"], "sim or cuda",
                         "there is no other device", "correct the batch file")
    limits = _required(value, "limits_ms", dict, file)
    for phase in PHASES:
        if _required(limits, phase, int, f"limits_ms of {file}") <= 0:
            raise UsageError(f"limit of phase {phase} in {file}", f"{limits[phase]} ms",
                             "more than 0 ms", "no rank could keep it", "correct the batch file")
    cases = [BatchCase(id=_required(one, "id", str, file), name=_required(one, "name", str, file),
                       attempt=_required(one, "attempt", int, file),
                       axes=_required(one, "axes", dict, file),
                       evidence_folder=_required(one, "evidence_folder", str, file))
             for one in _required(value, "cases", list, file)]
    return Batch(**text, world_size=_required(value, "world_size", int, file),
                 seed=_required(value, "seed", int, file),
                 limits_ms={phase: limits[phase] for phase in PHASES}, cases=cases,
                 digest=hashlib.sha256(raw).hexdigest())


# Environment variables of the programs that start ranks, as in fixtures/process/rank.cpp.
_STARTERS = (("GRAPHPROOF_", ("WORLD_SIZE", "RANK", "LOCAL_RANK")),
             ("OMPI_COMM_WORLD_", ("SIZE", "RANK", "LOCAL_RANK")))


def _number(name: str, text: str) -> int:
    if not text.isdigit():
        raise UsageError("the rank of this process is unknown", f"{name}={text}",
                         "a whole number of 0 or more", "ranks find each other by it",
                         "start it through ./graphproof")
    return int(text)


def place_from(environment) -> Place:
    """The place of this process. Without any of the variables it is a single rank."""
    for prefix, names in _STARTERS:
        texts = {prefix + name: environment.get(prefix + name) for name in names}
        seen = {name: text for name, text in texts.items() if text is not None}
        if not seen:
            continue
        if len(seen) < len(texts):
            missing = ", ".join(name for name in texts if name not in seen)
            raise UsageError("the rank of this process is unknown",
                             f"{', '.join(seen)} without {missing}", "all three of them",
                             "ranks find each other by them", "start it through ./graphproof")
        world_size, rank, local_rank = (_number(name, text) for name, text in texts.items())
        if world_size < 1 or rank >= world_size or local_rank >= world_size:
            raise UsageError("the rank of this process is unknown",
                             f"rank {rank}, local rank {local_rank} of {world_size}",
                             "rank and local rank below the world size",
                             "ranks find each other by them", "start it through ./graphproof")
        shared = environment.get("GRAPHPROOF_SHARED_GPUS")
        if shared is None:
            return Place(rank, world_size, local_rank, gpu=local_rank)
        gpus = _number("GRAPHPROOF_SHARED_GPUS", shared)
        if gpus == 0:
            raise UsageError("GRAPHPROOF_SHARED_GPUS", "0", "one or more GPUs to share",
                             "a rank without a GPU cannot run", "start it through ./graphproof")
        return Place(rank, world_size, local_rank, shared_gpus=gpus, gpu=local_rank % gpus)
    return Place()


def this_place() -> Place:
    """The place of this process by its environment."""
    return place_from(os.environ)
