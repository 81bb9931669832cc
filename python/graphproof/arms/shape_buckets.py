"""The axis shape_buckets: steps of changing sequence length from a bounded cache of graphs, one for
each length, compared with an eager copy whose padding has other tokens.

The cache is this project's own; PyTorch keeps every graph. Its lookup, its warm-up and evictions
are those of workloads/engines/shape_buckets.h, by which D43.shape_buckets judges.
"""

from bisect import bisect_left
from dataclasses import dataclass

from graphproof import phase
from graphproof.arms.arm import Arm, Parts, write_comparison
from graphproof.arms.bounds import reordered_bound
from graphproof.arms.lengths import LengthSchedule, length_schedule, padded, uneven_batch
from graphproof.comparison import distance
from graphproof.device.observed_graph import Observed, Observer
from graphproof.digest import on_host
from graphproof.learning_rate import schedule_of, set_rate
from graphproof.subject import Captured


class Captures(Observer):
    """Counts the captures of an arm, and the bytes that those of a step added to graph pools."""

    def __init__(self):
        self.begun = self.bytes = 0

    def before_capture(self, index: int) -> None:
        self.begun += 1

    def after_capture(self, info) -> None:
        self.bytes += info.pool_bytes

    def take_bytes(self) -> int:
        taken, self.bytes = self.bytes, 0
        return taken


@dataclass
class Resident:
    """The graphs of a length. `mark`: behind their latest replay."""
    length: int
    captured: Captured
    mark: object = None


class GraphCache:
    """Steps of a subject by graphs of at most `bound` lengths. A step beyond the largest bucket is
    eager, and so are the first `warmup_steps` of a bucket; one that was evicted is captured again
    without eager steps. Used from one thread."""

    def __init__(self, device, subject, buckets: tuple, bound: int, warmup_steps: int):
        self.device, self.subject, self.buckets = device, subject, buckets
        self.bound, self.warmup_steps = bound, warmup_steps
        self.residents = []  # the most recently used first
        self.uses = {}       # bucket -> its eager steps
        self.length, self.replayed, self.evicted, self.in_flight = 0, False, [], 0

    def bucket_of(self, longest: int) -> int | None:
        """The smallest bucket that holds a microbatch of this length, if any does."""
        place = bisect_left(self.buckets, longest)
        return self.buckets[place] if place < len(self.buckets) else None

    def step(self, batch: dict, longest: int):
        """The losses of a step, whose microbatches are padded here."""
        bucket = self.bucket_of(longest)
        self.length, self.replayed, self.evicted = bucket or longest, False, []
        ready = padded(batch, self.length, filler=0)
        resident = self._found(bucket)
        if bucket is None or resident is None and self._warms_up(bucket):
            self._leave()
            return self.subject.step(ready)
        if resident is None:
            while len(self.residents) >= self.bound:
                self._evict()
            self._leave()
            resident = Resident(bucket, self.subject.capture(self.subject.step, ready))
            self.residents.insert(0, resident)
        self.replayed = True
        losses = resident.captured.step(ready)
        resident.mark = self.device.mark()
        return losses

    def _warms_up(self, bucket: int) -> bool:
        """Whether this step of a bucket is one of its first, and counts it then."""
        warms_up = self.uses.setdefault(bucket, 0) < self.warmup_steps
        self.uses[bucket] += warms_up
        return warms_up

    def _found(self, bucket: int | None) -> Resident | None:
        for place, resident in enumerate(self.residents):
            if resident.length == bucket:
                self.residents.insert(0, self.residents.pop(place))
                return resident
        return None

    def _leave(self) -> None:
        for resident in self.residents:
            resident.captured.leave()

    def _evict(self) -> None:
        resident = self.residents.pop()
        self.evicted.append(resident.length)
        self.device.synchronize()
        self.drop(resident)
        del resident
        self.device.return_memory()

    def drop(self, resident: Resident) -> None:
        """Destroys the graphs of a length. The caller has waited for their last replay."""
        self.in_flight += resident.mark is not None and not resident.mark.query()
        resident.captured.close()

    def close(self) -> None:
        self.device.synchronize()
        while self.residents:
            self.drop(self.residents.pop())
        self.device.return_memory()


