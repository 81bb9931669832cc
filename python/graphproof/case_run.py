"""One case on one rank: its set-up, its arms and its teardown. The order is that of suites/rank."""

import contextlib
import os

import torch

from graphproof import configuration, phase, planted
from graphproof.arms.arm import Arm, Parts, make_inputs
from graphproof.arms.order import keep_last, run_eager, run_free, run_lockstep, run_solo
from graphproof.arms.shape_buckets import run_shape_buckets
from graphproof.case import Case
from graphproof.learning_rate import unknown_update
from graphproof.message import Error
from graphproof.subjects import available, builder
from graphproof.teardown import tear_down


# Schedules of the subjects whose models can do more than train.
SCHEDULES = {"torch": ("train", "train-eval-train", "resume", "decode"),
             "torch_compile": ("train", "decode"),
             "megatron_core": ("train", "train-eval-train", "resume")}


def refuse_what_has_no_arms(case: Case) -> None:
    """Error for axes that this rank program has no arms for. The rules of the matrix keep such
    cases from being planned."""
    subject = case.axis("subject", "script")
    allowed = {"schedule": SCHEDULES.get(subject, ("train",))}
    if subject != "torch":
        allowed["shape_buckets"] = (0,)
    for axis, values in allowed.items():
        if case.axis(axis, values[0]) not in values:
            raise Error(f"axis {axis} of a case with subject {subject}", str(case.axes[axis]),
                        " or ".join(str(value) for value in values),
                        "there are no other arms for this subject",
                        "run this case with subject=reference")


def write_unobserved(scope, device, arm: Arm, case: Case) -> None:
    """Names the checks that this rank leaves no evidence for, and why. They end unexercised."""
    checks, subject = dict(device.unobserved), arm.subject
    if case.dropout and arm.masks.modules == 0:
        checks["D08.masks"] = "the model has no torch.nn.Dropout whose masks could be kept"
    if case.world_size > 1:
        checks["D25.collective_ledger"] = "collectives of PyTorch's process groups are not listed"
        checks["D53.layout_reference"] = "there is no model of a single rank to compare with"
    if unknown_update(subject.optimizer):
        checks["D04.learning_rate"] = checks["D04.optimizer_step"] = \
            unknown_update(subject.optimizer)
    checks.update(subject.unobserved)
    for check, why in sorted(checks.items()):
        scope.write("unobserved", check=check, why=why)


def run_case(batch_run, scope, listed, last: bool) -> None:
    """Runs the case. CaseFailure or PeerFailure, once the evidence has the reason."""
    kept, inputs, state = [], [], {}
    place, batch = batch_run.place, batch_run.batch

    def init() -> None:
        name = str(listed.axes.get("subject", "script"))
        batch_run.start(name)
        case = state["case"] = Case(listed.axes, batch.seed, place.rank, place.world_size,
                                    batch_run.device.torch_device)
        scope.votes_through(batch_run.world.vote)
        refuse_what_has_no_arms(case)
        configuration.apply(case)
        if name == "megatron_core":
            # Its own groups follow the layout of a case, and go with the group that they are of.
            batch_run.device.empty_cache()
            batch_run.world.leave_group()
        if place.world_size > 1 or name in ("fsdp2", "megatron_core"):
            batch_run.world.join_group(batch_run.device.backend)
        state["build"] = builder(name, os.environ.get("GRAPHPROOF_SCRIPT"))
        planted.plant(case.axis("fault", "none"))
        configuration.write(scope, batch_run.device, case, available(name).get("packages", {}))

    scope.enter(phase.INIT, "", 0)
    scope.section(phase.INIT, init)
    case, device = state["case"], batch_run.device
    stream = torch.cuda.Stream()
    parts = Parts(scope=scope, device=device, case=case, build=state["build"], stream=stream)
    with torch.cuda.stream(stream) if device.name == "cuda" else contextlib.nullcontext():
        _run_arms(parts, kept, inputs)
        tear_down(parts, batch_run.world, kept, inputs, batch.limits_ms,
                  case.teardown == "comm_first", last)


def _run_arms(parts: Parts, kept: list, inputs: list) -> None:
    scope, case, state = parts.scope, parts.case, {}

    def build() -> None:
        state["eager_a"] = Arm(parts, "eager_a", graphs=False, free=False)
        inputs.extend(make_inputs(parts, state["eager_a"]))
        parts.device.synchronize()

    def eager() -> None:
        arm = state.pop("eager_a")
        history = run_eager(parts, inputs, arm)
        # eager_a stays alive, so that the second run has other addresses, and a dependence on
        # addresses is found.
        run_solo(parts, "solo_eager", False, inputs, ("eager_a", history, "eager_repeats"))
        state["results"] = history.last()
        write_unobserved(scope, parts.device, arm, case)
        arm.close()

    def lockstep() -> None:
        state["lockstep"] = run_lockstep(parts, inputs, kept)

    def solo() -> None:
        keep_last(parts, kept)
        run_solo(parts, "solo_graph", True, inputs,
                 ("lockstep_graph", state["lockstep"], "graph_repeats"))

    scope.enter(phase.BUILD, "", 0)
    scope.section(phase.BUILD, build)
    scope.section(phase.EAGER, eager)
    if not case.graphs:
        return
    scope.section(phase.REPLAY, lockstep)
    scope.section(phase.REPLAY, lambda: run_free(parts, inputs, state["results"], kept))
    if case.axis("shape_buckets", 0) > 0:
        scope.section(phase.REPLAY, lambda: run_shape_buckets(parts))
    scope.section(phase.COMPARE, lambda: None)
    scope.section(phase.REPLAY, solo)
