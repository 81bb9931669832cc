"""Subject `torch_compile`: the model of subject torch, compiled by torch.compile.

impl none and all eager arms: compiled without graphs. impl callables: mode reduce-overhead, in
which the compiler captures what it compiles. impl manual and full_iteration: torch.cuda.graph
around code that was compiled without graphs.

Axis compiled_code has the compiled code do what the compiler's graphs are known to be given up for,
or to be cut by, or has it call the backward pass too.
"""

import contextlib
import logging

import torch
import torch.nn.functional as F
from torch import nn

from graphproof.case import Case
from graphproof.message import Error
from graphproof.subject import Captured, Subject
from graphproof.subjects import decoding
from graphproof.subjects.gpt import Gpt, make_batch
from graphproof.subjects.launches import launches
from graphproof.subjects.training import Training
from graphproof.subjects.translation import require

# The compiler compiles in the first pass, records in the second and replays from the third on.
PASSES_UNTIL_REPLAY = 3
# By how much the scalar in host memory differs from step to step.
SCALAR_STEP = 0.125


def is_cut(case: Case) -> bool:
    """Whether the compiler has to cut the code: code of one piece is cut by nothing; a scalar of
    the host has to be cut out."""
    return case.axis("compiled_code", "plain") == "host_scalar"


def holds_backward(case: Case) -> bool:
    """Whether the compiled code calls the backward pass."""
    return case.axis("compiled_code", "plain") in ("backward", "backward_traced")


def is_traced(case: Case) -> bool:
    """Whether the compiler traces that call, by its setting trace_autograd_ops. By default it
    breaks the code there."""
    return case.axis("compiled_code", "plain") == "backward_traced"


def options_of(case: Case, graphs: bool) -> dict:
    """The options of torch.compile that the case's axes stand for."""
    # What code is cut into is not counted where a cache has it.
    cut = {"fx_graph_cache": False} if graphs and is_cut(case) else {}
    return {**cut, "triton.cudagraphs": graphs,
            "triton.cudagraph_trees": case.axis("graph_trees", "on") == "on",
            "graph_partition": bool(case.axis("graph_partition", False)),
            # They are made for code of the host, and lie in TMPDIR whatever
            # TORCHINDUCTOR_CACHE_DIR says: a file that the case would leave behind.
            "cpp_cache_precompile_headers": False,
            # Every arm and rank has to take the same kernels, whatever a measurement says.
            "triton.autotune_pointwise": False, "deterministic": True,
            # A graph that the compiler gives up is an error that has its reason. What it gives up
            # without one is counted below.
            "triton.cudagraph_or_error": graphs}


def compiled(case: Case, code, graphs: bool):
    """`code`, a module or a function, as torch.compile returns it. Where the backward pass is
    traced, it is an error if the code breaks all the same."""
    whole = {"fullgraph": True} if is_traced(case) else {}
    return torch.compile(code, options=options_of(case, graphs), **whole)


def counted(name: str) -> int:
    """What the compiler has counted in this process: cudagraph_skips, the graphs that it gave up;
    cudagraph_partitions, the pieces of code that it cut into more than one."""
    return torch._dynamo.utils.counters["inductor"][name]


@contextlib.contextmanager
def said():
    """A list of what the compiler logs about its graphs inside. Some that it gives up are told only
    there, even with triton.cudagraph_or_error: PyTorch, torch/_inductor/cudagraph_trees.py."""
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    log = logging.getLogger("torch._inductor.cudagraph_utils.__cudagraphs")
    log.addHandler(handler)
    try:
        yield messages
    finally:
        log.removeHandler(handler)


