"""Subject `megatron_core`: models, schedules, optimizer and graphs of Megatron-Core, set up as its
own training loop does.

impl local, transformer_engine and full_iteration are cuda_graph_impl. Megatron-Core keeps graphs in
places of the process, so arms that capture do not overlap. Whether graphs were made is read from
its own objects, because impl local falls back to eager in silence.
"""

import contextlib
import enum
from functools import partial

import torch
import torch.distributed as dist
from torch import nn

from graphproof.case import Case
from graphproof.checkpoint import load_states, save_states
from graphproof.learning_rate import Chained
from graphproof.message import Error
from graphproof.subject import Captured, Subject, gradient_of
from graphproof.subjects import megatron_core_checkpoint as checkpoint
from graphproof.subjects import megatron_core_config as translated
from graphproof.subjects.fp8_state import Fp8State, forget_fp8_state
from graphproof.subjects.megatron_core_recompute import count_recomputes
from graphproof.subjects.packed_sequences import packed, parameters_of
from graphproof.subjects.training import accept_streams_of_accumulators
from graphproof.subjects.translation import require

# What a runner of impl local keeps of its captures. The captured outputs have an autograd graph,
# whose nodes refer to the parameters, and by their hooks to the model: a cycle that no collector
# sees. Its first arguments are outputs of another graph if it captured an inference.
HELD_BY_RUNNERS = ("args", "kwargs", "outputs",
                   "fwd_graph", "bwd_graph", "fwd_graph_outputs", "fwd_graph_output_surface",
                   "fwd_graph_input_surface", "fwd_graph_input_args", "fwd_graph_input_kwargs",
                   "static_grad_outputs", "static_grad_inputs", "params_to_backprop")

_initialized = []  # PyTorch's process group over which Megatron-Core's groups were made
_allocations = []  # one entry for each time that impl local has allocated in the pool of its graphs


def note_allocations() -> None:
    """Has each allocation of impl local in the pool of its graphs noted, once a process."""
    from megatron.core.transformer import cuda_graphs
    allocate = cuda_graphs.alloc_tensor_from_graph_mempool
    if getattr(allocate, "noted", False):
        return

    def noted(meta):
        _allocations.append(meta)
        return allocate(meta)

    noted.noted = True
    cuda_graphs.alloc_tensor_from_graph_mempool = noted


def initialize(case: Case) -> None:
    """Makes what Megatron-Core has once a process and what the layout of a case decides: process
    groups, the number of microbatches, the tracker of random numbers. Once a case: a case has a
    process group of PyTorch of its own, and with that of an earlier case its groups have gone."""
    from megatron.core import parallel_state
    from megatron.core.num_microbatches_calculator import (destroy_num_microbatches_calculator,
                                                           init_num_microbatches_calculator)
    from megatron.core.tensor_parallel.random import initialize_rng_tracker
    if _initialized == [dist.group.WORLD]:
        require_layout(case)
        return
    note_allocations()
    parallel_state.destroy_model_parallel()
    destroy_num_microbatches_calculator()
    initialize_rng_tracker(use_te_rng_tracker=translated.te_generators(case),
                           use_cudagraphable_rng=True, force_reset=True)
    parallel_state.initialize_model_parallel(
        case.tp, case.pp, case.vpp if case.vpp > 1 else None, context_parallel_size=case.cp,
        expert_model_parallel_size=case.ep, expert_tensor_parallel_size=case.etp)
    replicas = parallel_state.get_data_parallel_world_size()
    init_num_microbatches_calculator(case.rank, None,
                                     case.microbatch_size * case.microbatches * replicas,
                                     case.microbatch_size, replicas)
    _initialized[:] = [dist.group.WORLD]
    require_layout(case)


