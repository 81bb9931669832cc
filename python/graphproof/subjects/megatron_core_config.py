"""Megatron-Core's settings from the axes of a case. Pure: nothing of Megatron-Core is imported.

The set-up follows Megatron-LM's own training loop (megatron/training, core release 0.19).
"""

import torch
import torch.nn.functional as F

from graphproof.case import Case
from graphproof.subjects.gpt import DROPOUT

AMAX_HISTORY = 4  # steps; short, so that scales move within the steps of a case
# precision -> the recipe of FP8 and the format of its numbers.
RECIPES = {"fp8_delayed": ("delayed", "hybrid"), "fp8_current": ("tensorwise", "hybrid"),
           "mxfp8": ("mxfp8", "e4m3")}
# Of the tokens that ranks get if all experts have the same load; every rank has room for all.
STASH_CAPACITY = 2.0
AUX_LOSS, Z_LOSS = 1e-2, 1e-3
WEIGHT_DECAY, CLIPPED_NORM = 0.01, 1.0
BUCKET_ELEMENTS = 1 << 14  # less than a layer of the default model has


def is_bf16(case: Case) -> bool:
    """FP8 keeps everything else in bf16."""
    return case.precision != "fp32"


def is_quantized(case: Case) -> bool:
    """Whether Transformer Engine computes products in 8 or 4 bits."""
    return case.precision in RECIPES or case.precision == "nvfp4"


def quantization_of(case: Case) -> dict:
    if case.precision == "nvfp4":
        return {"fp4": "e2m1", "fp4_recipe": "nvfp4"}
    if case.precision not in RECIPES:
        return {}
    recipe, numbers = RECIPES[case.precision]
    return {"fp8": numbers, "fp8_recipe": recipe, "fp8_amax_history_len": AMAX_HISTORY,
            "fp8_amax_compute_algo": "max",
            "first_last_layers_bf16": bool(case.first_last_layers_bf16)}


def graphs_of(case: Case) -> dict:
    """The settings of CUDA graphs of one arm: those of an eager arm are off.

    The warm-up of impl local uses up random numbers, so that the masks of later steps are no longer
    those of the eager arm (docs/findings/local-graphs-draw-in-warm-up.md). With dropout it is left
    out; the first step has warmed the layers up.
    """
    if not case.graph_arm:
        return {"cuda_graph_impl": "none"}
    passes = 0 if case.impl == "local" and case.dropout else case.warmup_steps
    settings = {"cuda_graph_impl": case.impl, "cuda_graph_modules": list(case.modules),
                "cuda_graph_warmup_steps": passes}
    if case.impl == "full_iteration":
        settings["cuda_graph_use_single_mempool"] = case.pool == "single"
    if case.axis("inference_scope", "none") != "none":
        settings["inference_cuda_graph_scope"] = case.inference_scope
    return settings


def te_generators(case: Case) -> bool:
    """Whether Transformer Engine's tracker of random numbers is used, as arguments.py decides. The
    same in all arms of a case, which have to draw the same numbers."""
    return case.axis("layer_spec", "local") == "transformer_engine" or \
        case.impl == "transformer_engine"


def recompute_of(case: Case) -> dict:
    word, _, arguments = case.recompute.rstrip(")").partition("(")
    if word == "full":
        method, _, count = arguments.partition(",")
        return {"recompute_granularity": "full", "recompute_method": method,
                "recompute_num_layers": int(count)}
    if word == "selective":
        return {"recompute_granularity": "selective", "recompute_modules": arguments.split(",")}
    return {}


def grouped(case: Case) -> bool:
    """Whether the experts of a rank are one grouped linear layer, which only Transformer Engine
    has. Every published recipe has it."""
    return case.experts > 0 and case.axis("layer_spec", "local") == "transformer_engine"


def experts_of(case: Case) -> dict:
    if case.experts == 0:
        return {}
    settings = {
        "num_moe_experts": case.experts, "moe_router_topk": case.topk,
        "moe_token_dispatcher_type": case.dispatcher, "moe_ffn_hidden_size": ffn_of(case),
        "moe_router_load_balancing_type": "aux_loss" if case.router_aux_loss else "none",
        "moe_shared_expert_overlap": bool(case.shared_expert_overlap),
        "moe_grouped_gemm": grouped(case),
    }
    if case.router_aux_loss:
        settings["moe_aux_loss_coeff"] = AUX_LOSS
    if case.router_z_loss:
        settings["moe_z_loss_coeff"] = Z_LOSS
    if case.router_score_correction:
        # The bias follows the load of each expert: it is updated with the gradients of a step.
        settings.update(moe_router_score_function="sigmoid", moe_router_enable_expert_bias=True)
    if case.shared_expert:
        settings["moe_shared_expert_intermediate_size"] = ffn_of(case)
    if case.dispatcher == "flex":
        # Of its libraries the one whose kernels can be captured; it takes probabilities in fp32.
        settings.update(moe_flex_dispatcher_backend="hybridep", moe_router_dtype="fp32")
    if case.dispatch == "paged_stash":
        settings.update(moe_paged_stash=True, moe_expert_rank_capacity_factor=STASH_CAPACITY)
    if case.dispatch == "drop_and_pad":
        settings.update(moe_expert_capacity_factor=1.0, moe_pad_expert_input_to_capacity=True)
    return settings


def has_latents(case: Case) -> bool:
    """Whether attention is that of MLATransformerConfig, which has more settings than its base."""
    return bool(case.axis("multi_latent_attention", False))


