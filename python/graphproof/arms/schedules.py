"""What schedules other than train add to lockstep: evaluation between two steps, and a job that
resumes from a checkpoint."""

import os

import torch

from graphproof import checkpoint, phase
from graphproof.arms.arm import Arm, Parts, make_inputs, write_comparison
from graphproof.device.observed_graph import Observed
from graphproof.digest import on_host
from graphproof.poison import canary_words, poison

OTHER_SEED = 1  # added to the seed of the run: what a resumed job draws by itself must not matter
VALIDATION = "validation"  # the graph of evaluation, as the judge knows it


class Evaluator:
    """The evaluations of one arm. With impl full_iteration a graph arm captures a graph of its own
    for them, after as many eager evaluations as steps are warmed up with; any other arm evaluates
    eagerly."""

    def __init__(self, arm: Arm):
        self._arm, self._captured, self._addresses = arm, None, {}
        self._losses = None  # a place of the arm's own, for losses that no static tensor has
        self.evaluations = self.captures = self.replays = self.announced = 0

    def losses(self, number: int, batch) -> list:
        """[("evaluation_losses", tensor)] in host memory of evaluation `number`. Waits for it."""
        arm = self._arm
        case, scope, observer = arm.parts.case, arm.parts.scope, arm.observer
        scope.enter(phase.REPLAY if arm.graphs else phase.EAGER, arm.name, arm.index)
        Observed.observer = observer
        launches = Observed.launches
        captured, replayed = (observer.captures, observer.replays) if observer else (0, 0)
        try:
            if arm.graphs and case.impl == "full_iteration" and number >= case.warmup_steps \
                    and self._captured is None:
                observer.capturing = (VALIDATION, number)
                self._captured = arm.subject.capture_evaluation(batch)
                arm.closes.append(self._captured.close)
            if self._captured is None:
                losses = arm.subject.evaluate(batch)
                arm.parts.device.synchronize()
            else:
                losses = self._replayed(batch)
        finally:
            Observed.observer = None
            if observer:
                observer.capturing = None
                self.captures += observer.captures - captured
                self.replays += Observed.launches - launches
                # The lines of training steps do not count them.
                observer.first_captures += observer.captures - captured
                observer.replays = replayed
        self.evaluations += 1
        return on_host([("evaluation_losses", losses)])

    def _replayed(self, batch):
        arm, captured = self._arm, self._captured
        if self._losses is None:
            self._losses = torch.empty(arm.parts.case.microbatches, device=arm.parts.case.device)
        outputs = [("evaluation_losses",
                    self._losses if captured.losses is None else captured.losses)]
        tensors = [(f"input:{name}", tensor) for name, tensor in captured.inputs.items()] + outputs
        now = {name: tensor.data_ptr() for name, tensor in tensors}
        self._addresses = self._addresses or now
        moved = [{"tensor": name, "captured": f"0x{self._addresses[name]:x}",
                  "now": f"0x{address:x}"} for name, address in now.items()
                 if self._addresses[name] != address]
        arm.parts.scope.write("address", arm=arm.name, step=arm.index, graph=VALIDATION,
                              registered=len(self._addresses), moved=moved)
        filled, launches = poison(outputs), Observed.launches
        arm.observer.begin_step()
        losses = captured.step(batch)
        if captured.losses is None:
            self._losses.copy_(losses)
        arm.parts.device.synchronize()
        self.announced += arm.observer.announced
        arm.parts.scope.write(
            "poison", arm=arm.name, step=arm.index, outputs=1, compared=1, bytes=filled,
            canary_words=canary_words(outputs), launches=Observed.launches - launches,
            announced=arm.observer.announced, inspected=arm.observer.inspected, unregistered=[])
        return losses


def run_evaluation(parts: Parts, eager: Arm, graph: Arm) -> None:
    """Evaluates batches that no step has seen in both arms, and at the end the first one again."""
    case = parts.case
    left, right = Evaluator(eager), Evaluator(graph)
    first = None
    for number in range(case.evaluations):
        batch = graph.subject.batch(case.steps + number)
        expected, found = left.losses(number, batch), right.losses(number, batch)
        first = first or found
        parts.scope.enter(phase.COMPARE, graph.name, graph.index)
        write_comparison(parts, eager.name, graph.name, "evaluation", number, "fresh", expected,
                         found)
    again = right.losses(case.evaluations, graph.subject.batch(case.steps))
    write_comparison(parts, graph.name, graph.name, "evaluation_repeats", case.evaluations, "fresh",
                     first, again)
    parts.scope.write("evaluated", arm=graph.name, step=case.evaluation_step,
                      evaluations=right.evaluations, captures=right.captures,
                      replays=right.replays, announced=right.announced)


def run_resumed(parts: Parts, inputs: list, history, saved: dict) -> None:
    """A job that loads the checkpoint into a new model, warms up and captures; then the checkpoint
    is loaded again, under its live graphs. Both end as the job that saved it did."""
    case = parts.case
    arm = Arm(parts, "resumed", graphs=True, free=True, seed=case.seed + OTHER_SEED)
    parts.scope.boundary(phase.CAPTURE)
    for name in ("resumed", "loaded"):
        arm.load(saved)
        _go_on(parts, arm, name, case.resume_step, inputs, history.at)
    parts.scope.write("resumed", arm="resumed", step=case.resume_step,
                      replays=arm.observer.replays)
    _end(parts, arm)


def _go_on(parts: Parts, arm: Arm, name: str, first: int, inputs: list, result_of) -> None:
    """Runs the steps from `first` on, and compares each with result_of(step), unless that is
    None."""
    for index in range(first, parts.case.steps):
        arm.run(index, inputs[index])
        parts.device.synchronize()
        left = result_of(index)
        if left is not None:
            parts.scope.enter(phase.COMPARE, arm.name, index)
            write_comparison(parts, "lockstep_graph", name, name, index, inputs[index].word, left,
                             on_host(arm.outputs()))


def _end(parts: Parts, arm: Arm) -> None:
    arm.vote_if_not_captured()
    parts.scope.enter(phase.TEARDOWN_GRAPH, arm.name, parts.case.steps)
    arm.close()


def run_in_new_process(parts: Parts, history) -> None:
    """Has the checkpoint of this case loaded by a job in a new process (resume_from_files), whose
    steps are compared with those in `history`."""
    case, resumption = parts.case, parts.new_process
    results = {step: history.at(step) for step in range(case.resume_step, case.steps)}
    checkpoint.write(resumption.folder, case.rank, "results", results)
    parts.scope.enter(phase.BUILD, "resumed", case.resume_step)
    resumption.run(parts)


def resume_from_files(parts: Parts, folder: str) -> None:
    """A job that loads a checkpoint from files into a new model, warms up, captures and goes on."""
    case = parts.case
    arm = Arm(parts, "resumed", graphs=True, free=True, seed=case.seed + OTHER_SEED)
    inputs = make_inputs(parts, arm)
    results = checkpoint.read(folder, case.rank, "results")
    parts.scope.boundary(phase.CAPTURE)
    first = arm.restore(folder)
    _go_on(parts, arm, "resumed", first, inputs, results.get)
    parts.scope.write("resumed", arm="resumed", step=first, replays=arm.observer.replays,
                      process=os.getpid())
    _end(parts, arm)
