"""The end of a case: graphs, buffers, communicators, device, in the order of axis `teardown`.

A step runs on the caller's thread and cannot be interrupted. If its limit passes, another thread
writes its line; then the launcher, which sees all ranks, has some time to report the hang. After
that the process ends itself.
"""

import os
import threading
import time

from graphproof import phase

EXIT_OVERRUN = 11
WATCHER_GRACE_S = 30.0


class Teardown:
    """Runs the steps. Used from one thread."""

    def __init__(self, scope, limits_ms: dict):
        self._scope, self._limits_ms, self._order = scope, limits_ms, 0

    def step(self, name: str, in_phase: str, action, in_flight=lambda: None) -> None:
        """Runs `action` and writes its line. `in_flight()`: how many graphs were destroyed while
        they ran, asked once the action has ended; None if that is not known."""
        self._scope.enter(in_phase, "", 0)
        self._order += 1
        order, limit_ms = self._order, self._limits_ms[in_phase]
        begin, done = time.monotonic(), threading.Event()

        def line() -> dict:
            return {"step": name, "order": order, "ms": (time.monotonic() - begin) * 1000,
                    "limit_ms": limit_ms, "in_flight": in_flight()}

        def watch() -> None:
            if done.wait(limit_ms / 1000):
                return
            self._scope.write("teardown", **line())
            if not done.wait(WATCHER_GRACE_S):
                os._exit(EXIT_OVERRUN)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            action()
        finally:
            done.set()
            watcher.join()
        self._scope.write("teardown", **line())


def tear_down(parts, world, kept: list, inputs: list, limits_ms: dict, comm_first: bool,
              last: bool) -> None:
    """Tears a case down. `last`: no later case of this process needs the process group."""
    steps, scope, device = Teardown(parts.scope, limits_ms), parts.scope, parts.device

    def graphs_and_buffers() -> None:
        device.synchronize()
        # Of all arms: some have destroyed theirs before, because a library has one place for them.
        drops = parts.drops
        steps.step("graphs", phase.TEARDOWN_GRAPH, lambda: [arm.drop_graphs() for arm in kept],
                   in_flight=lambda: drops.running if drops.graphs > 0 else None)

        def buffers() -> None:
            for arm in kept:
                arm.close()
            kept.clear()
            inputs.clear()
            device.synchronize()
            device.empty_cache()

        steps.step("buffers", phase.TEARDOWN_GRAPH, buffers)

    def communicators() -> None:
        def leave() -> None:
            if last or comm_first:
                world.leave_group()

        steps.step("communicators", phase.TEARDOWN_COMM, leave)

    order = [(phase.TEARDOWN_GRAPH, graphs_and_buffers), (phase.TEARDOWN_COMM, communicators)]
    for boundary, work in reversed(order) if comm_first else order:
        scope.section(boundary, work)
    scope.section(phase.TEARDOWN_PROCESS,
                  lambda: steps.step("device", phase.TEARDOWN_PROCESS, device.synchronize))
