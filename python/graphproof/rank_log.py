"""The log of a rank: everything that it and its libraries print goes into one file."""

import os
import sys

from graphproof.message import Error

# What the import server printed while it imported, in a rank that it has forked.
printed_by_imports = b""


class RankLog:
    """Sends standard output and error of this process, also of C libraries, to rank-R.log."""

    def __init__(self, folder: str, rank: int):
        os.makedirs(folder, exist_ok=True)
        self.file = os.path.join(folder, f"rank-{rank}.log")
        try:
            self._log = os.open(self.file,
                                os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Error(f"rank {rank} cannot open its log {self.file}", str(error),
                        "a file that can be appended to",
                        "messages of libraries are part of the evidence",
                        "check the batch file's `log_folder`, its rights and the free disk space"
                        ) from error
        self._flush()
        os.dup2(self._log, 1)
        os.dup2(self._log, 2)

    @staticmethod
    def _flush() -> None:
        sys.stdout.flush()
        sys.stderr.flush()

    def repeat_imports(self) -> None:
        """Adds what imports printed ahead of the fork, once. A rank that imports by itself has it
        at this place: among the lines of the first case, which are judged."""
        global printed_by_imports
        self._flush()
        os.write(self._log, printed_by_imports)
        printed_by_imports = b""

    def bytes(self) -> int:
        self._flush()
        return os.fstat(self._log).st_size