class CompiledGpt(Gpt):
    """The model with what axis compiled_code asks for. `given` is what a microbatch has besides its
    tokens: a scalar in host memory that is added to the loss, a counter on the device, or what the
    microbatch before left, [H]. The backward pass must not need the scalar: with graph_partition it
    would read the device's copy of it as host memory (docs/findings/host-scalar-of-a-partition.md).
    """

    def __init__(self, case: Case):
        super().__init__(case)
        self.kind = case.axis("compiled_code", "plain")

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor, given=None):
        """The loss, and with outputs_fed_back also the mean of the last hidden states, [H]."""
        x = self.tokens(tokens)
        if self.kind == "outputs_fed_back":
            x = x + given
        for layer in self.layers:
            x = layer(x)
        if self.kind == "graph_break":
            torch._dynamo.graph_break()
        loss = F.cross_entropy(self.logits(x).flatten(0, 1), labels.flatten())
        if self.kind == "host_scalar":
            return loss + given
        if self.kind == "changed_input":
            given.add_(1)
        return (loss, x.detach().mean((0, 1))) if self.kind == "outputs_fed_back" else loss


class Compiled(Training):
    """The step over compiled code: the model, or with a backward pass in the compiled code all that
    a microbatch does."""

    model_class = CompiledGpt

    def __init__(self, case: Case):
        super().__init__(case)
        if holds_backward(case):
            # In place from the first step on, because code that makes gradients is compiled apart.
            for parameter in self.parameters:
                parameter.grad = torch.zeros_like(parameter)

    def wrapped(self):
        return compiled(self.case, self.compiled_code(), graphs=False)

    def compiled_code(self):
        """What torch.compile gets."""
        return self.forward_and_backward if holds_backward(self.case) else self.model

    def forward_and_backward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a microbatch, whose gradients are added."""
        with self.autocast():
            loss = self.model(tokens, labels)
        (loss / self.case.microbatches).backward()
        # The compiler traces no backward pass of what it returns. Broken code would compile a
        # region for detach() alone.
        return loss.detach() if is_traced(self.case) else loss

    def run_microbatch(self, batch: dict, index: int) -> torch.Tensor:
        if not holds_backward(self.case):
            return super().run_microbatch(batch, index)
        traced = torch._dynamo.config.patch(trace_autograd_ops=True) if is_traced(self.case) \
            else contextlib.nullcontext()
        with traced:
            return self.trained(batch["tokens"][index], batch["labels"][index]).detach()

    def in_ddp(self) -> bool:
        return False

    def batch(self, step: int) -> dict:
        """The inputs of subject torch, and what axis compiled_code adds to them."""
        case, batch = self.case, make_batch(self.case, step)
        if self.model.kind == "host_scalar":
            batch["given"] = torch.tensor(1 + SCALAR_STEP * step)
        elif self.model.kind == "changed_input":
            batch["given"] = torch.zeros(1, device=case.device)
        elif self.model.kind == "outputs_fed_back":
            batch["given"] = torch.zeros(case.hidden, device=case.device)
        return batch

    def loss_of(self, batch: dict, index: int) -> torch.Tensor:
        if "given" not in batch:
            return super().loss_of(batch, index)
        if index == 0:
            self.given = batch["given"]
        result = self.trained(batch["tokens"][index], batch["labels"][index], self.given)
        if self.model.kind != "outputs_fed_back":
            return result
        loss, self.given = result
        return loss

    def launches_of_a_step(self) -> int:
        """Graphs that a step launches at least: those of the forward and the backward pass of each
        region, for each microbatch. A graph break makes two regions; a backward pass that the
        compiler traces is in one graph with its forward pass."""
        graphs = {"graph_break": 4, "backward_traced": 1}.get(self.model.kind, 2)
        return graphs * self.case.microbatches

    def capture_by_the_compiler(self, step, batch: dict) -> Captured:
        graphs = CompilersGraphs(self.case, self.compiled_code(), self.launches_of_a_step())
        self.trained = graphs.compiled

        def run(fresh):
            torch.compiler.cudagraph_mark_step_begin()
            return self.forward_backward(fresh)

        graphs.run_until_replayed(lambda: run(batch))

        def replay(fresh):
            losses = run(fresh).clone()
            self.update()
            return losses

        return Captured(step=replay, close=torch._dynamo.reset)


class CompilersGraphs:
    """Code that the compiler captures, until its graphs are replayed. `compiled`: what to call."""

    def __init__(self, case: Case, code, launches_wanted: int):
        """`code`: the module or function that is compiled. `launches_wanted`: graphs that a pass
        launches at least."""
        if case.axis("graph_trees", "on") == "off" or is_cut(case):
            # Compiled code serves every model of its class. Without trees its graphs know the
            # parameters of one; and what it is cut into is counted where it is compiled.
            torch._dynamo.reset()
        self._launches_wanted = launches_wanted
        self._is_cut = is_cut(case)
        self._skipped, self._cut = counted("cudagraph_skips"), counted("cudagraph_partitions")
        self.compiled = compiled(case, code, graphs=True)

    def run_until_replayed(self, run) -> None:
        """Runs passes until they are replayed. Error if the compiler gave a graph up, whether it
        said so or not, with its own words if there are any, or cut nothing where it had to."""
        with said() as messages:
            for _ in range(PASSES_UNTIL_REPLAY - 1):
                run()
            with launches() as seen:
                run()
        skipped = counted("cudagraph_skips") - self._skipped
        if skipped > 0 or len(seen) < self._launches_wanted:
            raise Error("the graphs of PyTorch's compiler",
                        ": ".join([f"{len(seen)} launched in a pass, {skipped} given up",
                                   *messages[:1]]),
                        f"{self._launches_wanted} or more, and none given up",
                        "the step would run without graphs and look right",
                        "read the log: if the compiler says why, it says so there")
        if self._is_cut and counted("cudagraph_partitions") == self._cut:
            raise Error("the partitions of PyTorch's compiler", "none", "two or more",
                        "the case would not show what becomes of code that is cut",
                        "look up what this version makes of graph_partition")


def build(case: Case) -> Subject:
    """The subject of a case. Error for axes without a counterpart in the compiler."""
    require(case, "torch_compile", impl=("none", "callables", "manual", "full_iteration"), tp=1,
            pp=1, vpp=1, cp=1, ep=1, etp=1, model="gpt", precision=("fp32", "bf16"), modules=([],),
            recompute="none", optimizer_graph=False, overlap_grad_reduce=False, pool="single")
    unobserved = {"D08.masks": "dropout is part of compiled code, which keeps no masks",
                  "D05.operands_alive": "compiled code calls kernels past PyTorch's operators"}
    if case.impl == "callables":
        unobserved["D37.modules_warmed_up"] = \
            "the compiler warms up compiled regions and no modules"
    if case.schedule == "decode":
        return build_decoding(case, unobserved)
    training = Compiled(case)
    capture = {"full_iteration": training.capture_iteration,
               "callables": training.capture_by_the_compiler}.get(case.impl)
    return Subject(model=training.model, step=training.step, optimizer=training.optimizer,
                   batch=training.batch, layers=training.layers,
                   capture=capture, keeps_masks=False, unobserved=unobserved,
                   counts_compiled=case.impl != "callables",
                   empty_graphs=case.impl == "callables")


def build_decoding(case: Case, unobserved: dict) -> Subject:
    """Inference with kept keys and values: graphs of forward passes alone, which change buffers of
    the model in place."""
    require(case, "torch_compile", impl=("none", "callables"), microbatches=1, dp=1, dropout=False,
            optimizer="sgd", clip_grad=False, weight_decay=False, compiled_code="plain")
    job = decoding.Decoding(case)
    eager = compiled(case, job.model, graphs=False)

    def capture(step, batch: dict) -> Captured:
        graphs = CompilersGraphs(case, job.model, launches_wanted=1)
        buffers = [(buffer, buffer.clone()) for buffer in job.model.buffers()]

        def run(inputs: dict) -> torch.Tensor:
            torch.compiler.cudagraph_mark_step_begin()
            return job.losses(graphs.compiled, inputs).clone()

        graphs.run_until_replayed(lambda: run(batch))
        # These passes are no steps: what they kept and counted is taken back.
        for buffer, value in buffers:
            buffer.copy_(value)
        return Captured(step=run, close=torch._dynamo.reset)

    return Subject(model=job.model, step=lambda inputs: job.losses(eager, inputs),
                   batch=job.batch, layers=list(job.model.layers),
                   capture=capture if case.impl == "callables" else None, keeps_masks=False,
                   unobserved=unobserved, counts_compiled=case.impl != "callables",
                   empty_graphs=case.impl == "callables")