def require_layout(case: Case) -> None:
    """Error if Megatron-Core's groups are not those of the case, whose results would look right."""
    from megatron.core import parallel_state as state
    sizes = {"tp": state.get_tensor_model_parallel_world_size(),
             "pp": state.get_pipeline_model_parallel_world_size(),
             "vpp": state.get_virtual_pipeline_model_parallel_world_size() or 1,
             "cp": state.get_context_parallel_world_size(),
             "ep": state.get_expert_model_parallel_world_size(),
             "etp": state.get_expert_tensor_parallel_world_size()}
    wanted = {axis: case.axes[axis] for axis in sizes}
    if sizes != wanted:
        raise Error("the groups of Megatron-Core", str(sizes), str(wanted),
                    "ranks of another layout train another model under the name of this case",
                    "make the groups of each case anew (python/graphproof/subjects)")


def require_settings(config, wanted: dict) -> None:
    """Error if Megatron-Core's configuration has another value than the case asks for: it corrects
    some settings by itself, and the results of another one would look right."""
    def plain(value):
        if isinstance(value, list):
            return [getattr(one, "name", one) for one in value]
        return value.name if isinstance(value, enum.Enum) else value

    changed = {name: plain(getattr(config, name)) for name, value in wanted.items()
               if plain(getattr(config, name)) != value}
    if changed:
        raise Error("the configuration of Megatron-Core", str(changed),
                    str({name: wanted[name] for name in changed}),
                    "the case would run other settings than its name says",
                    "find out why it changed them: a rule is missing, or a row of "
                    "matrix/tables/subjects.json")


class MegatronModel:
    """The configuration of a model of Megatron-Core, and its chunks."""

    def __init__(self, case: Case):
        from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
        from megatron.core.transformer.transformer_config import (MLATransformerConfig,
                                                                  TransformerConfig)
        self.case = case
        initialize(case)
        model_parallel_cuda_manual_seed(case.seed, use_cudagraphable_rng=True,
                                        te_rng_tracker=translated.te_generators(case))
        config = MLATransformerConfig if translated.has_latents(case) else TransformerConfig
        self.config = config(**translated.config_of(case))
        require_settings(self.config, translated.config_of(case))

    def chunk(self, number: int) -> nn.Module:
        from megatron.core import parallel_state
        from megatron.core.models.gpt import gpt_layer_specs
        from megatron.core.models.gpt.gpt_model import GPTModel
        from megatron.core.transformer.module import Float16Module
        case = self.case
        stage = {} if case.vpp == 1 else {"ignore_virtual": False, "vp_stage": number}
        of_te = case.axis("layer_spec", "local") == "transformer_engine"
        layer = (gpt_layer_specs.get_gpt_layer_with_transformer_engine_spec if of_te
                 else gpt_layer_specs.get_gpt_layer_local_spec)(**translated.layers_of(case))
        predicting = gpt_layer_specs.get_gpt_mtp_block_spec(
            self.config, layer, use_transformer_engine=of_te,
            vp_stage=number if case.vpp > 1 else None) if translated.predictions(case) else None
        model = GPTModel(config=self.config, transformer_layer_spec=layer,
                         mtp_block_spec=predicting,
                         pre_process=parallel_state.is_pipeline_first_stage(**stage),
                         post_process=parallel_state.is_pipeline_last_stage(**stage),
                         **({"vp_stage": number} if case.vpp > 1 else {}),
                         **translated.model_of(case)).cuda()
        torch.cuda.synchronize()  # impl local has changed the current stream meanwhile
        return Float16Module(self.config, model) if translated.is_bf16(case) else model


