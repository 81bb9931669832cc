"""Subject `torch_compile`: the model of subject torch, compiled by torch.compile.

impl none and all eager arms: compiled without graphs. impl callables: mode reduce-overhead, in
which the compiler captures what it compiles. impl manual and full_iteration: torch.cuda.graph
around code that was compiled without graphs.
"""

import torch

from graphproof.case import Case
from graphproof.message import Error
from graphproof.subject import Captured, Subject
from graphproof.subjects.gpt import make_batch
from graphproof.subjects.training import Training
from graphproof.subjects.translation import require

# The compiler compiles in the first pass, records in the second and replays from the third on.
PASSES_UNTIL_REPLAY = 3


def options_of(case: Case, graphs: bool) -> dict:
    """The options of torch.compile that the case's axes stand for."""
    return {"triton.cudagraphs": graphs,
            "triton.cudagraph_trees": case.axis("graph_trees", "on") == "on",
            "graph_partition": bool(case.axis("graph_partition", False)),
            # Every arm and rank has to take the same kernels, whatever a measurement says.
            "triton.autotune_pointwise": False, "deterministic": True,
            # A graph that the compiler gives up is an error that has its reason. What it gives up
            # without one is counted below.
            "triton.cudagraph_or_error": graphs}


def skipped_graphs() -> int:
    """How often the compiler has given up a graph in this process."""
    return torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]


class Compiled(Training):
    """The step over compiled code."""

    def wrapped(self):
        return torch.compile(self.model, options=options_of(self.case, graphs=False))

    def in_ddp(self) -> bool:
        return False

    def capture_by_the_compiler(self, step, batch: dict) -> Captured:
        if self.case.axis("graph_trees", "on") == "off":
            # Such graphs know the parameters of one model, and would be taken for another's.
            torch._dynamo.reset()
        skipped = skipped_graphs()
        self.trained = torch.compile(self.model, options=options_of(self.case, graphs=True))

        def run(fresh):
            torch.compiler.cudagraph_mark_step_begin()
            return self.forward_backward(fresh)

        for _ in range(PASSES_UNTIL_REPLAY):
            run(batch)
        if skipped_graphs() != skipped:
            raise Error("a graph of PyTorch's compiler", f"{skipped_graphs() - skipped} skipped",
                        "none", "the step would run without graphs and look right",
                        "read the log: the compiler says there why it skipped them")

        def replay(fresh):
            losses = run(fresh).clone()
            self.update()
            return losses

        return Captured(step=replay, close=torch._dynamo.reset)


def build(case: Case) -> Subject:
    """The subject of a case. Error for axes without a counterpart in the compiler."""
    require(case, "torch_compile", impl=("none", "callables", "manual", "full_iteration"), tp=1,
            pp=1, vpp=1, cp=1, ep=1, etp=1, model="gpt", precision=("fp32", "bf16"), modules=([],),
            recompute="none", optimizer_graph=False, overlap_grad_reduce=False, pool="single")
    training = Compiled(case)
    capture = {"full_iteration": training.capture_iteration,
               "callables": training.capture_by_the_compiler}.get(case.impl)
    unobserved = {"D08.masks": "dropout is part of compiled code, which keeps no masks",
                  "D05.operands_alive": "compiled code calls kernels past PyTorch's operators"}
    if case.impl == "callables":
        unobserved.update({
            "D37.modules_warmed_up": "the compiler warms up compiled regions and no modules"})
    return Subject(model=training.model, step=training.step, optimizer=training.optimizer,
                   batch=lambda step: make_batch(case, step), layers=training.layers,
                   capture=capture, keeps_masks=False, unobserved=unobserved,
                   counts_compiled=case.impl != "callables",
                   empty_graphs=case.impl == "callables")