def latents_of(case: Case) -> dict:
    """Multi-latent attention in the widths of the axis. The latents have norms, as in every
    published recipe, and rotary positions without the scaling of long sequences."""
    if not has_latents(case):
        return {}
    width = case.hidden // case.heads
    return {"multi_latent_attention": True, "q_lora_rank": case.hidden // 2,
            "kv_lora_rank": case.hidden // 4, "qk_head_dim": width, "v_head_dim": width,
            "qk_pos_emb_head_dim": width // 2, "rope_type": "rope", "qk_layernorm": True}


def predictions(case: Case) -> int:
    """The layers of multi-token prediction."""
    return case.axis("mtp_num_layers", 0)


def autocast_of(case: Case) -> dict:
    """The region of torch.autocast in which the schedule runs the forward pass of a microbatch."""
    if case.axis("autocast", "none") == "none":
        return {}
    return {"enable_autocast": True, "autocast_dtype": torch.bfloat16}


def fuses_operations(case: Case) -> bool:
    """Whether MLP and experts are made of Transformer Engine's operations, which it fuses. The
    paged stash needs it."""
    return bool(case.axis("op_fuser", False)) or case.dispatch == "paged_stash"


def layers_of(case: Case) -> dict:
    """The arguments of the functions that return the specification of a layer."""
    arguments = {"num_experts": case.experts or None, "moe_grouped_gemm": grouped(case),
                 "multi_latent_attention": has_latents(case), "qk_layernorm": has_latents(case)}
    if fuses_operations(case) and case.experts == 0:
        arguments["use_te_op_fuser"] = True  # experts read it from the configuration
    return arguments


def ffn_of(case: Case) -> int:
    return case.ffn or 4 * case.hidden


def config_of(case: Case) -> dict:
    """The arguments of TransformerConfig for one arm of the case."""
    dtype = torch.bfloat16 if is_bf16(case) else torch.float32
    dropout = DROPOUT if case.dropout else 0.0
    settings = {
        "num_layers": case.layers, "hidden_size": case.hidden, "ffn_hidden_size": ffn_of(case),
        "num_attention_heads": case.heads, "attention_dropout": 0.0, "hidden_dropout": dropout,
        "normalization": case.normalization, "gated_linear_unit": case.activation == "swiglu",
        "activation_func": F.silu if case.activation == "swiglu" else F.gelu,
        "add_qkv_bias": bool(case.qkv_bias), "add_bias_linear": bool(case.linear_bias),
        "bf16": is_bf16(case), "params_dtype": dtype, "pipeline_dtype": dtype,
        "tensor_model_parallel_size": case.tp, "pipeline_model_parallel_size": case.pp,
        "context_parallel_size": case.cp, "expert_model_parallel_size": case.ep,
        "expert_tensor_parallel_size": case.etp,
        "sequence_parallel": bool(case.sequence_parallel), "deterministic_mode": True,
        "gradient_accumulation_fusion": bool(case.grad_accumulation_fusion),
        "delay_wgrad_compute": bool(case.delay_wgrad),
        "overlap_moe_expert_parallel_comm": bool(case.overlap_ep_comm),
        "use_cpu_initialization": False, "use_te_rng_tracker": te_generators(case),
        **graphs_of(case), **recompute_of(case), **experts_of(case), **latents_of(case),
        **autocast_of(case), **quantization_of(case),
    }
    if fuses_operations(case):
        settings["use_transformer_engine_op_fuser"] = True
    if predictions(case):
        settings["mtp_num_layers"] = predictions(case)
    if case.kv_groups:
        settings["num_query_groups"] = case.kv_groups
    if case.cp > 1:
        settings["cp_comm_type"] = case.cp_comm_type
    if case.vpp > 1:
        settings["virtual_pipeline_model_parallel_size"] = case.vpp
        # As the training loop has it. In one batch of operations, the two tensors that two stages
        # send each other would be received in each other's place.
        settings.update(overlap_p2p_comm=True, batch_p2p_comm=False)
        if case.microbatch_group:
            settings["microbatch_group_size_per_vp_stage"] = case.microbatch_group
    if case.pp > 1:
        settings["batch_p2p_sync"] = False  # its device-wide wait cannot be captured
    return settings


def ddp_of(case: Case) -> dict:
    """The arguments of DistributedDataParallelConfig. With the package's own size of a bucket the
    small models here have a single one, and nothing would overlap. Weight gradients that are
    computed later have to be told to it too (docs/findings/delayed-gradients-told-once.md)."""
    overlaps = case.overlap_grad_reduce or case.overlap_param_gather
    return {"bucket_size": BUCKET_ELEMENTS if overlaps else None,
            "grad_reduce_in_fp32": is_bf16(case),
            "overlap_grad_reduce": bool(case.overlap_grad_reduce),
            "overlap_param_gather": bool(case.overlap_param_gather),
            "use_distributed_optimizer": bool(case.distributed_optimizer),
            "delay_wgrad_compute": bool(case.delay_wgrad)}


def optimizer_of(case: Case) -> dict:
    """The arguments of OptimizerConfig."""
    adam = case.optimizer == "adam"
    return {"optimizer": case.optimizer, "lr": 0.001 if adam else 0.1, "bf16": is_bf16(case),
            "params_dtype": torch.bfloat16 if is_bf16(case) else torch.float32,
            "weight_decay": WEIGHT_DECAY if case.weight_decay else 0.0,
            "clip_grad": CLIPPED_NORM if case.clip_grad else 0.0, "sgd_momentum": 0.0,
            "use_distributed_optimizer": bool(case.distributed_optimizer),
            "overlap_param_gather": bool(case.overlap_param_gather)}


def model_of(case: Case) -> dict:
    """The arguments of GPTModel besides its configuration and layers."""
    return {"vocab_size": case.vocab, "max_sequence_length": case.seq_length,
            "position_embedding_type": case.position_embedding,
            "share_embeddings_and_output_weights": bool(case.tied_embeddings)}