class MegatronTraining(MegatronModel):
    """A model of Megatron-Core in its DistributedDataParallel, its schedule and its optimizer."""

    def __init__(self, case: Case):
        from megatron.core import full_cuda_graph
        from megatron.core.distributed.finalize_model_grads import finalize_model_grads
        from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
        accept_streams_of_accumulators()
        super().__init__(case)
        self.chunks = self._wrapped([self.chunk(number) for number in range(case.vpp)])
        require_settings(self.config, translated.config_of(case))
        self.config.finalize_model_grads_func = finalize_model_grads
        self.optimizer = self._optimizer()
        self.config.grad_scale_func = self.optimizer.scale_loss
        if case.overlap_grad_reduce:
            self._reduce_in_the_last_microbatch()
        self.forward_backward = self.wrapper = get_forward_backward_func()
        if case.graph_arm and case.impl == "full_iteration":
            self.forward_backward = self.wrapper = full_cuda_graph.FullCudaGraphWrapper(
                self.forward_backward, cuda_graph_warmup_steps=case.warmup_steps,
                use_single_mempool=self.config.cuda_graph_use_single_mempool)
        if case.dispatch == "paged_stash":
            from megatron.core.transformer.moe.paged_stash import PagedStashRunner
            # It runs a step again whose tokens found no room, as the training loop has it.
            self.forward_backward = PagedStashRunner(self.config, False, self.chunks,
                                                     self.optimizer, self.forward_backward)
        self.helper = None

    def _wrapped(self, chunks: list) -> list:
        """The chunks in DistributedDataParallel, built on a side stream, and for full_iteration on
        the stream of its capture, as the training loop does. On the default stream the gradient
        accumulators would belong to it, and the capture would fail (error 906)."""
        from megatron.core import full_cuda_graph
        from megatron.core.distributed import (DistributedDataParallel,
                                               DistributedDataParallelConfig)
        ddp = DistributedDataParallelConfig(**translated.ddp_of(self.case))
        side = full_cuda_graph.get_shared_capture_stream() \
            if self.case.graph_arm and self.case.impl == "full_iteration" else torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            wrapped = [DistributedDataParallel(config=self.config, ddp_config=ddp, module=chunk,
                                               disable_bucketing=number > 0)
                       for number, chunk in enumerate(chunks)]
        torch.cuda.current_stream().wait_stream(side)
        for chunk in wrapped:
            chunk.train()
        return wrapped

    def _reduce_in_the_last_microbatch(self) -> None:
        """Tells the schedule how to keep gradients of earlier microbatches, as the training loop
        does; their hooks would begin the reduction in each of them."""
        no_sync = [chunk.no_sync for chunk in self.chunks]
        begin = [chunk.start_grad_sync for chunk in self.chunks]
        alone = len(self.chunks) == 1
        self.config.no_sync_func = no_sync[0] if alone else no_sync
        self.config.grad_sync_func = begin[0] if alone else begin

    def _optimizer(self):
        from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
        return get_megatron_optimizer(OptimizerConfig(**translated.optimizer_of(self.case)),
                                      self.chunks, use_gloo_process_groups=False)

    # ---- inputs and steps

    def batch(self, step: int) -> list:
        """The inputs of a step: one dictionary for each microbatch, the same on all ranks of a
        data parallel replica, of which a context parallel rank gets its part. [B, S] int64, masks
        included; with axis packed the inputs that packed() returns, [1, S]."""
        from megatron.core import parallel_state
        from megatron.core.utils import get_batch_on_this_cp_rank
        case = self.case
        generator = torch.Generator().manual_seed(
            case.seed * 1_000_003 + step * 1009 + parallel_state.get_data_parallel_rank())
        shape = (case.microbatches, case.microbatch_size, case.seq_length + 1)
        drawn = torch.randint(0, case.vocab, shape, generator=generator)
        if case.packed:
            return [{name: part.cuda() for name, part in packed(one, generator).items()}
                    for one in drawn]
        drawn = drawn.cuda()
        positions = torch.arange(case.seq_length, device="cuda").expand(case.microbatch_size, -1)
        later = torch.ones(case.seq_length, case.seq_length, dtype=torch.bool, device="cuda")
        mask = later.triu(1).expand(case.microbatch_size, 1, -1, -1).contiguous()
        batches = [{"tokens": one[:, :-1].contiguous(), "labels": one[:, 1:].contiguous(),
                    "position_ids": positions.contiguous(), "attention_mask": mask,
                    "loss_mask": torch.ones(case.microbatch_size, case.seq_length, device="cuda")}
                   for one in drawn]
        if case.cp == 1:
            return batches
        group = parallel_state.get_context_parallel_group()
        return [{name: part.contiguous() for name, part in
                 get_batch_on_this_cp_rank(one, is_hybrid_cp=False, cp_group=group).items()}
                for one in batches]

    def _loss(self, mask: torch.Tensor, output: torch.Tensor) -> tuple:
        # The schedule multiplies by cp, because upstream divides by the tokens of all parts.
        value = (output.float() * mask).sum() / (mask.sum() * self.case.cp)
        return value, {"lm loss": value.detach().clone()}  # the schedule divides `value` in place

    def _forward(self, data, model, return_schedule_plan: bool = False) -> tuple:
        """What a schedule calls for each microbatch. `return_schedule_plan`: the schedule that
        overlaps the exchange of tokens runs the parts of layers by itself."""
        one = next(data)
        if self.config.enable_autocast and not torch.is_autocast_enabled("cuda"):
            raise Error("a forward pass of Megatron-Core", "no region of autocast",
                        f"one with {self.config.autocast_dtype}",
                        "the case would compute in fp32 under the name of another type",
                        "find out which schedule opens no region for enable_autocast")
        run = model.build_schedule_plan if return_schedule_plan else model
        # Layers of multi-token prediction leave out the same tokens as the loss does.
        more = {"loss_mask": one["loss_mask"]} if translated.predictions(self.case) else {}
        if self.case.packed:
            more["packed_seq_params"] = parameters_of(one)
        output = run(one["tokens"], one["position_ids"], one.get("attention_mask"),
                     labels=one["labels"], **more)
        return output, partial(self._loss, one["loss_mask"])

    def step(self, batch: list) -> torch.Tensor:
        """Losses [microbatches] on the last stage of a pipeline, zeros on the others."""
        for chunk in self.chunks:
            chunk.zero_grad_buffer()
        self.optimizer.zero_grad()
        reduced = self._run_schedule(batch, forward_only=False)
        self.optimizer.step()
        return self._losses(reduced)

    def evaluate(self, batch: list) -> torch.Tensor:
        """The losses of a batch without dropout and gradients, as the training loop evaluates
        between two steps."""
        with self._parameters_gathered(), torch.no_grad():
            for chunk in self.chunks:
                chunk.eval()
            reduced = self._run_schedule(batch, forward_only=True)
            for chunk in self.chunks:
                chunk.train()
            return self._losses(reduced)

    def _run_schedule(self, batch: list, forward_only: bool) -> list:
        case = self.case
        return self.forward_backward(
            forward_step_func=self._forward, data_iterator=self._data(batch), model=self.chunks,
            num_microbatches=case.microbatches, seq_length=case.seq_length,
            micro_batch_size=case.microbatch_size, decoder_seq_length=case.seq_length,
            forward_only=forward_only)

    def _losses(self, reduced: list) -> torch.Tensor:
        if not reduced:
            return torch.zeros(self.case.microbatches, device="cuda")
        return torch.stack([one["lm loss"] for one in reduced]).clone()

    @contextlib.contextmanager
    def _parameters_gathered(self):
        """Between two steps, with every parameter gathered and without the hooks that gather it
        ahead of a forward pass, as the training loop evaluates and saves."""
        gathers = self.chunks if self.case.overlap_param_gather else ()
        for chunk in gathers:
            chunk.disable_forward_pre_hook()
        yield
        for chunk in gathers:
            chunk.enable_forward_pre_hook()

    def _data(self, batch: list):
        """What the schedule draws microbatches from: an iterator for each chunk. The tensors are
        new ones, as a data loader gives them: impl local notes on a tensor that it has recorded it,
        and would count one of another chunk or of an earlier arm again."""
        chunks = [iter([{name: tensor.detach() for name, tensor in one.items()} for one in batch])
                  for _ in self.chunks]
        return chunks if self.case.vpp > 1 else chunks[0]

    def gradient_read(self, parameter: torch.Tensor) -> torch.Tensor | None:
        """The gradient of a parameter of the optimizer. In bf16 these are copies in fp32, which
        model parameters refer to as `main_param`; their gradient is the model parameter's
        `main_grad`, in which it was also clipped, and their own is dropped after the step."""
        for of_model in (p for chunk in self.chunks for p in chunk.parameters()):
            if getattr(of_model, "main_param", None) is parameter:
                return gradient_of(of_model)
        return gradient_of(parameter)

    # ---- checkpoints

    def save(self) -> dict:
        with self._parameters_gathered():
            return checkpoint.save(nn.ModuleList(self.chunks), is_bias_of_a_router,
                                   optimizer_of_torch(self.optimizer))

    def load(self, saved: dict) -> None:
        checkpoint.load(saved, nn.ModuleList(self.chunks), is_bias_of_a_router,
                        optimizer_of_torch(self.optimizer))

    def write_files(self, folder: str) -> None:
        """What the training loop's checkpoints of format torch have of this rank."""
        with self._parameters_gathered():
            save_states(folder, self.case.rank, **self._states())

    def read_files(self, folder: str) -> None:
        """Has the model load its state and then the optimizer, as the training loop does."""
        load_states(folder, self.case.rank, **self._states())

    def _states(self) -> dict:
        """The chunks by their names in such a checkpoint, and the optimizer after them."""
        chunks = {f"model{number}": chunk for number, chunk in enumerate(self.chunks)}
        return {**chunks, "optimizer": self.optimizer}

    # ---- graphs

    def capture(self, step, batch: list) -> Captured:
        """Transformer Engine's graphs are captured by a call; local and full_iteration capture
        within a step."""
        from megatron.core.transformer import cuda_graphs
        if self.case.impl == "transformer_engine":
            self.helper = cuda_graphs.TECudaGraphHelper(
                model=self.chunks, config=self.config, seq_length=self.case.seq_length,
                micro_batch_size=self.case.microbatch_size, optimizers=[self.optimizer])
            # Hooks that gather parameters are no part of a graph: the helper runs them before a
            # replay instead, as the training loop has it.
            gathers = self.chunks if self.case.overlap_param_gather else ()
            for chunk in gathers:
                chunk.disable_forward_pre_hook(param_sync=False)
            self.helper.create_cudagraphs()
            for chunk in gathers:
                chunk.enable_forward_pre_hook()
            if gathers:
                self.helper.cuda_graph_set_manual_hooks()
        return Captured(step=self.replayed)

    def replayed(self, batch: list) -> torch.Tensor:
        losses = self.step(batch)
        if not self.made_graphs():
            raise Error(f"a step of Megatron-Core with impl {self.case.impl}",
                        "no graph in its own objects", "a graph",
                        "it fell back to eager steps, whose results look right",
                        "read the log of the rank for the reason")
        return losses

    def capture_evaluation(self, batch: list) -> Captured:
        """full_iteration captures within the evaluation that comes next."""
        return Captured(step=self._evaluated_by_graph)

    def _evaluated_by_graph(self, batch: list) -> torch.Tensor:
        from megatron.core import full_cuda_graph
        losses = self.evaluate(batch)
        if full_cuda_graph.FullCudaGraphWrapper.cuda_graph["validation"] is None:
            raise Error("an evaluation of Megatron-Core with impl full_iteration",
                        "no graph in its own objects", "a graph",
                        "it fell back to an eager evaluation, whose losses look right",
                        "compare its count of evaluations with axis warmup_steps")
        return losses

    def made_graphs(self) -> bool:
        """Whether Megatron-Core's own objects have graphs."""
        from megatron.core import full_cuda_graph
        from megatron.core.transformer import cuda_graphs
        if self.case.impl == "local":
            return bool(cuda_graphs._CudagraphGlobalRecord.cudagraph_created)
        if self.case.impl == "transformer_engine":
            return self.helper.graphs_created()
        return full_cuda_graph.FullCudaGraphWrapper.cuda_graph["training"] is not None

    def close(self) -> None:
        """Deletes the graphs from where Megatron-Core keeps them, its cache of rotary embeddings,
        which holds modules of every model that has run, its figures of experts, what its optimizer
        has of parameters, and Transformer Engine's list of scales. No other arm has graphs by then,
        and none runs any more."""
        from megatron.core import full_cuda_graph
        modules = [module for chunk in self.chunks for module in chunk.modules()]
        for forward in {type(module).forward for module in modules}:
            getattr(forward, "cache_clear", lambda: None)()
        if self.case.experts:
            from megatron.core.transformer.moe.moe_logging import destroy_moe_metrics_tracker
            destroy_moe_metrics_tracker()
            forget_routed_tokens(modules)
            forget_norms(modules)
        if translated.predictions(self.case):
            from megatron.core.transformer.multi_token_prediction import MTPLossLoggingHelper
            MTPLossLoggingHelper.tracker.clear()
        if translated.is_quantized(self.case):
            forget_fp8_state()
        if self.case.dispatch == "paged_stash":
            forget_stash()
        if self.case.distributed_optimizer:
            forget_shares(self.optimizer)
        if not self.case.graph_arm:
            return
        torch.cuda.synchronize()
        if self.case.impl == "local":
            delete_local_graphs(modules)
        elif self.case.impl == "full_iteration":
            self.wrapper.reset_cuda_graph()
            # PyTorch has freed the pool with its last graph, and a new graph must not begin in it.
            full_cuda_graph._shared_graph_pool = None
            # One list for the life of the process, whose tensors have the shapes of this case.
            for buffers in full_cuda_graph.StaticBufferLoader.static_buffers.values():
                buffers.clear()
        elif self.helper is not None and self.helper.graphs_created():
            self.helper.delete_cuda_graphs()


