"""Training steps whose microbatches have different lengths, and the lengths that they are padded
to, as workloads/training/lengths.h has them.

The seq_length S of a case is cut into `bound` + 2 equal pieces. The ends of all pieces but the last
are the buckets: one more than a cache of `bound` graphs holds. A step may exceed the largest.
Letters: M microbatches, B sequences of a microbatch.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from graphproof.case import Case
from graphproof.message import Error

SHORTEST = 2  # tokens: a token and its label
IGNORED = -100  # the label that torch.nn.functional.cross_entropy leaves out, by its default


@dataclass(frozen=True)
class LengthSchedule:
    """Lengths in tokens. `steps`: for each step the bucket of its longest microbatch, or None if
    that exceeds the largest bucket."""
    seq_length: int
    buckets: tuple
    steps: tuple

    def longest(self, step: int) -> int:
        """The longest microbatch of a step on any rank. The steps of a bucket cycle through all
        lengths that no smaller bucket holds."""
        end = self.steps[step] or self.seq_length
        below = max([SHORTEST - 1, *(length for length in self.buckets if length < end)])
        return end - step % (end - below)


def length_schedule(seq_length: int, bound: int, warmup_steps: int) -> LengthSchedule:
    """The steps of a cache of `bound` buckets that captures after `warmup_steps` eager uses of a
    length. Every bucket is warmed up, used and used again. The first stays in use while the last
    one evicts another, which is then used again. Error if S is too short for distinct buckets."""
    buckets = tuple(seq_length * piece // (bound + 2) for piece in range(1, bound + 2))
    if buckets[0] < SHORTEST:
        raise Error(f"{bound + 1} shape buckets", f"seq_length {seq_length}",
                    f"at least {SHORTEST * (bound + 2)}", "each bucket needs a length of its own",
                    "change seq_length or shape_buckets")
    uses = [[bucket] * (warmup_steps + 1) for bucket in buckets[:-1]]
    last = buckets[-1]
    uses += [[buckets[0]],                   # the oldest graph is now the most recently used
             [last] * (warmup_steps + 1),    # evicts the least recently used
             [None],
             [buckets[1 if bound > 1 else 0]],  # the evicted bucket is used again
             [last, last, None, buckets[0]]]
    return LengthSchedule(seq_length, buckets, tuple(step for part in uses for step in part))


def uneven_batch(case: Case, whole: dict, schedule: LengthSchedule, step: int) -> dict:
    """The beginnings of the samples `whole`, tokens and labels [M, B, S] of a step: for each
    microbatch a tensor [B, length]. The longest of all is microbatch 0 of rank 0, so that every
    rank knows it."""
    longest, lengths = schedule.longest(step), []
    for microbatch in range(case.microbatches):
        number = case.rank * case.microbatches + microbatch
        drawn = torch.Generator().manual_seed(case.seed * 1_000_003 + step * 1009 + number)
        lengths.append(longest if number == 0 else int(
            torch.randint(SHORTEST, longest + 1, (), generator=drawn)))
    return {name: [one[:, :length].contiguous() for one, length in zip(values, lengths)]
            for name, values in whole.items()}


def padded(batch: dict, length: int, filler: int) -> dict:
    """tokens and labels [M, B, length]: every microbatch with tokens `filler` at its end, which no
    token attends to, and with labels that no loss counts."""
    fillers = {"tokens": filler, "labels": IGNORED}
    return {name: torch.stack([F.pad(one, (0, length - one.shape[-1]), value=fillers[name])
                               for one in values]) for name, values in batch.items()}
