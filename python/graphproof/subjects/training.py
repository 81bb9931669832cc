"""The training step of subjects of PyTorch alone: model, autocast, loss scale, optimizer.

Subclasses change what a subject changes: how the model is wrapped, cast and reduced.
"""

import contextlib
import math

import torch
import torch.distributed as dist
from torch import nn

from graphproof import checkpoint
from graphproof.case import Case
from graphproof.subject import Captured, copied, copy_into, tensors_of
from graphproof.subjects.gpt import DROPOUT, Gpt

WEIGHT_DECAY = 0.01
CLIPPED_NORM = 1.0
NEVER = 1 << 30  # steps until a static loss scale would grow
# How many powers of two the first loss scale is below the smallest that overflows: a dynamic one
# doubles in every step, so that it gets there in a few.
DYNAMIC_MARGIN, STATIC_MARGIN = 5, 10


def accept_streams_of_accumulators() -> None:
    """For packages that build gradient accumulators on a stream of their own on purpose, as
    make_graphed_callables and Megatron-Core's DistributedDataParallel do. PyTorch warns of it in
    eager steps too, and D21.log_clean would take the warning for a defect of the case."""
    if hasattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch"):
        torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)


def optimizer_of(case: Case, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of torch.optim or of APEX that the case asks for. A captured one has its
    learning rate in a tensor, because a number would be frozen at the capture."""
    captured = case.impl == "manual" or case.optimizer_graph
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    decay = WEIGHT_DECAY if case.weight_decay else 0.0
    groups = [{"params": matrices, "weight_decay": decay}]
    if others:
        groups.append({"params": others, "weight_decay": 0.0})
    kind = case.axis("optimizer_kernels", "single")
    options = {"fused": kind == "fused", "foreach": kind == "foreach"}

    def rate(value: float):
        return torch.tensor(value, device=case.device) if captured else value

    if kind == "apex":
        from apex.optimizers import FusedAdam
        return FusedAdam(groups, lr=rate(0.001), capturable=captured)
    if case.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=rate(0.1), **options)
    return torch.optim.Adam(groups, lr=rate(0.001), capturable=captured, **options)


class Training:
    """A model, its optimizer and its step. `model_class(case)` makes a module with `layers` whose
    forward(tokens, labels) returns a loss."""

    model_class = Gpt

    def __init__(self, case: Case):
        self.case = case
        self.model = self.model_class(case).to(case.device)
        self.layers = list(self.model.layers)
        self.trained = self.wrapped()
        self.optimizer = optimizer_of(case, self.model)
        self.parameters = list(self.model.parameters())
        self.scaler = None
        if case.precision == "fp16":
            self.scaler = self._loss_scaler()
        # The factor that the last backward pass found, which a gradient of the loss itself is.
        self.used_scale = torch.zeros((), device=case.device)
        # Steps that were left out because a gradient was infinite. Counted on the device.
        self.skipped_steps = torch.zeros((), device=case.device)

    def _loss_scaler(self) -> torch.amp.GradScaler:
        case, static = self.case, self.case.loss_scale == "static"
        tokens = case.microbatches * case.microbatch_size * case.seq_length
        overflows = 16 + math.ceil(math.log2(tokens))  # fp16 has no 2^16, and losses are means
        margin = STATIC_MARGIN if static else DYNAMIC_MARGIN
        return torch.amp.GradScaler(case.device, init_scale=2.0 ** (overflows - margin),
                                    growth_interval=NEVER if static else 1)

    def wrapped(self) -> nn.Module:
        """What forward passes call: the model, in DistributedDataParallel if gradients are reduced
        during the backward pass. Called once, before the optimizer is made."""
        if self.case.world_size == 1 or not self.case.overlap_grad_reduce:
            return self.model
        devices = None if self.case.device == "cpu" else [torch.cuda.current_device()]
        return nn.parallel.DistributedDataParallel(self.model, device_ids=devices,
                                                   broadcast_buffers=False)

    def in_ddp(self) -> bool:
        return isinstance(self.trained, nn.parallel.DistributedDataParallel)

    def reduces_now(self, last: bool):
        """The context of a microbatch. Gradients are reduced after the last one."""
        if self.in_ddp() and not last:
            return self.trained.no_sync()
        return contextlib.nullcontext()

    def reduce(self) -> None:
        """Averages gradients over the ranks, if nothing has done so yet."""
        if self.case.world_size > 1 and not self.in_ddp():
            for parameter in self.parameters:
                dist.all_reduce(parameter.grad)
                parameter.grad.div_(self.case.world_size)

    def autocast(self):
        if self.case.precision not in ("bf16", "fp16"):
            return contextlib.nullcontext()
        dtype = torch.bfloat16 if self.case.precision == "bf16" else torch.float16
        return torch.autocast(self.case.device, dtype=dtype,
                              cache_enabled=self.case.axis("autocast_cache", False))

    def loss_of(self, batch: dict, index: int) -> torch.Tensor:
        """The loss of microbatch `index`."""
        return self.trained(batch["tokens"][index], batch["labels"][index])

    def forward_backward(self, batch: dict) -> torch.Tensor:
        """Losses [microbatches]. The gradients are the mean over the microbatches and ranks."""
        self.optimizer.zero_grad(set_to_none=False)
        losses = []
        for index in range(self.case.microbatches):
            with self.reduces_now(last=index + 1 == self.case.microbatches):
                losses.append(self.run_microbatch(batch, index))
        self.reduce()
        return torch.stack(losses)

    def run_microbatch(self, batch: dict, index: int) -> torch.Tensor:
        """Forward and backward of microbatch `index`, whose gradients are added; its loss."""
        with self.autocast():
            loss = self.loss_of(batch, index)
        share = loss / self.case.microbatches
        if self.scaler:
            share.register_hook(self.used_scale.copy_)
            share = self.scaler.scale(share)
        share.backward()
        return loss.detach()

    def update(self) -> None:
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        if self.case.clip_grad:
            nn.utils.clip_grad_norm_(self.parameters, CLIPPED_NORM)
        if not self.scaler:
            self.optimizer.step()
            return
        self.scaler.step(self.optimizer)
        for found_inf in self.scaler._found_inf_per_device(self.optimizer).values():
            self.skipped_steps.add_(found_inf.reshape(()))
        self.scaler.update()

    def step(self, batch: dict) -> torch.Tensor:
        losses = self.forward_backward(batch)
        self.update()
        return losses

    def evaluate(self, batch: dict) -> torch.Tensor:
        """Losses [microbatches] without dropout and gradients, between two training steps."""
        self.model.eval()
        with torch.no_grad(), self.autocast():
            losses = [self.model(tokens, labels)
                      for tokens, labels in zip(batch["tokens"], batch["labels"])]
        self.model.train()
        return torch.stack(losses)

    # ---- checkpoints

    def save(self) -> dict:
        """Copies of everything that a later step depends on, besides generators."""
        places = {parameter: place for place, parameter in enumerate(self.parameters)}
        return {"parameters": [parameter.detach().clone() for parameter in self.parameters],
                "optimizer": [(places[parameter], copied(dict(state)))
                              for parameter, state in self.optimizer.state.items()],
                "scaler": self.scaler.state_dict() if self.scaler else None,
                "skipped_steps": self.skipped_steps.clone()}

    def load(self, saved: dict) -> None:
        """Puts a checkpoint back. Values are copied into the tensors that are there, because a live
        graph knows their addresses; an optimizer's load_state_dict would replace the tensors."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters, saved["parameters"]):
                parameter.copy_(value)
        for place, values in saved["optimizer"]:
            state = self.optimizer.state[self.parameters[place]]
            for key, value in values.items():
                if isinstance(state.get(key), torch.Tensor):
                    state[key].copy_(value)
                else:
                    state[key] = copied(value)
        if self.scaler:
            self.scaler.load_state_dict(saved["scaler"])
        self.skipped_steps.copy_(saved["skipped_steps"])

    def checkpoint(self, folder: str) -> None:
        checkpoint.save_states(folder, self.case.rank, model=self.model, optimizer=self.optimizer,
                               scaler=self.scaler)

    def restore(self, folder: str) -> None:
        checkpoint.load_states(folder, self.case.rank, model=self.model, optimizer=self.optimizer,
                               scaler=self.scaler)

    # ---- captures

    def capture_evaluation(self, batch: dict) -> Captured:
        """A graph of evaluation, in a pool of its own: it is launched between steps, in no fixed
        order with theirs."""
        static, graph = copied(batch), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream(),
                              capture_error_mode=self.case.capture_mode):
            losses = self.evaluate(static)

        def replay(fresh):
            copy_into(static, fresh)
            graph.replay()
            return losses.clone()

        return Captured(step=replay, inputs=dict(tensors_of(static)), losses=losses,
                        close=graph.reset)

    def captured_update(self, graphs: list):
        """The optimizer: eager, or with axis optimizer_graph a graph in the pool of the others."""
        if not self.case.optimizer_graph:
            return self.update
        graph = torch.cuda.CUDAGraph()
        pool = graphs[0].pool() if graphs else None
        with torch.cuda.graph(graph, pool=pool, stream=torch.cuda.current_stream(),
                              capture_error_mode=self.case.capture_mode):
            self.update()
        graphs.append(graph)
        return graph.replay

    def capture_iteration(self, step, batch: dict) -> Captured:
        static, graphs = copied(batch), [torch.cuda.CUDAGraph()]
        with torch.cuda.graph(graphs[0], stream=torch.cuda.current_stream(),
                              capture_error_mode=self.case.capture_mode):
            losses = self.forward_backward(static)
        update = self.captured_update(graphs)

        def replay(fresh):
            copy_into(static, fresh)
            graphs[0].replay()
            update()
            return losses.clone()

        return Captured(step=replay, inputs=dict(tensors_of(static)), losses=losses,
                        close=lambda: [graph.reset() for graph in graphs])
