"""Subject `transformer_engine`: TransformerLayer with Transformer Engine's graphed callables.

impl transformer_engine: make_graphed_callables of Transformer Engine over all layers, or over the
parts of them that axis modules names, in the order of the schedule. The embedding and the output
layer are PyTorch's and run eagerly.
"""

import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from graphproof.case import Case
from graphproof.subject import Captured, Subject
from graphproof.subjects.fp8_state import Fp8State, forget_fp8_state
from graphproof.subjects.gpt import DROPOUT, make_batch
from graphproof.subjects.torch_subject import graphs_made
from graphproof.subjects.training import Training, accept_streams_of_accumulators
from graphproof.subjects.translation import require

AMAX_HISTORY = 4  # steps; short, so that scales move within the steps of a case
WARMUPS = 3


def layer_of(case: Case) -> dict:
    """The arguments of te.TransformerLayer that the case's axes stand for. Sizes in elements."""
    dropout = DROPOUT if case.dropout else 0.0
    return {
        "hidden_size": case.hidden, "ffn_hidden_size": case.ffn or 4 * case.hidden,
        "num_attention_heads": case.heads, "hidden_dropout": dropout, "attention_dropout": 0.0,
        "self_attn_mask_type": "causal", "normalization": case.normalization,
        "activation": case.activation, "bias": bool(case.linear_bias), "fuse_qkv_params": True,
        "params_dtype": torch.float32 if case.precision == "fp32" else torch.bfloat16,
    }


def part_of(case: Case, name: str) -> dict:
    """The arguments of te.MultiheadAttention ("attn") and te.LayerNormMLP ("mlp"), which make up a
    layer whose parts are captured on their own."""
    layer = layer_of(case)
    own = {"attn": ("num_attention_heads", "attention_dropout", "fuse_qkv_params"),
           "mlp": ("ffn_hidden_size", "activation")}[name]
    shared = ("hidden_size", "normalization", "bias", "params_dtype")
    more = {"input_layernorm": True, "attn_mask_type": "causal"} if name == "attn" else {}
    return {**{key: layer[key] for key in (*shared, *own)}, **more}


class PartsLayer(nn.Module):
    """A layer of te.MultiheadAttention and te.LayerNormMLP with their norms, and its residuals.
    [S, B, H]. `calls`: part -> what runs it, the module or a graphed callable."""

    def __init__(self, case: Case):
        super().__init__()
        import transformer_engine.pytorch as te
        self.attn = te.MultiheadAttention(**part_of(case, "attn"))
        self.mlp = te.LayerNormMLP(**part_of(case, "mlp"))
        self.calls = {"attn": self.attn, "mlp": self.mlp}

    def forward(self, x: torch.Tensor, **keywords) -> torch.Tensor:
        x = x + self.calls["attn"](x, **keywords)
        return x + self.calls["mlp"](x, **keywords)


def recipe_of(case: Case) -> tuple | None:
    """The recipe of FP8 or FP4: the name of its class in transformer_engine.common.recipe, and its
    arguments. None without FP8."""
    return {"fp8_delayed": ("DelayedScaling", {"amax_history_len": AMAX_HISTORY,
                                               "amax_compute_algo": "max"}),
            "fp8_current": ("Float8CurrentScaling", {}), "mxfp8": ("MXFP8BlockScaling", {}),
            "nvfp4": ("NVFP4BlockScaling", {})}.get(case.precision)