def delete_local_graphs(modules: list) -> None:
    """What delete_cuda_graphs leaves: it takes graphs from the runners that are not captured
    yet, counts buffers over all graphs of the process, and never gives back the pool, which
    each allocation in it has taken."""
    from megatron.core.transformer import cuda_graphs
    pool = cuda_graphs.CudaGraphManager.global_mempool
    cuda_graphs.delete_cuda_graphs()
    for module in modules:
        manager = getattr(module, "cudagraph_manager", None)
        for runner in manager.cudagraph_runners if manager is not None else ():
            empty_runner(runner)
    while _allocations:
        _allocations.pop()
        torch._C._cuda_releasePool(torch.cuda.current_device(), pool)
    cuda_graphs.fwd_buffer_reuse_ref_count = cuda_graphs.bwd_buffer_reuse_ref_count = 0


def forget_routed_tokens(modules: list) -> None:
    """Takes from the dispatchers of tokens what they hold of the last microbatch. Its probabilities
    have an autograd graph, whose nodes refer to the parameters, and by their hooks to the model: a
    cycle that no collector sees. With a graph they also lie in its pool, which they keep."""
    for dispatcher in [module.token_dispatcher for module in modules
                       if hasattr(module, "token_dispatcher")]:
        for name, value in list(vars(dispatcher).items()):
            if isinstance(value, torch.Tensor):
                setattr(dispatcher, name, None)


