"""One arm of a case: a subject built anew, its graphs, and the evidence of each step."""

import contextlib
import math
import random
import sys
import time
from dataclasses import dataclass, field

import torch

from graphproof import checkpoint, phase
from graphproof.arms.counting import DropoutMasks, LayerCounters
from graphproof.arms.host_waits import HostWaits
from graphproof.arms.observer import ArmObserver
from graphproof.case import Case
from graphproof.comparison import compare
from graphproof.device.observed_graph import Observed
from graphproof.device.storages import has_storage
from graphproof.digest import digest, digest_of, on_host
from graphproof.learning_rate import (adam_steps, effective_rate, is_adam, schedule_of, set_rate,
                                      unknown_update, watched)
from graphproof.message import Error
from graphproof.poison import canary_words, poison
from graphproof.recomputes import Recomputes
from graphproof.scope import CaseScope
from graphproof.subject import (capture_whole_step, checked, gradient_of, local,
                                tensors_of, whole)


# What a step changes and does not write anew: it is compared, and never filled with poison.
KEPT = ("param:", "buffer:", "state:")


@dataclass
class Drops:
    """The graphs that the arms of a case have destroyed so far. `running`: of how many the device
    still ran the latest launch."""
    graphs: int = 0
    running: int = 0


@dataclass
class Parts:
    """What all arms of a case are built from."""
    scope: CaseScope
    device: object
    case: Case
    build: object  # build(case) -> Subject
    stream: object  # where everything of the case runs and is captured
    new_process: object = None  # case_run.Resumption, if a job resumes in a process of its own
    drops: Drops = field(default_factory=Drops)


@dataclass
class StepInput:
    """The inputs of a step. `word`: "capture" for those of the capture, "fresh" for all others."""
    batch: object
    word: str


def built(parts: Parts, graphs: bool):
    """What build(case) returns for an arm. Error if a package of the subject cannot be imported."""
    try:
        return parts.build(parts.case.of_arm(graphs))
    except ImportError as error:
        raise Error(f"an import of subject {parts.case.axis('subject', 'script')}",
                    f"{type(error).__name__}: {error}", "packages that can be imported",
                    "their versions are right by the metadata, but this code does not load",
                    f"import them alone with {sys.executable}, and install what they lack") \
            from error


def named(tensors: list, prefix: str) -> list:
    return [(name, tensor) for name, tensor in tensors if name.startswith(prefix)]


