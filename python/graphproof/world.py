"""Votes of the ranks through files of the batch's store, and PyTorch's process group.

A vote has a deadline, so that no rank waits for ever for one that has ended. Files work on every
machine on which the launcher itself works, and need no port.
"""

import os
import time

from graphproof.batch import Batch, Place
from graphproof.message import Error

FIRST_POLL_S, LAST_POLL_S = 0.001, 0.05
# Longer than any phase may be silent, so that the launcher, which sees all ranks, reports a stall.
MARGIN_S = 30.0
# A rank that failed waits this much shorter: its peers vote at once, or never.
FAILED_SHARE = 15


class World:
    """The ranks of a batch. Used from one thread."""

    def __init__(self, batch: Batch, place: Place):
        self._place = place
        self._folder = os.path.join(batch.store, "votes")
        self._number = 0
        self._grouped, self._groups = False, 0
        self._store = batch.store
        self.patience_s = max(batch.limits_ms.values()) / 1000 + MARGIN_S
        os.makedirs(self._folder, exist_ok=True)

    def exchange(self, what: str, text: str, limit_s: float) -> list:
        """The text of every rank. Error if one does not come within `limit_s` seconds."""
        self._number += 1
        stem = os.path.join(self._folder, f"{self._number}.")
        mine = f"{stem}{self._place.rank}"
        with open(mine + ".part", "w", encoding="utf-8") as stream:
            stream.write(f"{what}\n{text}")
        os.rename(mine + ".part", mine)
        end, pause = time.monotonic() + limit_s, FIRST_POLL_S
        texts = []
        for rank in range(self._place.world_size):
            while not os.path.exists(stem + str(rank)):
                if time.monotonic() >= end:
                    raise Error(f"exchange {what} of rank {self._place.rank}",
                                f"got nothing from rank {rank} within {limit_s * 1000:.0f} ms",
                                "every rank", "that rank has ended, or waits for something else",
                                "read the evidence and the log of that rank")
                time.sleep(pause)
                pause = min(2 * pause, LAST_POLL_S)
            with open(stem + str(rank), encoding="utf-8") as stream:
                theirs, _, answer = stream.read().partition("\n")
            if theirs != what:
                raise Error(f"exchange {what} of rank {self._place.rank}",
                            f"rank {rank} is at {theirs}", what,
                            "the ranks run different work from here on",
                            "read the evidence of both ranks: one of them left a case early")
            texts.append(answer)
        return texts

    def agree_on_configuration(self, digest: str) -> None:
        """Error on every rank if the ranks have read different batch files."""
        digests = self.exchange("configuration", digest, self.patience_s)
        others = "".join(f", rank {rank} {one[:12]}" for rank, one in enumerate(digests)
                         if one != digests[0])
        if others:
            raise Error("the ranks' configurations differ",
                        f"SHA-256 of the batch file: rank 0 {digests[0][:12]}{others}",
                        "one batch file, the same on every rank",
                        "ranks that run different configurations issue different collectives, and "
                        "hang or train on different data",
                        "compare batch.json as each of these ranks' nodes sees it")

    def agree_on_versions(self, versions: str) -> None:
        """Error on every rank if the ranks have different versions of the packages."""
        all_versions = self.exchange("versions", versions, self.patience_s)
        for rank, one in enumerate(all_versions):
            if one != all_versions[0]:
                raise Error("the ranks' packages differ",
                            f"rank 0 {all_versions[0]}, rank {rank} {one}",
                            "the same versions on every rank",
                            "each rank would train with other code",
                            "install the same versions on every node")

    def vote(self, boundary: str, code: int) -> list:
        """The codes of all ranks at the end of a phase."""
        limit_s = self.patience_s if code == 0 else self.patience_s / FAILED_SHARE
        return [int(text) for text in self.exchange(f"vote after {boundary}", str(code), limit_s)]

    def join_group(self, backend: str) -> None:
        """Makes PyTorch's default process group over all ranks, unless there is one, also for a
        single rank."""
        import datetime

        import torch.distributed as dist
        if self._grouped:
            return
        # A file that a group was made with must not serve another one.
        self._groups += 1
        store = dist.FileStore(os.path.join(self._store, f"c10d.{self._groups}"),
                               self._place.world_size)
        dist.init_process_group(backend, store=store, rank=self._place.rank,
                                world_size=self._place.world_size,
                                timeout=datetime.timedelta(seconds=self.patience_s))
        self._grouped = True

    def leave_group(self) -> None:
        """Destroys PyTorch's process group, if there is one."""
        if self._grouped:
            import torch.distributed as dist
            dist.destroy_process_group()
            self._grouped = False
