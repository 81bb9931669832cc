"""The observer of a graph arm: evidence of captures, and what was seen of the replays of a step."""

from graphproof import phase
from graphproof.device.observed_graph import Observer
from graphproof.digest import Hash64, digest


class ArmObserver(Observer):
    """Writes `capture` and `state`, and votes after each capture, or after a step with captures
    where ranks do not capture alike. Collects what the arm writes about a step's replays. Used from
    one thread."""

    def __init__(self, arm):
        self._arm = arm
        self._state = self._counter = None
        self.captured = False        # a capture has ended, successfully or not
        self._vote_is_due = False    # of a capture that has ended
        self.captures = self.first_captures = self.replays = 0
        self.pools, self.generators = set(), 0
        self.out_of_order = 0
        self.capturing = None        # (name, runs of its work before) of a graph besides the step's
        self._places = {}            # graph index in the process -> place in this arm's captures
        self._first_of_pool, self._last_of_pool = {}, {}
        self._of_no_step = set()     # places of graphs besides the step's
        self.announced = self.inspected = 0
        self.operands = None         # (blocks, freed) of the step, once a replay was announced

    def _state_digest(self) -> str:
        hash64 = Hash64()
        hash64.add_text(digest(self._arm.state()))
        for name, text in self._arm.generator_states().items():
            hash64.add_text(name)
            hash64.add_text(text)
        return hash64.hex()

    def before_capture(self, index: int) -> None:
        scope = self._arm.parts.scope
        scope.enter(phase.CAPTURE, self._arm.name, self._arm.index)
        scope.boundary(phase.CAPTURE)
        self._arm.parts.device.synchronize()
        self._state, self._counter = self._state_digest(), self._arm.counters.values()
        self._places[index] = self.captures
        self.captures += 1

    def after_capture(self, info) -> None:
        if info.nodes == 0 and self._arm.subject.empty_graphs:
            # It is no graph of the step: were it launched, nobody would have announced that.
            del self._places[info.index]
            self.captures -= 1
        else:
            self._write(info, None)
            self._arm.parts.scope.write("state", arm=self._arm.name, what="capture",
                                        before=self._state, after=self._state_digest())
        self._vote_is_due = True
        if self._arm.subject.captures_alike:
            self.vote_if_due()
        else:
            self._arm.parts.scope.boundary(phase.REPLAY)
        self._arm.parts.scope.enter(phase.REPLAY, self._arm.name, self._arm.index)

    def vote_if_due(self) -> None:
        """Votes for the captures since the last vote, if there were any."""
        if not self._vote_is_due:
            return
        self._vote_is_due = False
        self._arm.parts.scope.boundary(phase.CAPTURE)
        self._arm.parts.scope.vote(0)
        self._arm.parts.scope.boundary(phase.REPLAY)

    def failed_capture(self, info, error: BaseException) -> None:
        self._write(info, error)
        self._arm.parts.scope.vote(int(getattr(error, "error_code", 0)) or 1)

    def _write(self, info, error) -> None:
        arm = self._arm
        self.captured = True
        place = self._places[info.index]
        names = arm.subject.graphs
        name = names[place] if place < len(names) else f"graph.{place}"
        warmups = arm.eager_steps
        if self.capturing is not None:
            name, warmups = self.capturing
            self._of_no_step.add(place)
        self.pools.add(info.pool)
        self._first_of_pool.setdefault(info.pool, place)
        self.generators = max(self.generators, info.generators)
        module = arm.subject.captured_modules.get(name)
        runs = arm.counters.runs.get(module)
        code = int(getattr(error, "error_code", 0) or (1 if error else 0))
        arm.parts.scope.write(
            "capture", arm=arm.name, graph=name, status="error" if error else "ok", code=code,
            site="", message=str(error).splitlines()[0] if error else "", mode=info.mode,
            ms=info.ms, nodes=info.nodes, census=info.census, signature=info.signature,
            pool_bytes=info.pool_bytes, warmups=warmups, pools=len(self.pools),
            generators=self.generators, generators_wanted=len(arm.generators()),
            counter_before=self._counter,
            # Reading the device after a failed capture may fail, and hide the capture's failure.
            counter_after=self._counter if error else arm.counters.values(),
            module_runs={"forwards": runs.forwards, "backwards": runs.backwards} if runs else None)

    def owns(self, graph) -> bool:
        """Whether the graph was captured in this arm."""
        return graph.info is not None and graph.info.index in self._places

    def before_replay(self, graph) -> None:
        place = self._places.get(graph.info.index if graph.info else -1)
        if place is None:
            return  # a graph of another arm: a launch that nobody announced
        if place not in self._of_no_step:
            self._note_order(place, graph.info.pool)
        self.replays += 1
        self.announced += 1
        storages = graph.operands()
        if storages is not None:
            blocks, freed = self.operands or (0, [])
            self.operands = (blocks + len(storages.external), freed + storages.freed())

    def _note_order(self, place: int, pool: tuple) -> None:
        # A microbatch begins again with the first graph of the pool.
        if place != self._first_of_pool.get(pool) and place <= self._last_of_pool.get(pool, -1):
            self.out_of_order += 1
        self._last_of_pool[pool] = place

    def after_replay(self, graph) -> None:
        self.inspected += 1

    def begin_step(self) -> None:
        self.announced = self.inspected = 0
        self.operands = None

    def note_captures(self) -> None:
        """All graphs are captured in the first step that captures any; later ones are
        recaptures."""
        if self.first_captures == 0:
            self.first_captures = self.captures