def forget_norms(modules: list) -> None:
    """Takes from layers what they hold of the norm ahead of their MLP. The pieces of a step that
    overlaps exchanges keep that of their microbatch elsewhere, and take only theirs away. What a
    capture by Transformer Engine put into the layer stays: the output of its attention, whose
    autograd graph refers to the model, a cycle that no collector sees."""
    for module in modules:
        if getattr(module, "mlp_norm_manager", None) is not None:
            module.mlp_norm_manager = None


def forget_shares(optimizer) -> None:
    """Takes from a distributed optimizer this rank's shares of parameters in fp32. They are views
    with an autograd graph, whose nodes refer to the parameters, and by their hooks to the model,
    which refers to the optimizer: a cycle that no collector sees."""
    for one in getattr(optimizer, "chained_optimizers", [optimizer]):
        for of_group in getattr(one, "shard_fp32_groups", ()):
            of_group.clear()
        if one.optimizer is not None:
            one.optimizer.param_groups.clear()
            one.optimizer.state.clear()


def forget_stash() -> None:
    """Drops the buffers of the paged stash, of which a process has one for all arms, and what it
    has learned of the schedule."""
    from megatron.core.transformer.moe.paged_stash import PagedStashManager
    PagedStashManager.STASH_MGR = None


def empty_runner(runner) -> None:
    """Takes from a runner of impl local what it holds of its captures."""
    for name in HELD_BY_RUNNERS:
        setattr(runner, name, None)