class BucketArms:
    """Two subjects of one seed that run the same steps: one eagerly, one from the cache."""

    def __init__(self, parts: Parts, schedule: LengthSchedule, batches: list):
        case = parts.case
        self.parts, self.schedule, self.batches = parts, schedule, batches
        self.eager = Arm(parts, "buckets_eager", graphs=False, free=True)
        self.graph = Arm(parts, "buckets_graph", graphs=True, free=True)
        self.cache = GraphCache(parts.device, self.graph.subject, schedule.buckets,
                                case.shape_buckets, case.warmup_steps)
        self.captures, self.replays = Captures(), 0
        self.pool_before = parts.device.memory()["pool"]  # of other live arms

    def run(self, index: int) -> None:
        """Runs a step in both. Waits only for captures and evictions."""
        scope, batch, longest = self.parts.scope, self.batches[index], self.schedule.longest(index)
        for arm in (self.graph, self.eager):
            set_rate(arm.subject.optimizer, schedule_of(arm.subject.optimizer).at(index))
        scope.enter(phase.REPLAY, self.graph.name, index)
        launches, Observed.observer = Observed.launches, self.captures
        Observed.notes_operands = False
        try:
            self.graph.keep_losses(self.cache.step(batch, longest))
        finally:
            Observed.observer = None
        self.replays += Observed.launches - launches
        scope.enter(phase.EAGER, self.eager.name, index)
        length = self.schedule.steps[index] or longest
        self.eager.keep_losses(self.eager.subject.step(
            padded(batch, length, filler=self.parts.case.vocab - 1)))

    def compare(self, name: str, index: int) -> None:
        self.parts.device.synchronize()
        self.parts.scope.enter(phase.COMPARE, self.graph.name, index)
        write_comparison(self.parts, self.eager.name, self.graph.name, name, index, "fresh",
                         on_host(self.eager.outputs()), on_host(self.graph.outputs()))

    def write_step(self, index: int) -> None:
        cache = self.cache
        self.parts.scope.write(
            "bucket", arm=self.graph.name, step=index, longest=self.schedule.longest(index),
            length=cache.length, replayed=cache.replayed, captures=self.captures.begun,
            replays=self.replays, resident=[one.length for one in cache.residents],
            evicted=cache.evicted, captured_bytes=self.captures.take_bytes(),
            pool_bytes=self.parts.device.memory()["pool"] - self.pool_before)

    def close(self, run: str) -> None:
        """Writes how many lengths were evicted while the device still ran their graphs, which can
        happen in a free run alone, and closes both arms."""
        self.parts.scope.write("evictions", arm=self.graph.name, run=run,
                               step=len(self.batches) - 1, in_flight=self.cache.in_flight)
        self.cache.close()
        self.graph.close()
        self.eager.close()


def write_padding(arm: Arm, schedule: LengthSchedule, batches: list) -> None:
    """Compares the first step of each bucket, from the initial weights of `arm`, once padded and
    once with each microbatch at its own length."""
    parts, case = arm.parts, arm.parts.case
    saved, bound = arm.save(), reordered_bound(case)

    def results(batch: dict) -> list:
        arm.load(saved)
        arm.keep_losses(arm.subject.step(batch))
        return on_host([(name, tensor) for name, tensor in arm.outputs()
                        if name.startswith(("losses", "grad:"))])

    for bucket in schedule.buckets:
        index = schedule.steps.index(bucket)
        parts.scope.enter(phase.EAGER, arm.name, index)
        bare = results(batches[index])
        filled = results(padded(batches[index], bucket, filler=case.vocab - 1))
        parts.scope.write("padding", step=index, length=bucket,
                          lengths=[one.shape[-1] for one in batches[index]["tokens"]],
                          **distance(filled, bare, *bound))


def run_shape_buckets(parts: Parts) -> None:
    """Lockstep (comparison buckets), then new arms without a wait between their steps."""
    case = parts.case
    schedule = length_schedule(case.seq_length, case.shape_buckets, case.warmup_steps)
    arm = Arm(parts, "padding", graphs=False, free=True)
    # Made in advance, because a copy from the host waits for the stream.
    batches = [uneven_batch(case, arm.subject.batch(step), schedule, step)
               for step in range(len(schedule.steps))]
    last = len(batches) - 1
    write_padding(arm, schedule, batches)
    arm.close()
    arms = BucketArms(parts, schedule, batches)
    for index in range(len(batches)):
        arms.run(index)
        arms.compare("buckets", index)
        arms.write_step(index)
    arms.close("buckets")
    arms = BucketArms(parts, schedule, batches)
    for index in range(len(batches)):
        arms.run(index)
    arms.compare("buckets_free_run", last)
    arms.close("buckets_free_run")
