"""The arms of a case in their order, each as suites/arms runs it."""

import time

from graphproof import phase
from graphproof.arms.arm import Arm, Parts, write_comparison
from graphproof.arms.resident import resident_bytes
from graphproof.arms.schedules import run_evaluation, run_in_new_process, run_resumed

# About as long as the host needs for an eager step of a small model, and for its replay.
EAGER_DELAY_MS, REPLAY_DELAY_MS = 10.0, 6.0
DELAYED_EAGER_STEPS = {1: True, 2: False}  # step -> whether all other streams are delayed
STEADY_STEPS, TIMED_STEPS = 9, 3  # of a solo arm (suites/arms/solo.h)
HEAD_START_FACTOR = 2  # of the slowest launch, so that the host stays ahead of the device
KEPT_BYTES = 2 << 30   # results of earlier steps in host memory; beyond it, only the newest


class History:
    """The results of each step in host memory, as long as they fit."""

    def __init__(self):
        self._steps, self._bytes = [], 0

    def add(self, left: list) -> None:
        self._bytes += sum(t.numel() * t.element_size() for _, t in left)
        if self._bytes > KEPT_BYTES:
            self._steps = [None] * len(self._steps)
        self._steps.append(left)

    def at(self, step: int):
        return self._steps[step] if step < len(self._steps) else None

    def last(self) -> list:
        return self._steps[-1]


class _Delays:
    """The steps of an arm before which work is delayed. Writes nothing where nothing can be."""

    def __init__(self, parts: Parts, ms: float):
        self._parts, self._ms, self._steps, self._streams = parts, ms, [], 0

    def before(self, step: int, others: bool) -> None:
        self._streams = max(self._streams, self._parts.device.delay_work(others, self._ms))
        self._steps.append(step)

    def write(self, arm: str) -> None:
        if self._streams > 0:
            self._parts.scope.write("delayed_steps", arm=arm, steps=self._steps, ms=self._ms,
                                    streams=self._streams, branches=0)


def run_eager(parts: Parts, inputs: list, arm: Arm) -> History:
    """eager_a, whose results solo_eager must repeat. It tells where its steps wait for the device
    from the number on that the first captured step has: earlier ones may, to set things up."""
    delays, history = _Delays(parts, EAGER_DELAY_MS), History()
    for step in range(parts.case.steps):
        if step in DELAYED_EAGER_STEPS:
            delays.before(step, DELAYED_EAGER_STEPS[step])
        if parts.case.graphs and step == max(1, parts.case.warmup_steps):
            arm.watch_waits()
        history.add(arm.run(step, inputs[step]))
    delays.write(arm.name)
    arm.write_waits()
    return history


def run_lockstep(parts: Parts, inputs: list, kept: list) -> History:
    """lockstep_eager and lockstep_graph, compared after each step. Before the last one, which has
    the inputs of the capture again, all free memory is overwritten."""
    kept.append(Arm(parts, "lockstep_eager", graphs=False, free=False))
    kept.append(Arm(parts, "lockstep_graph", graphs=True, free=False))
    eager, graph = kept[-2:]
    parts.scope.boundary(phase.CAPTURE)
    history, saved, schedule = History(), None, parts.case.schedule
    for step in range(parts.case.steps + 1):
        last = step == parts.case.steps
        if last:
            overwritten = parts.device.overwrite_free_memory()
            if overwritten > 0:
                parts.scope.write("scribbled", arm=graph.name, step=step, bytes=overwritten)
        left = eager.run(step, inputs[step])
        right = graph.run(step, inputs[step])
        parts.scope.enter(phase.COMPARE, graph.name, step)
        write_comparison(parts, eager.name, graph.name,
                         "capture_inputs_last" if last else "lockstep", step, inputs[step].word,
                         left, right)
        if not last:
            history.add(right)
        if schedule == "resume" and step + 1 == parts.case.resume_step:
            if parts.new_process is not None:
                graph.checkpoint(parts.new_process.folder)
            else:
                saved = graph.save()
        if schedule == "train-eval-train" and step + 1 == parts.case.evaluation_step:
            run_evaluation(parts, eager, graph)
    graph.vote_if_not_captured()
    if saved is not None:
        drop_exclusive(kept)
        run_resumed(parts, inputs, history, saved)
    elif parts.new_process is not None:
        drop_exclusive(kept)
        run_in_new_process(parts, history)
    return history


