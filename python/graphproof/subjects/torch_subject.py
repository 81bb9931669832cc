"""Subject `torch`: the workflows of PyTorch's own guide to CUDA graphs, by its own classes.

impl manual          one graph of the whole step: forward, backward of all microbatches, optimizer.
impl full_iteration  one graph of forward and backward; the optimizer is eager, or with axis
                     optimizer_graph a second graph (partial capture, two graphs in one pool).
impl callables       torch.cuda.make_graphed_callables over the layers, or over the modules that
                     axis modules names; the optimizer likewise.
"""

import contextlib

import torch

from graphproof.case import Case
from graphproof.subject import Captured, Subject
from graphproof.subjects import decoding
from graphproof.subjects.gpt import make_batch
from graphproof.subjects.layer_calls import CallingGpt, sample
from graphproof.subjects.training import Training, accept_streams_of_accumulators
from graphproof.subjects.translation import require

# make_graphed_callables warms up by itself; DDP needs eleven passes, everything else three.
WARMUPS, DDP_WARMUPS = 3, 11


class TorchTraining(Training):
    """The step with torch.cuda.make_graphed_callables for a part of the model."""

    model_class = CallingGpt

    def loss_of(self, batch: dict, index: int) -> torch.Tensor:
        loss = super().loss_of(batch, index)
        second = self.case.axis("layer_calls", "plain") == "second_derivative"
        return self.model.with_slope(loss) if second else loss

    def capture_callables(self, step, batch: dict) -> Captured:
        accept_streams_of_accumulators()
        case, modules = self.case, self.captured_modules()
        before = [module.forward for module in modules]
        shape = (case.microbatch_size, batch["tokens"].shape[-1], case.hidden)
        warmups = DDP_WARMUPS if self.in_ddp() else WARMUPS
        with graphs_made() as graphs, self.autocast():
            # One call makes one pool for all of its graphs.
            for group in self.groups(modules):
                samples = tuple(sample(case, shape) for _ in group)
                torch.cuda.make_graphed_callables(tuple(group), samples, warmups,
                                                  allow_unused_input=True)
        update = self.captured_update(graphs)
        graphed = [module.forward for module in modules]

        def run_by(forwards: list) -> None:
            for module, forward in zip(modules, forwards):
                module.forward = forward

        def replay(fresh):
            run_by(graphed)
            losses = self.forward_backward(fresh)
            update()
            return losses

        def close():
            run_by(before)
            for graph in graphs:
                graph.reset()
            graphs.clear()
            graphed.clear()

        if case.axis("layer_calls", "plain") != "plain":
            self.first_pass(batch, close)
        return Captured(step=replay, close=close, leave=lambda: run_by(before))

    def first_pass(self, batch: dict, close) -> None:
        """A forward and backward pass, in which PyTorch refuses what it refuses in the calls of a
        graphed callable."""
        try:
            self.forward_backward(batch)
        except Exception:
            close()
            raise

    def groups(self, modules: list) -> list:
        """The modules by call of make_graphed_callables: one for all, or one for each module."""
        return [[module] for module in modules] if self.case.pool == "per_graph" else [modules]

    def captured_modules(self) -> list:
        """The modules of axis modules in the order in which they run; whole layers if it is
        empty."""
        if not self.case.modules:
            return self.layers
        return [getattr(layer, name) for layer in self.layers for name in ("attn", "mlp")
                if name in self.case.modules]

    def callables_names(self) -> list:
        """The names of the graphs in the order in which make_graphed_callables captures them."""
        kinds = [name for name in ("attn", "mlp") if name in self.case.modules] or ["layer"]
        names = [f"layers.{layer}.{kind}" for layer in range(len(self.layers)) for kind in kinds]
        return [f"{name}.{way}" for group in self.groups(names)
                for way, ordered in (("forward", group), ("backward", group[::-1]))
                for name in ordered]


def capture_in_inference_mode(case: Case) -> torch.cuda.CUDAGraph:
    """A graph that draws random numbers, captured in inference mode, as inference in the same
    process leaves one. With cloned_state generators get copies of their states afterwards."""
    torch.rand(1, device=case.device)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), \
            torch.cuda.graph(graph, stream=torch.cuda.current_stream(),
                             capture_error_mode=case.capture_mode):
        torch.rand(1, device=case.device)
    if case.earlier_graph == "cloned_state":
        for generator in torch.cuda.default_generators:
            generator.graphsafe_set_state(generator.clone_state())
    return graph


@contextlib.contextmanager
def graphs_made():
    """The list of graphs that are made inside, because make_graphed_callables does not hand its
    graphs out and they have to be destroyed before the communicators."""
    graphs, graph_class = [], torch.cuda.CUDAGraph

    def noted(*args):
        graphs.append(graph_class(*args))
        return graphs[-1]

    torch.cuda.CUDAGraph = noted
    try:
        yield graphs
    finally:
        torch.cuda.CUDAGraph = graph_class


def build(case: Case) -> Subject:
    """The subject of a case. Error for axes without a counterpart in PyTorch alone."""
    require(case, "torch", impl=("none", "manual", "full_iteration", "callables"), tp=1, pp=1,
            vpp=1, cp=1, ep=1, etp=1, model="gpt", experts=0, precision=("fp32", "bf16", "fp16"),
            fp8_weights=False, packed=False, distributed_optimizer=False, nan_check_loss=False,
            nan_check_grad=False, cpu_offload=False, delay_wgrad=False, inference_scope="none",
            overlap_param_gather=False, grad_accumulation_fusion=False, tied_embeddings=False,
            kv_groups=0, overlap_ep_comm=False, sequence_parallel=False,
            position_embedding="rope", pool=("single", "per_graph"))
    if case.schedule == "decode":
        require(case, "torch", impl=("none", "manual"), precision=("fp32", "bf16"), microbatches=1,
                dp=1, dropout=False, recompute="none", optimizer="sgd", clip_grad=False,
                weight_decay=False, autocast_cache=False)
        return decoding.build(case)
    training = TorchTraining(case)
    names, capture, captured = ["training"], None, {}
    calls = ("forward_backward", "update") if case.optimizer_graph else ("forward_backward",)
    if case.impl == "full_iteration":
        capture = training.capture_iteration
    elif case.impl == "callables":
        names, capture = training.callables_names(), training.capture_callables
        modules = iter(training.captured_modules())
        captured = {name: next(modules) for name in names if name.endswith(".forward")}
    if case.optimizer_graph and case.impl != "manual":
        names = [*names, "optimizer"]
    earlier = None
    if case.graph_arm and case.axis("earlier_graph", "none") != "none":
        earlier = capture_in_inference_mode(case)
    unobserved = {}
    if case.recompute != "none":
        unobserved["D42.recompute"] = \
            "what torch.utils.checkpoint recomputes is counted and not kept"
    return Subject(model=training.model, step=training.step, optimizer=training.optimizer,
                   batch=lambda step: make_batch(case, step), layers=training.layers,
                   capture=capture, captured_calls=calls, graphs=names,
                   captured_modules=captured,
                   unobserved=unobserved, evaluate=training.evaluate,
                   capture_evaluation=training.capture_evaluation, save=training.save,
                   load=training.load, checkpoint=training.checkpoint, restore=training.restore,
                   close=lambda: earlier and earlier.reset(),
                   skipped=lambda: int(training.skipped_steps),
                   loss_scale=lambda: training.scaler and training.scaler.get_scale(),
                   used_scale=lambda: float(training.used_scale))
