"""Evidence: one JSON object a line, written and flushed while the rank runs.

The kinds of lines and their fields are docs/reference/evidence.md. JSON has no NaN and no
infinity, so they are written as the texts "nan", "inf" and "-inf".
"""

import json
import math
import os
import threading

from graphproof.message import Error

SCHEMA = "graphproof-evidence/1"
REVISION = 13


def file_name(rank: int) -> str:
    return f"rank-{rank}.evidence.jsonl"


def _writable(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {key: _writable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(inner) for inner in value]
    return value


class EvidenceWriter:
    """Writes one file. Any thread may write. Error if the file exists or cannot be written."""

    def __init__(self, file: str):
        self._file = file
        os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
        try:
            self._descriptor = os.open(
                file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Error(f"cannot create evidence file {file}", str(error), "a new file",
                        "evidence of two attempts must never mix",
                        "use a fresh attempt folder, or make it writable") from error
        self._lock = threading.Lock()
        self.lines = 0

    def write(self, kind: str, **fields) -> None:
        """Writes a line. A field that is None is left out."""
        line = {"kind": kind}
        line.update((name, _writable(value)) for name, value in fields.items()
                    if value is not None or name in ("mismatch", "last"))
        rest = (json.dumps(line, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
                + "\n").encode("utf-8", "replace")
        with self._lock:
            while rest:
                try:
                    rest = rest[os.write(self._descriptor, rest):]
                except OSError as error:
                    raise Error(f"cannot write evidence to {self._file}", str(error),
                                f"line {self.lines + 1} ({kind}) written whole",
                                "a case without its evidence cannot be judged",
                                "free space on its file system, then run again") from error
            self.lines += 1

    def end(self, complete: bool, last_phase: str, t_ms: int) -> None:
        self.write("end", complete=complete, lines=self.lines, last_phase=last_phase, t_ms=t_ms)
        os.close(self._descriptor)