def run_free(parts: Parts, inputs: list, eager_a: list, kept: list) -> None:
    """free_graph, whose replays wait for nothing, compared at its end with eager_a."""
    drop_exclusive(kept)
    kept.append(Arm(parts, "free_graph", graphs=True, free=True))
    graph, case = kept[-1], parts.case
    parts.scope.boundary(phase.CAPTURE)
    delays = _Delays(parts, REPLAY_DELAY_MS)
    for step in range(case.steps):
        replay = step - case.first_replay
        if replay >= 0:
            delays.before(step, others=replay % 2 == 1)
        graph.run(step, inputs[step])
    graph.finish(case.steps - 1)
    delays.write(graph.name)
    from graphproof.digest import on_host
    right = on_host(graph.outputs())
    graph.vote_if_not_captured()
    parts.scope.enter(phase.COMPARE, graph.name, case.steps - 1)
    write_comparison(parts, "eager_a", graph.name, "free_run", case.steps - 1, "fresh", eager_a,
                     right)


def drop_exclusive(kept: list) -> None:
    """Closes arms whose library has one place in the process for its graphs."""
    for arm in [arm for arm in kept if arm.subject.exclusive]:
        arm.close()
        kept.remove(arm)


def keep_last(parts: Parts, kept: list) -> None:
    """Closes all arms but the last: one live graph is enough for the teardown, and solo arms need
    the memory."""
    for arm in kept[:-1]:
        arm.close()
    del kept[:-1]
    drop_exclusive(kept)
    parts.device.synchronize()


def run_solo(parts: Parts, name: str, graphs: bool, inputs: list, repeated: tuple) -> None:
    """An arm that runs while no other arm works, with times and memory. `repeated`: the arm that
    ran the same steps, its results, and the name of the comparison."""
    def memory(when: str, step: int) -> None:
        parts.scope.write("memory", arm=name, step=step, when=when, **parts.device.memory(),
                          resident=resident_bytes())

    left_arm, history, compared = repeated
    case, device = parts.case, parts.device
    device.synchronize()
    device.empty_cache()
    memory("before", 0)
    arm = Arm(parts, name, graphs=graphs, free=True)
    memory("built", 0)
    if graphs:
        parts.scope.boundary(phase.CAPTURE)
    steps = max(case.first_replay + STEADY_STEPS, case.steps + 1 + TIMED_STEPS)
    slowest_ms = 0.0
    for step in range(steps):
        step_input = inputs[step % case.steps]
        begin = time.monotonic()
        arm.run(step, step_input)
        launch_ms = (time.monotonic() - begin) * 1000
        device.synchronize()
        wall_ms = (time.monotonic() - begin) * 1000
        parts.scope.write("timing", arm=name, step=step, wall_ms=wall_ms, launch_ms=launch_ms)
        memory("step", step)
        if step < case.steps:
            right = arm.results(step, step_input, wall_ms)
            left = history.at(step)
            if left is not None:
                write_comparison(parts, left_arm, name, compared, step, step_input.word, left,
                                 right)
            del right, left
        if step > case.first_replay:
            slowest_ms = max(slowest_ms, launch_ms)
    last = steps - 1
    head_start_ms, launch_ms = HEAD_START_FACTOR * slowest_ms, 0.0

    def one_more() -> None:
        nonlocal launch_ms
        begin = time.monotonic()
        arm.run(steps, inputs[steps % case.steps])
        launch_ms = (time.monotonic() - begin) * 1000

    busy = device.busy_ms(head_start_ms, one_more)
    if busy is not None:
        last = steps
        if launch_ms <= head_start_ms:
            parts.scope.write("busy", arm=name, step=steps, device_ms=busy)
    arm.finish(last)
    arm.vote_if_not_captured()
    parts.scope.enter(phase.TEARDOWN_GRAPH, name, last)
    arm.close()
    del arm, one_more
    device.synchronize()
    memory("dropped", 0)
    device.empty_cache()
    memory("returned", 0)
