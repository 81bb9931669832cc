"""One case on one rank: its set-up, its arms and its teardown. The order is that of suites/rank."""

import contextlib
import os
import shutil

import torch

from graphproof import configuration, phase, planted
from graphproof.arms.arm import Arm, Parts, make_inputs
from graphproof.arms.order import keep_last, run_eager, run_free, run_lockstep, run_solo
from graphproof.arms.schedules import resume_from_files
from graphproof.arms.shape_buckets import run_shape_buckets
from graphproof.case import Case
from graphproof.learning_rate import unknown_update
from graphproof.message import Error
from graphproof.subjects import available, builder
from graphproof.teardown import tear_down


# Schedules of the subjects whose models can do more than train.
SCHEDULES = {"torch": ("train", "train-eval-train", "resume", "decode"),
             "torch_compile": ("train", "decode"),
             "megatron_core": ("train", "train-eval-train", "resume", "decode")}


class Resumption:
    """Where a job of this case resumes: in a process of its own, with a checkpoint in `folder`."""

    def __init__(self, batch_run, listed):
        self._process = batch_run.new_processes.pop(listed.id)
        self._world = batch_run.world
        self.folder = folder_of(batch_run.batch, listed)

    def run(self, parts: Parts) -> None:
        """Waits for the job. What it writes and votes is that of this rank."""
        self._process.run(parts.scope, self._world.patience_s)
        self._world.exchange("resumed", "", self._world.patience_s)
        if parts.case.rank == 0:
            shutil.rmtree(self.folder)


def folder_of(batch, listed) -> str:
    """Where the checkpoint of a case lies, on a file system that all ranks see."""
    return os.path.join(batch.store, f"resumed-{listed.id}-{listed.attempt}")


def resume(batch_run, listed, folder: str, scope) -> None:
    """The work of a new process: the case is set up anew, and its job resumes from `folder`."""
    case, build = set_up(batch_run, listed)
    with on_stream(batch_run.device) as stream:
        resume_from_files(Parts(scope=scope, device=batch_run.device, case=case, build=build,
                                stream=stream), folder)
        batch_run.device.synchronize()
        batch_run.world.leave_group()


@contextlib.contextmanager
def on_stream(device):
    """The stream on which everything of a case runs, while it is current."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream) if device.name == "cuda" else contextlib.nullcontext():
        yield stream


def refuse_what_has_no_arms(case: Case) -> None:
    """Error for axes that this rank program has no arms for. The rules of the matrix keep such
    cases from being planned."""
    subject = case.axis("subject", "script")
    allowed = {"schedule": SCHEDULES.get(subject, ("train",))}
    if case.resumes_in_new_process:
        del allowed["schedule"]
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
    if case.graphs and arm.waits is None:
        checks["D87.host_waits"] = "the subject does not say which calls its graphs are captured of"
    checks.update(subject.unobserved)
    for check, why in sorted(checks.items()):
        scope.write("unobserved", check=check, why=why)


def set_up(batch_run, listed) -> tuple:
    """What the process of a case is set up with: (case, build)."""
    place, batch = batch_run.place, batch_run.batch
    name = str(listed.axes.get("subject", "script"))
    batch_run.start(name)
    case = Case(listed.axes, batch.seed, place.rank, place.world_size,
                batch_run.device.torch_device)
    refuse_what_has_no_arms(case)
    configuration.apply(case)
    if name == "megatron_core":
        # Its own groups follow the layout of a case, and go with the group that they are of.
        batch_run.device.empty_cache()
        batch_run.world.leave_group()
    if place.world_size > 1 or name in ("fsdp2", "megatron_core"):
        batch_run.world.join_group(batch_run.device.backend)
    build = builder(name, os.environ.get("GRAPHPROOF_SCRIPT"))
    planted.plant(case.axis("fault", "none"))
    return case, build


def kernels_of(case: Case) -> dict:
    """What the line `config` has of kernels that a package lacks and others stand in for."""
    if case.axis("subject", "script") != "megatron_core" or case.schedule != "decode":
        return {}
    from graphproof.subjects.megatron_core_inference import attention_kernel
    return {"attention_kernel": attention_kernel()}


def run_case(batch_run, scope, listed, last: bool) -> None:
    """Runs the case. CaseFailure or PeerFailure, once the evidence has the reason."""
    kept, inputs, state = [], [], {}
    batch = batch_run.batch

    def init() -> None:
        batch_run.start(str(listed.axes.get("subject", "script")))
        scope.votes_through(batch_run.world.vote)
        state["case"], state["build"] = set_up(batch_run, listed)
        packages = available(state["case"].axis("subject", "script")).get("packages", {})
        configuration.write(scope, batch_run.device, state["case"],
                            {**packages, **kernels_of(state["case"])})

    scope.enter(phase.INIT, "", 0)
    scope.section(phase.INIT, init)
    case, device = state["case"], batch_run.device
    with on_stream(device) as stream:
        parts = Parts(scope=scope, device=device, case=case, build=state["build"], stream=stream)
        if case.resumes_in_new_process:
            parts.new_process = Resumption(batch_run, listed)
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