class TeModel(nn.Module):
    """Embedding, layers of Transformer Engine, a norm and the output layer. Hidden states are
    [S, B, H]."""

    def __init__(self, case: Case):
        super().__init__()
        import transformer_engine.pytorch as te
        dtype = layer_of(case)["params_dtype"]
        self.tokens = nn.Embedding(case.vocab, case.hidden, dtype=dtype)
        self.layers = nn.ModuleList(
            PartsLayer(case) if case.modules else
            te.TransformerLayer(layer_number=number + 1, **layer_of(case))
            for number in range(case.layers))
        self.norm = nn.LayerNorm(case.hidden, dtype=dtype)
        self.head = nn.Linear(case.hidden, case.vocab, bias=False, dtype=dtype)
        self.calls, self.keywords = list(self.layers), {}

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """tokens and labels [B, S] int64; returns the mean loss, a scalar in fp32."""
        x = self.tokens(tokens).transpose(0, 1).contiguous()
        for call in self.calls:
            x = call(x, **self.keywords)
        logits = self.head(self.norm(x)).transpose(0, 1).float()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class TeTraining(Training):
    """The step of Transformer Engine's layers."""

    model_class = TeModel

    def __init__(self, case: Case):
        super().__init__(case)
        self.recipe = None
        if recipe_of(case):
            from transformer_engine.common import recipe
            name, arguments = recipe_of(case)
            self.recipe = getattr(recipe, name)(**arguments)

    def group(self):
        """The ranks over which maxima of FP8 are reduced."""
        return dist.group.WORLD if self.case.world_size > 1 else None

    def autocast(self):
        if self.recipe is None:
            return contextlib.nullcontext()
        import transformer_engine.pytorch as te
        return te.autocast(enabled=True, recipe=self.recipe, amax_reduction_group=self.group())

    def forward_backward(self, batch: dict) -> torch.Tensor:
        self.microbatch = 0
        return super().forward_backward(batch)

    def reduces_now(self, last: bool):
        if self.case.fp8_weights:
            # Copies of the weights in FP8 are made by the first microbatch of a step.
            self.model.keywords = {"is_first_microbatch": self.microbatch == 0}
        self.microbatch += 1
        return contextlib.nullcontext()

    def places(self) -> list:
        """What is captured, in the order in which it runs: (list or dictionary of what the model
        calls, its key)."""
        if not self.case.modules:
            return [(self.model.calls, number) for number in range(len(self.layers))]
        return [(layer.calls, name) for layer in self.layers for name in ("attn", "mlp")
                if name in self.case.modules]

    def capture(self, step, batch: dict) -> Captured:
        import transformer_engine.pytorch as te
        accept_streams_of_accumulators()
        case, places = self.case, self.places()
        eager = [owner[key] for owner, key in places]
        shape = (case.seq_length, case.microbatch_size, case.hidden)
        dtype = layer_of(case)["params_dtype"]
        # One sample for each callable and microbatch; microbatches run one after the other.
        samples = tuple((torch.randn(shape, device=case.device, dtype=dtype, requires_grad=True),)
                        for _ in range(len(places) * case.microbatches))
        order = [1, -1] * case.microbatches
        with graphs_made() as graphs:
            calls = te.make_graphed_callables(
                tuple(eager), samples, num_warmup_iters=WARMUPS, allow_unused_input=True,
                enabled=self.recipe is not None, recipe=self.recipe,
                amax_reduction_group=self.group(), cache_quantized_params=bool(case.fp8_weights),
                _order=order)

        def run_by(callables) -> None:
            for (owner, key), call in zip(places, callables, strict=True):
                owner[key] = call

        def chosen(last: bool):
            # Callable by callable within a microbatch, microbatch by microbatch.
            first = self.microbatch * len(places)
            run_by(calls[first:first + len(places)])
            return TeTraining.reduces_now(self, last)

        self.reduces_now = chosen

        def close():
            run_by(eager)
            del self.reduces_now
            for call in calls:
                if hasattr(call, "reset"):
                    call.reset()
            for graph in graphs:
                graph.reset()

        return Captured(step=step, close=close)

    def close(self) -> None:
        if self.recipe is not None:
            forget_fp8_state()


def build(case: Case) -> Subject:
    """The subject of a case. Error for axes without a counterpart in Transformer Engine."""
    require(case, "transformer_engine", impl=("none", "transformer_engine"), tp=1, pp=1, vpp=1,
            cp=1, ep=1, etp=1, model="gpt", optimizer_graph=False, pool="single",
            modules=([], ["attn"], ["mlp"], ["attn", "mlp"]),
            precision=("fp32", "bf16", "fp8_delayed", "fp8_current", "mxfp8", "nvfp4"),
            recompute="none",
            overlap_grad_reduce=False)
    training = TeTraining(case)
    fp8 = Fp8State(used=training.recipe is not None)
    unobserved = {
        "D08.masks": "Transformer Engine draws dropout in kernels of its own",
        "D05.operands_alive": "Transformer Engine calls its kernels past PyTorch's operators",
        "D37.modules_warmed_up": "Transformer Engine warms its layers up by itself"}
    if case.fp8_weights:
        unobserved["D39.fp8_weights"] = "Transformer Engine does not count its copies of weights"
    return Subject(model=training.model, step=fp8.of(training.step), optimizer=training.optimizer,
                   batch=lambda step: make_batch(case, step), layers=training.layers,
                   capture=fp8.of_capture(training.capture), keeps_masks=False,
                   compared_buffers=lambda name: False,
                   unobserved=unobserved, close=fp8.of(training.close))
