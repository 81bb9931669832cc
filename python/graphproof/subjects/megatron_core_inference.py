"""Inference with Megatron-Core's engine of dynamic batches, for axis schedule decode.

A step decodes one token of each running request: DynamicInferenceContext pads the batch to a size
that has a graph, and the layers (inference_scope layer) or all of them together (block) are
replayed. Prompts run eagerly. Requests end one after the other, so that batches become smaller;
then others begin. Tokens come from the inputs of a step instead of from a sampler, so that every
step of every arm has new ones; what the sampler would take is a result.

Eager arms have the same sizes of batches, whose layers run without graphs: the shapes of products
decide in which order they are summed.
"""

import contextlib

import torch
import torch.nn.functional as F
from torch import nn

from graphproof.case import Case
from graphproof.message import Error
from graphproof.subject import Captured, Subject
from graphproof.subjects import paged_attention
from graphproof.subjects.launches import launches
from graphproof.subjects.megatron_core_subject import (MegatronModel, delete_local_graphs,
                                                       layers_of, tracked_generators)

GENERATION_STEPS = 6  # after which the last request of a batch ends
BLOCK_TOKENS = 16  # of the cache; few, so that requests get new blocks under live graphs
FLASH_BLOCK_TOKENS = 256  # the smallest block that every version of flash-attn takes
CACHE_GB = 1 / 16
GRAPH_SIZES = 16  # at most, as the options of the inference server have it
PADDING = 64  # to a multiple of which the context pads the tokens of prompts


def attention_kernel() -> str:
    """Whose functions the engine calls for attention. Puts graphproof's own in the place of
    flash-attn's if no version of it is installed."""
    from megatron.core.transformer import attention
    if attention.flash_attn_with_kvcache is None and not (attention.HAVE_FA3 or attention.HAVE_FA4):
        attention.flash_attn_with_kvcache = paged_attention.flash_attn_with_kvcache
        attention.flash_attn_varlen_func = paged_attention.flash_attn_varlen_func
        # Attention asks for a version of the package before it calls any of its functions.
        attention.is_fa_min_version = lambda version, check_equality=True: True
    own = attention.flash_attn_with_kvcache is paged_attention.flash_attn_with_kvcache
    return "graphproof" if own else "flash_attn"


class Results(nn.Module):
    """What a step leaves: logits [requests, vocabulary] and the tokens of greedy sampling
    [requests], by the request's place among those that began together. 0 for requests that have
    ended."""

    def __init__(self, case: Case):
        super().__init__()
        shape = (case.microbatch_size, case.vocab)
        self.register_buffer("logits", torch.zeros(shape, device="cuda"))
        self.register_buffer("greedy", torch.zeros(shape[0], dtype=torch.int64, device="cuda"))