def optimizer_of_torch(optimizer):
    """The optimizer of torch.optim, or of its interface, that one of Megatron-Core uses."""
    chained = getattr(optimizer, "chained_optimizers", None)
    if chained is None:
        return getattr(optimizer, "optimizer", None)
    members = [one.optimizer for one in chained]
    return members[0] if len(members) == 1 else Chained(members)


def layers_of(chunks: list) -> list:
    """The transformer layers of this stage in the order of its chunks, then those of multi-token
    prediction."""
    def of_blocks(name: str) -> list:
        return [layer for chunk in chunks for module in chunk.modules()
                if type(module).__name__ == name for layer in module.layers]
    return [*of_blocks("TransformerBlock"),
            *(layer.mtp_model_layer for layer in of_blocks("MultiTokenPredictionBlock"))]


def build(case: Case) -> Subject:
    """The subject of a case. Error for axes without a counterpart in Megatron-Core."""
    require(case, "megatron_core", impl=("none", "local", "transformer_engine", "full_iteration"),
            model=("gpt", "moe"), pool=("single", "per_graph"), optimizer_graph=False,
            precision=("fp32", "bf16", "fp8_delayed", "fp8_current", "mxfp8", "nvfp4"))
    from megatron.core.transformer import cuda_graphs
    if case.schedule == "decode":
        from graphproof.subjects import megatron_core_inference as inference
        return inference.build(case)
    if case.recompute != "none":
        count_recomputes()
    training = MegatronTraining(case)
    fp8 = Fp8State(used=translated.is_quantized(case))
    inner = optimizer_of_torch(training.optimizer)
    unobserved = {
        "D08.masks": "Megatron-Core draws dropout in functions of its own",
        "D05.operands_alive": "Megatron-Core calls kernels past PyTorch's operators",
        "D37.modules_warmed_up": "Megatron-Core warms its modules up by itself",
        "D41.schedule": "Megatron-Core's schedule does not tell in which order it ran",
        "D42.recompute": "what Megatron-Core recomputes is counted and not kept",
        "D40.expert_ledger": "Megatron-Core's dispatchers do not count tokens by expert"}
    if case.overlap_grad_reduce:
        unobserved["D43.overlapped_reduction"] = \
            "Megatron-Core does not tell when the reduction of a bucket began"
    return Subject(model=nn.ModuleList(training.chunks), step=fp8.of(training.step),
                   batch=training.batch, optimizer=inner, layers=layers_of(training.chunks),
                   capture=fp8.of_capture(training.capture), graphs=(),
                   generators=tracked_generators, gradient_read=training.gradient_read,
                   keeps_masks=False, compared_buffers=is_bias_of_a_router, exclusive=True,
                   unobserved=unobserved,
                   # A stage has as many graphs of a layer as microbatches are between their
                   # forward and backward pass: more on the first one than on the last.
                   captures_alike=case.pp == 1 or case.impl != "local",
                   layer_methods=ways_through_a_layer(case),
                   warming_up=cuda_graphs.is_graph_warmup, evaluate=fp8.of(training.evaluate),
                   capture_evaluation=fp8.of_capture(training.capture_evaluation),
                   save=fp8.of(training.save), load=fp8.of(training.load),
                   checkpoint=fp8.of(training.write_files), restore=fp8.of(training.read_files),
                   close=fp8.of(training.close))


def is_bias_of_a_router(buffer: str) -> bool:
    """Whether a buffer of this name is a result of the step. Others are memory that Transformer
    Engine does not initialise, or counts that the step has used up."""
    return buffer.endswith(".expert_bias")


def ways_through_a_layer(case: Case) -> tuple:
    """The methods of a layer of which every forward pass, eager or captured, calls exactly one. The
    schedule that overlaps the exchange of tokens calls the parts of a layer alone."""
    return ("_forward_attention",) if case.overlap_ep_comm else ("forward",
                                                                 "_te_cuda_graph_capture")


def tracked_generators() -> dict:
    """The generators of Megatron-Core's tracker, of which a process has one for all arms. Looked up
    in each step, because every model that is built seeds new ones."""
    from megatron.core.tensor_parallel.random import get_cuda_rng_tracker
    return {name: state for name, state in get_cuda_rng_tracker().get_states().items()
            if isinstance(state, torch.Generator)}