class Arm:
    """Used from one thread, with the case's stream current.

    `free`: nothing waits for the device between the first and the last step, except captures.
    """

    def __init__(self, parts: Parts, name: str, graphs: bool, free: bool, seed: int | None = None):
        self.parts, self.name, self.graphs, self.free = parts, name, graphs, free
        seed = parts.case.seed if seed is None else seed
        self.index = self.fallbacks = self.eager_steps = 0
        self.waits = None  # HostWaits, in arms whose waits for the device are told
        self.closes = []  # what drops graphs that are not of the captured step
        self.captured = self._losses = self._handed = None
        self._registered = {}
        parts.scope.enter(phase.BUILD, name, 0)
        random.seed(seed)
        torch.manual_seed(seed)
        self.subject = checked(built(parts, graphs), parts.case)
        self.counters = LayerCounters(self.subject.layers,
                                      self.subject.captured_modules.values(), parts.case.device,
                                      self.subject.counts_compiled,
                                      self.subject.layer_methods, self.subject.warming_up)
        scope, warming_up = parts.scope, self.subject.warming_up
        # A call that captures may also warm up, and is no step.
        self.recomputes = Recomputes(lambda: scope.capturing or warming_up())
        self.masks = DropoutMasks(self.subject.model if self.subject.keeps_masks else None)
        self.observer = ArmObserver(self) if graphs else None
        # Those without gradients too: a step may move them, as it moves averages of weights.
        self.parameters = [(f"param:{name}", parameter)
                           for name, parameter in self.subject.model.named_parameters()]
        # Every arm draws from the same generators, so each keeps its own states between its steps.
        torch.manual_seed(seed)
        self._states = self._generator_tensors()

    # ---- what a step leaves

    def generators(self) -> dict:
        return {**self.parts.device.generators, **self.subject.generators()}

    def _generator_tensors(self) -> dict:
        return {name: generator.get_state() for name, generator in self.generators().items()}

    def generator_states(self) -> dict:
        """name -> "SEED:OFFSET" on a GPU, a digest of the state on the CPU."""
        texts = {}
        for name, generator in self.generators().items():
            if generator.device.type == "cuda":
                texts[name] = f"{generator.initial_seed()}:{generator.get_offset()}"
            else:
                texts[name] = digest_of(generator.get_state())
        return texts

    def state(self) -> list:
        """Parameters, buffers of the model, what else the optimizer updates, and the tensors of its
        state."""
        tensors = [(name, local(parameter)) for name, parameter in self.parameters]
        tensors += [(f"buffer:{name}", buffer)
                    for name, buffer in self.subject.model.named_buffers()
                    if self.subject.compared_buffers(name) and has_storage(buffer)]
        optimizer = self.subject.optimizer
        if optimizer is not None:
            names = {id(parameter): name.removeprefix("param:")
                     for name, parameter in self.parameters}
            # Megatron-Core's optimizers hold copies in fp32, which the model does not name. What
            # they have below the precision of the model shows in later steps alone.
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if id(parameter) not in names:
                        names[id(parameter)] = copy = f"copy {len(names)}"
                        tensors.append((f"state:{copy}", local(parameter)))
            for parameter, values in optimizer.state.items():
                for key, value in values.items():
                    if isinstance(value, torch.Tensor):
                        name = names.setdefault(id(parameter), f"copy {len(names)}")
                        tensors.append((f"state:{name}.{key}", local(value)))
        return tensors

    def outputs(self) -> list:
        """The results of a step as they lie on the device: losses, gradients, parameters, buffers
        and optimizer state, dropout masks."""
        gradients = [(name.replace("param:", "grad:", 1), gradient_of(parameter))
                     for name, parameter in self.parameters
                     if gradient_of(parameter) is not None]
        losses = [("losses", self._losses)] if self._losses is not None else []
        return losses + gradients + self.state() + self.masks.named()

    # ---- checkpoints

    def save(self) -> dict:
        """A checkpoint of the subject and of the generators' states, after the last step."""
        return {"subject": self.subject.save(), "generators": dict(self._states)}

    def load(self, saved: dict) -> None:
        """Loads a checkpoint, also under live graphs."""
        self.subject.load(saved["subject"])
        self._states = dict(saved["generators"])

    def checkpoint(self, folder: str) -> None:
        """Writes a checkpoint of the subject, of the generators' states and of the step, after the
        last step."""
        rank, subject = self.parts.case.rank, self.subject
        checkpoint.write(folder, rank, "job", {"next_step": self.index + 1,
                                               "generators": dict(self._states)})
        if subject.checkpoint is not None:
            subject.checkpoint(folder)
        else:
            checkpoint.save_states(folder, rank, model=subject.model, optimizer=subject.optimizer)

    def restore(self, folder: str) -> int:
        """Loads a checkpoint that another process has written, ahead of the first step, and returns
        the number of the next step."""
        rank, subject = self.parts.case.rank, self.subject
        if subject.restore is not None:
            subject.restore(folder)
        else:
            checkpoint.load_states(folder, rank, model=subject.model, optimizer=subject.optimizer)
        job = checkpoint.read(folder, rank, "job")
        self._states = job["generators"]
        return job["next_step"]

    # ---- steps

    def run(self, index: int, step_input: StepInput):
        """Runs step `index`. Unless the arm is free, waits for it and returns its results in host
        memory."""
        self.index = index
        case, scope, device = self.parts.case, self.parts.scope, self.parts.device
        warming_up = self.graphs and self.captured is None and \
            self.eager_steps < case.first_replay
        scope.enter(phase.EAGER if not self.graphs else phase.WARMUP if warming_up
                    else phase.REPLAY, self.name, index)
        for name, generator in self.generators().items():
            generator.set_state(self._states[name])
        rate = schedule_of(self.subject.optimizer).at(index)
        if self.subject.optimizer is not None:
            set_rate(self.subject.optimizer, rate)
        Observed.observer, Recomputes.current = self.observer, self.recomputes
        Observed.notes_operands = "D05.operands_alive" not in self.subject.unobserved
        try:
            if self.graphs and not warming_up and self.captured is None:
                self._capture(step_input.batch)
            left = None
            if self.free:
                launches = Observed.launches
                self._step(step_input.batch)
                if self.graphs and not warming_up:
                    self.fallbacks += Observed.launches == launches
            else:
                left = self._inspected(index, step_input, rate, warming_up)
            if self.observer:
                self.observer.vote_if_due()
            return left
        finally:
            Observed.observer = Recomputes.current = None
            if self.observer:
                self.observer.note_captures()
            self._states = self._generator_tensors()

    def _capture(self, batch) -> None:
        before, counted = self._generator_tensors(), self.counters.tensor.clone()
        scope = self.parts.scope
        scope.enter(phase.CAPTURE, self.name, self.index)
        scope.boundary(phase.CAPTURE)
        self.parts.device.synchronize()
        scope.capturing = True  # also after an error, which then is one of the capture
        if self.subject.capture is not None:
            self.captured = self.subject.capture(self.subject.step, batch)
        else:
            self.captured = capture_whole_step(self.subject.step, batch,
                                               self.parts.case.capture_mode,
                                               self.subject.generators().values())
        scope.capturing = False
        if self.captured.losses is not None:
            self._losses = self.captured.losses
        # The passes that a library runs to warm up are no steps, their launches are no replays, and
        # eager steps do not draw their random numbers.
        self.counters.tensor.copy_(counted)
        self.observer.replays = 0
        scope.boundary(phase.REPLAY)
        scope.enter(phase.REPLAY, self.name, self.index)
        for name, generator in self.generators().items():
            generator.set_state(before[name])

    def keep_losses(self, losses: torch.Tensor) -> None:
        """The losses of a step that the caller ran by itself, for outputs()."""
        self._losses = losses.detach().reshape(-1).clone()

    def watch_waits(self) -> None:
        """Has the eager steps from now on tell where they wait for the device. Nothing to tell if
        the subject captures without saying what."""
        subject = self.subject
        if subject.capture is None or subject.captured_calls:
            self.waits = HostWaits(self.parts.device,
                                   subject.captured_calls if subject.capture else None)

    def write_waits(self) -> None:
        if self.waits is not None:
            self.parts.scope.write("host_waits", arm=self.name, **self.waits.line())

    def _step(self, batch):
        with self.waits.watched() if self.waits else contextlib.nullcontext():
            losses = (self.captured.step if self.captured else self.subject.step)(batch)
        if not isinstance(losses, torch.Tensor):
            raise Error(f"step {self.index} of the subject", type(losses).__name__,
                        "a tensor with one loss for each microbatch",
                        "the losses of all arms are compared", "return torch.stack(losses)")
        losses = losses.detach().reshape(-1)
        if self.captured is None or self.captured.losses is None:
            # A place of the arm's own: losses that are not made by a graph lie elsewhere each step.
            if self._losses is None:
                self._losses = torch.empty_like(losses)
            self._losses.copy_(losses)
        if self.captured is None:
            self.eager_steps += 1
        return losses

    def _inspected(self, index: int, step_input: StepInput, rate: float, warming_up: bool):
        case, scope, device = self.parts.case, self.parts.scope, self.parts.device
        optimizer = self.subject.optimizer
        known = not unknown_update(optimizer) and \
            "D04.learning_rate" not in self.subject.unobserved
        moved = local(watched(optimizer)[0].detach()).clone() if known else None
        skipped = self.subject.skipped() if known else 0
        scale = self.subject.loss_scale()
        generators = self.generator_states() if case.dropout else {}
        replaying = self.graphs and not warming_up
        if replaying:
            self.observer.begin_step()
            statics, compared = self._before_replay()
        counter, launches = self.counters.values(), Observed.launches
        device.synchronize()
        begin = time.monotonic()
        losses = self._step(step_input.batch)
        device.synchronize()
        ms = (time.monotonic() - begin) * 1000
        left = on_host(self.outputs())
        self._write_step(index, step_input, ms, rate, left)
        if replaying:
            launched = Observed.launches - launches
            self.fallbacks += launched == 0
            self._write_replay(index, counter)
            self._write_poison(index, statics, compared, launched)
            if self.observer.operands is not None:
                blocks, freed = self.observer.operands
                scope.write("operands", arm=self.name, step=index, blocks=blocks, freed=freed)
        if self.graphs:
            self._write_handed_out(index, losses)
        for name, before in generators.items():
            scope.write("rng", arm=self.name, step=index, generator=name, before=before,
                        after=self.generator_states()[name],
                        mask=digest(self.masks.named()) if self.masks.named() else "")
        if scale is not None:
            scope.write("hyperparameter", arm=self.name, step=index, name="loss_scale", host=scale,
                        effective=self.subject.used_scale(), bound=0.0)
        if known:
            self._write_hyperparameters(index, rate, moved, skipped)
        return left

    # ---- lines

    def results(self, index: int, step_input: StepInput, ms: float) -> list:
        """Writes the `step` line of a step that the caller has waited for."""
        left = on_host(self.outputs())
        self._write_step(index, step_input, ms, schedule_of(self.subject.optimizer).at(index), left)
        return left

    def _write_step(self, index: int, step_input: StepInput, ms: float, rate: float,
                    left: list) -> None:
        losses, gradients = named(left, "losses"), named(left, "grad:")
        if self.subject.optimizer is not None and not gradients:
            raise Error(f"step {index} of arm {self.name}", "no parameter with a gradient",
                        "the gradients of the step", "they are compared between the arms",
                        "set the gradients to zero at the beginning of a step, not at its end")
        losses_digest = digest(losses)
        self.parts.scope.write(
            "step", arm=self.name, step=index, input=step_input.word,
            loss=[float(value) for _, tensor in losses for value in tensor.double().tolist()],
            loss_bits=losses_digest,
            grad_norm=math.sqrt(sum(float(tensor.double().square().sum())
                                    for _, tensor in gradients)),
            # Whole parameters, so that ranks that hold parts of one model can be compared.
            digest={"grads": digest(gradients), "losses": losses_digest,
                    "params": digest([(name, whole(parameter))
                                      for name, parameter in self.parameters])},
            learning_rate=rate, ms=ms)

    def _before_replay(self) -> tuple:
        """Compares addresses with those of the capture and poisons what the step writes."""
        outputs = self.outputs()
        inputs = [(f"input:{name}", tensor) for name, tensor in self.captured.inputs.items()]
        statics = {name: tensor.data_ptr() for name, tensor in inputs + outputs}
        if not self._registered:
            self._registered = dict(statics)
        moved = [{"tensor": name, "captured": f"0x{self._registered[name]:x}",
                  "now": f"0x{address:x}"} for name, address in statics.items()
                 if self._registered.get(name, address) != address]
        self.parts.scope.write("address", arm=self.name, step=self.index, graph="step",
                               registered=len(self._registered), moved=moved)
        written = [(name, tensor) for name, tensor in outputs
                   if not name.startswith(KEPT)]
        return set(statics.values()), (poison(written), {t.data_ptr() for _, t in written})

    def _write_poison(self, index: int, statics: set, poisoned: tuple, launched: int) -> None:
        poisoned_bytes, addresses = poisoned
        outputs = self.outputs()
        compared = [(name, tensor) for name, tensor in outputs
                    if not name.startswith(KEPT)]
        self.parts.scope.write(
            "poison", arm=self.name, step=index,
            outputs=sum(tensor.data_ptr() in addresses for _, tensor in compared),
            compared=len(compared), bytes=poisoned_bytes, canary_words=canary_words(compared),
            launches=launched, announced=self.observer.announced,
            inspected=self.observer.inspected,
            unregistered=[name for name, tensor in outputs if tensor.data_ptr() not in statics])

    def _write_replay(self, index: int, counter_before: list) -> None:
        case, observer = self.parts.case, self.observer
        self.parts.scope.write(
            "replay", arm=self.name, graph=case.impl, step=index, replays=observer.replays,
            fallbacks=self.fallbacks, recaptures=observer.captures - observer.first_captures
            if observer.first_captures else 0,
            out_of_order=observer.out_of_order, counter_before=counter_before,
            counter_after=self.counters.values(),
            counter_per_replay=[case.microbatches] * case.stage_layers)

    def _write_handed_out(self, index: int, losses: torch.Tensor) -> None:
        if self._handed is not None:
            kept, then = self._handed
            self.parts.scope.write("handed_out", arm=self.name, step=index - 1, what="losses",
                                   digest=then, later_digest=digest_of(kept))
        self._handed = (losses, digest_of(losses))

    def _write_hyperparameters(self, index: int, rate: float, before: torch.Tensor,
                               skipped_before: int) -> None:
        optimizer, scope = self.subject.optimizer, self.parts.scope
        skipped = self.subject.skipped()
        steps = index + 1 - skipped

        def write(name: str, host: float, effective: float, bound: float) -> None:
            scope.write("hyperparameter", arm=self.name, step=index, name=name, host=float(host),
                        effective=float(effective), bound=float(bound))

        if is_adam(optimizer):
            write("optimizer_step", steps, adam_steps(optimizer), 0)
        if skipped > skipped_before:
            # Nothing may move in a step that was left out.
            moved = (before - local(watched(optimizer)[0].detach())).abs().max()
            write("learning_rate", 0, float(moved), 0)
            return
        effective, bound = effective_rate(optimizer, before, rate, steps,
                                          self.subject.gradient_read)
        write("learning_rate", rate, effective, bound)

    # ---- the end

    def finish(self, last: int) -> None:
        """After the last step of a free arm: waits for the device and writes its `replay` line. The
        counters began at 0, and reading them after each step would have waited for it."""
        self.parts.device.synchronize()
        if self.graphs:
            self._write_replay(last, [0] * self.parts.case.stage_layers)

    def vote_if_not_captured(self) -> None:
        """So that all ranks pass the same boundaries."""
        if self.graphs and not self.observer.captured:
            scope = self.parts.scope
            scope.boundary(phase.CAPTURE)
            scope.vote(0)
            scope.boundary(phase.REPLAY)

    def _count_drops(self) -> None:
        """Counts the live graphs of this arm, which are destroyed next, and those that still run.
        Libraries that keep graphs in places of their own destroy them when the subject is
        closed."""
        live = [graph for graph in Observed.live if self.observer and self.observer.owns(graph)]
        self.parts.drops.graphs += len(live)
        self.parts.drops.running += sum(graph.running() for graph in live)

    def drop_graphs(self) -> None:
        """Destroys the graphs. The caller has waited for the last replay."""
        if self.captured is not None or self.closes:
            self._count_drops()
        if self.captured is not None:
            self.captured.close()
            self.captured = None
        while self.closes:
            self.closes.pop()()

    def close(self) -> None:
        if self.parts.case.axis("recompute", "none") != "none":
            self.parts.scope.write("recomputes", arm=self.name, eager_steps=self.eager_steps,
                                   **vars(self.recomputes.counts))
        self.drop_graphs()
        self.subject.close()


def write_comparison(parts: Parts, left_arm: str, right_arm: str, compared: str, step: int,
                     word: str, left: list, right: list) -> None:
    """Writes the `compare` line of two arms' results in host memory."""
    parts.scope.write("compare", left=left_arm, right=right_arm, compared=compared, step=step,
                      input=word, **compare(left, right))


def make_inputs(parts: Parts, arm: Arm) -> list:
    """The inputs of steps 0 .. steps - 1, then those of the capture again. They live until the last
    arm has ended, so that a static input that is wrongly rebound cannot get its old address by
    chance."""
    case = parts.case
    inputs = [StepInput(arm.subject.batch(step), "capture" if step == case.capture_step
                        else "fresh") for step in range(case.steps)]
    for one in inputs:
        if not tensors_of(one.batch):
            raise Error("batch(step) of the subject", type(one.batch).__name__,
                        "a tensor, or tuples, lists and dicts of tensors",
                        "every step has inputs of its own", "return the tensors of a step")
    captured = inputs[min(case.capture_step, case.steps - 1)]
    return [*inputs, StepInput(captured.batch, "capture")]