class MegatronDecoding(MegatronModel):
    """A model of Megatron-Core, its context, controller and engine of inference."""

    def __init__(self, case: Case):
        super().__init__(case)
        from megatron.core.inference.contexts.dynamic_context import DynamicInferenceContext
        from megatron.core.inference.model_inference_wrappers.gpt.gpt_inference_wrapper import \
            GPTInferenceWrapper
        from megatron.core.inference.text_generation_controllers.text_generation_controller import \
            TextGenerationController
        self.kernel = attention_kernel()
        self.model, self.results = self.chunk(0).eval(), Results(case)
        self.context = DynamicInferenceContext(self.config, self.settings())
        wrapper = GPTInferenceWrapper(self.model, self.context)
        wrapper.prep_model_for_inference()
        self.controller = TextGenerationController(wrapper, tokenizer=None)
        self.engine = None
        self.steps = 0  # that this job has run
        self.began = 0  # the step in which the requests began
        self.prefilling = False

    def settings(self):
        """InferenceConfig: batches of microbatch_size requests at most, of seq_length tokens."""
        from megatron.core.inference.config import InferenceConfig
        case = self.case
        tokens = case.microbatch_size * case.seq_length
        return InferenceConfig(
            block_size_tokens=BLOCK_TOKENS if self.kernel == "graphproof" else FLASH_BLOCK_TOKENS,
            buffer_size_gb=CACHE_GB, max_requests=case.microbatch_size,
            max_tokens=-(-tokens // PADDING) * PADDING, max_sequence_length=case.seq_length,
            num_cuda_graphs=GRAPH_SIZES, use_cuda_graphs_for_non_decode_steps=False)

    # ---- inputs and steps

    def prompt_tokens(self) -> int:
        """The tokens of the longest prompt: fewer than a block, so that requests fill it and get
        another one, if sequences are long enough."""
        return min(BLOCK_TOKENS, self.case.seq_length - GENERATION_STEPS) - 1

    def batch(self, step: int) -> dict:
        """tokens and labels [requests] int64 of a step."""
        case = self.case
        generator = torch.Generator().manual_seed(case.seed * 1_000_003 + step * 1009 + 1)
        drawn = torch.randint(0, case.vocab, (2, case.microbatch_size), generator=generator)
        return {"tokens": drawn[0].cuda(), "labels": drawn[1].cuda()}

    def running(self, request: int) -> bool:
        """Whether a request decodes in this step. They end one after the other."""
        return self.steps - self.began < max(1, GENERATION_STEPS - request)

    def step(self, batch: dict) -> torch.Tensor:
        """The mean loss [1] of the next tokens of the running requests."""
        from megatron.core.inference.utils import InferenceMode
        with InferenceMode.active(), torch.inference_mode():
            # The first step is a job of its own: the next one may capture, for which no request
            # may be running.
            if self.steps - self.began == (GENERATION_STEPS if self.began else 1) \
                    or self.steps == 0:
                self.begin_requests()
            ids = self.choose_tokens(batch["tokens"])
            with self.without_graphs() if self.engine is None else contextlib.nullcontext():
                logits = self.forward()
        self.steps += 1
        with torch.no_grad():
            places = torch.tensor(ids, device=logits.device)
            chosen = logits[0, :len(ids)].float()
            self.results.logits.zero_().index_copy_(0, places, chosen)
            self.results.greedy.zero_().index_copy_(0, places, chosen.argmax(-1))
            return F.cross_entropy(chosen, batch["labels"][places]).reshape(1)

    def begin_requests(self) -> None:
        """Forgets all requests and computes the prompts of new ones."""
        from megatron.core.inference.inference_request import DynamicInferenceRequest
        from megatron.core.inference.sampling_params import SamplingParams
        case = self.case
        self.context.reset()
        self.began = self.steps
        generator = torch.Generator().manual_seed(case.seed * 1_000_003 + self.began)
        for request in range(case.microbatch_size):
            # Prompts of different lengths, of one token at least.
            length = max(1, self.prompt_tokens() - request)
            prompt = torch.randint(0, case.vocab, (length,), generator=generator).cuda()
            self.context.add_request(DynamicInferenceRequest(
                request_id=request, prompt_tokens=prompt,
                sampling_params=SamplingParams(num_tokens_to_generate=GENERATION_STEPS + 1)))
        self.prefilling = True
        self.forward()
        self.prefilling = False

    def choose_tokens(self, tokens: torch.Tensor) -> list:
        """Tells the context which requests go on, and with which tokens [requests]. Returns the
        requests in the order in which it has them now."""
        context = self.context
        ids = context.request_ids[:context.total_request_count].tolist()
        goes_on = torch.tensor([self.running(request) for request in ids], dtype=torch.uint8)
        context.update_requests(goes_on, tokens.cpu()[ids])
        if context.paused_request_count > 0:
            raise Error("a step of Megatron-Core's engine of inference",
                        f"{context.paused_request_count} requests that wait for memory", "none",
                        "arms would decode other requests", "raise CACHE_GB in python/graphproof/"
                        "subjects/megatron_core_inference.py")
        return context.request_ids[:context.total_request_count].tolist()

    def forward(self) -> torch.Tensor:
        """Logits [1, requests with their padding, vocabulary] by the controller's own steps. With
        graphs they are a buffer of its own, otherwise those of the model, which it would keep."""
        controller = self.controller
        inputs, positions, _ = controller._dynamic_step_context_init()
        controller._dynamic_step_forward_logits(inputs, positions)
        logits = controller._all_logits_cuda
        if not self.case.graph_arm:
            controller._all_logits_cuda = None
        return logits

    # ---- graphs

    @contextlib.contextmanager
    def without_graphs(self):
        """Layers run eagerly, in batches of the sizes of graphs. They would capture at their first
        call otherwise."""
        captured = [module for module in self.model.modules()
                    if hasattr(module, "cudagraph_manager")]
        for module in captured:
            module._should_call_local_cudagraph = lambda *args, **kwargs: False
        yield
        for module in captured:
            del module._should_call_local_cudagraph

    def capture(self, step, batch: dict) -> Captured:
        """The engine captures when it is made, with requests of its own."""
        from megatron.core.inference.engines.dynamic_engine import DynamicInferenceEngine
        from megatron.core.inference.utils import InferenceMode
        try:
            self.engine = DynamicInferenceEngine(self.controller, self.context)
        finally:
            InferenceMode.unset_active()
        return Captured(step=self.replayed)

    def launches_of_a_step(self) -> int:
        """The graphs that a step launches."""
        return 1 if self.case.inference_scope == "block" else len(layers_of([self.model]))

    def replayed(self, batch: dict) -> torch.Tensor:
        with launches() as seen:
            losses = self.step(batch)
        if len(seen) != self.launches_of_a_step() or not self.context.using_cuda_graph_this_step():
            raise Error(f"a step of Megatron-Core's engine of inference with scope "
                        f"{self.case.inference_scope}", f"{len(seen)} graphs launched",
                        str(self.launches_of_a_step()),
                        "a part of it ran eagerly, whose results look right",
                        "read which batch sizes its context has graphs for")
        return losses

    def close(self) -> None:
        """Deletes the graphs from where Megatron-Core keeps them, and its cached embeddings."""
        modules = list(self.model.modules())
        for forward in {type(module).forward for module in modules}:
            getattr(forward, "cache_clear", lambda: None)()
        if self.case.graph_arm:
            torch.cuda.synchronize()
            delete_local_graphs(modules)
        if self.engine is not None:
            self.engine._loop.close()
        self.engine = self.controller = self.context = None


def build(case: Case) -> Subject:
    """The subject of a case with schedule decode."""
    from megatron.core.transformer import cuda_graphs
    job = MegatronDecoding(case)
    return Subject(model=nn.ModuleList([job.model, job.results]), step=job.step, batch=job.batch,
                   layers=layers_of([job.model]), capture=job.capture, graphs=(),
                   generators=tracked_generators, keeps_masks=False, exclusive=True,
                   compared_buffers=lambda name: name in ("1.logits", "1.greedy"),
                   warming_up=lambda: job.prefilling or cuda_graphs.is_graph_warmup(),
                   unobserved={
                       "D05.operands_alive": "Megatron-Core calls kernels past PyTorch's operators",
                       "D37.modules_warmed_up": "Megatron-Core warms its modules up by itself"},
                   close=job.close)
