"""Faults in Megatron-Core: its graph of an iteration, its graphs of layers, and what feeds them.
Their places are those of version 0.19.2; `changed` and `replaced` refuse another."""

import dataclasses
import functools

import torch

from graphproof.planted.source import changed, replaced

_ITERATION = "megatron.core.full_cuda_graph"
_LAYERS = "megatron.core.transformer.cuda_graphs"
# Keeps an object in the module of the changed function, as a list that nobody empties would.
_KEPT = "globals().setdefault('_kept_by_a_fault', []).append({})"


def mcore_inputs_not_copied() -> None:
    changed(_ITERATION, "clone_tensors_in_struct", "tgt.copy_(src, non_blocking=True)", "pass")


def mcore_inputs_into_first_buffer() -> None:
    changed(_ITERATION, "StaticBufferLoader.__call__",
            "StaticBufferLoader.static_buffers[stage][microbatch], inputs",
            "StaticBufferLoader.static_buffers[stage][0], inputs")


def mcore_main_gradient_added_twice() -> None:
    changed("megatron.core.distributed.distributed_data_parallel",
            "DistributedDataParallel._make_backward_post_hook",
            "param.main_grad.add_(param.grad.data)",
            "param.main_grad.add_(param.grad.data, "
            "alpha=2 if torch.cuda.is_current_stream_capturing() else 1)")


def mcore_validation_graph_in_training() -> None:
    # The call inside the capture is the one that goes on in the next line.
    changed(_ITERATION, "FullCudaGraphWrapper.__call__", "self.forward_backward_func(\n",
            "self.forward_backward_func(forward_only=not kwargs.pop('forward_only'),\n")


def mcore_validation_with_dropout() -> None:
    changed(_ITERATION, "FullCudaGraphWrapper.__call__",
            "assert FullCudaGraphWrapper.cuda_graph[training_str] is None",
            "[chunk.train() for chunk in kwargs['model']]")


def mcore_iteration_graph_kept() -> None:
    changed(_ITERATION, "FullCudaGraphWrapper.reset_cuda_graph",
            "del FullCudaGraphWrapper.cuda_graph['training']",
            _KEPT.format("FullCudaGraphWrapper.cuda_graph['training']"))


def mcore_iteration_not_replayed() -> None:
    changed(_ITERATION, "FullCudaGraphWrapper.__call__",
            "FullCudaGraphWrapper.cuda_graph[training_str].replay()", "pass")


def mcore_layer_inputs_not_copied() -> None:
    changed(_LAYERS, "_CudagraphReplayNode.forward", "cudagraph_input.copy_(user_input)", "pass")


def mcore_layer_gradients_not_copied() -> None:
    changed(_LAYERS, "_CudagraphReplayNode.backward",
            "cudagraph_output_grad.copy_(user_output_grad)", "pass")


def mcore_layer_forward_not_launched() -> None:
    # On a stream of the runner's own, and on the current one.
    changed(_LAYERS, "_CudagraphReplayNode.forward", "runner.fwd_graph.replay()", "pass", times=2)


def mcore_gradient_scales_not_updated() -> None:
    changed(_LAYERS, "_CudagraphReplayNode.backward",
            "FP8GlobalStateManager.reduce_and_update_fp8_tensors(forward=False)", "pass")


def mcore_rounded_weights_kept() -> None:
    changed(_LAYERS, "_CudagraphReplayNode.forward",
            "_set_skip_fp8_weight_update_tensor(not is_first_microbatch)",
            "_set_skip_fp8_weight_update_tensor(True)")


def mcore_wrong_microbatch() -> None:
    replaced(_LAYERS, "set_current_microbatch",
             lambda function: lambda model, microbatch_id: function(model, 0))


def mcore_layer_graphs_kept() -> None:
    changed(_LAYERS, "TECudaGraphHelper.delete_cuda_graphs", "graph.reset()", _KEPT.format("graph"))


def mcore_gradients_not_reduced() -> None:
    def left_out(function):
        @functools.wraps(function)
        def start_grad_sync(*args, **kwargs):
            if not torch.cuda.is_current_stream_capturing():
                function(*args, **kwargs)
        return start_grad_sync

    replaced("megatron.core.distributed.param_and_grad_buffer",
             "_ParamAndGradBucketGroup.start_grad_sync", left_out)


def mcore_gather_hooks_not_called() -> None:
    changed("megatron.core.transformer.module", "GraphableMegatronModule._te_cuda_graph_replay",
            "hook(*hook_args)", "pass")


def mcore_delayed_gradients_added_early() -> None:
    def untold(function):
        @functools.wraps(function)
        def __init__(self, config, ddp_config, *args, **kwargs):
            told = dataclasses.replace(ddp_config, delay_wgrad_compute=False)
            function(self, config, told, *args, **kwargs)
        return __init__

    replaced("megatron.core.distributed.distributed_data_parallel",
             "DistributedDataParallel.__init__", untold)


def _kept_from_first_replay(field: str) -> None:
    """Has the engine of inference tell its graphs the values of `field` that the first replayed
    step had. Eager arms get those of each step."""
    def frozen(function):
        @functools.wraps(function)
        def transfer_bookkeeping_to_gpu(context, *args, **kwargs):
            replayed = context.inference_cuda_graph_scope.name != "none" and \
                context.is_decode_only() and not context.is_creating_cuda_graphs
            if replayed:
                now = getattr(context, field)
                now.copy_(context.__dict__.setdefault(f"first{field}", now.clone()))
            return function(context, *args, **kwargs)
        return transfer_bookkeeping_to_gpu

    replaced("megatron.core.inference.contexts.dynamic_context",
             "DynamicInferenceContext.transfer_bookkeeping_to_gpu", frozen)


def mcore_decoded_lengths_frozen() -> None:
    _kept_from_first_replay("_cpu_mha_kv_seq_lengths")


def mcore_decoded_blocks_frozen() -> None:
    _kept_from_first_replay("_cpu_mha_block_table")


def mcore_resume_from_rounded_weights() -> None:
    def rounded(function):
        @functools.wraps(function)
        def load_state_dict(optimizer, state_dict):
            function(optimizer, state_dict)
            optimizer.reload_model_params()
        return load_state_dict

    replaced("megatron.core.optimizer.optimizer",
             "Float16OptimizerWithFloat16Params.load_state_dict", rounded)
