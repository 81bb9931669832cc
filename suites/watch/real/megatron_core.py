"""Megatron-Core 0.19 trains a tiny GPT with one of its CUDA graph implementations, as
megatron/training/training.py sets it up: DDP is built on a side stream, which for full_iteration is
the stream that captures; Transformer Engine's graphs are captured before step `--warmup`.

  torchrun --nproc-per-node N megatron_core.py --impl local|transformer_engine|full_iteration
           [--spec te] [--tp N] [--fp8 delayed] [--ddp-stream default] [--delete-graphs]
           [--recompute MODULES] [--dropout P] [--evaluate] [--autocast]
           [--distributed-optimizer] [--checkpoint-at STEP]

--ddp-stream default builds DDP on the default stream. --delete-graphs asks Megatron-Core to delete
the graphs before the process group is destroyed. Of `local` graphs its delete_cuda_graphs() misses
those of the training step, so the process hangs all the same. --evaluate evaluates one batch three
times after the last step. --autocast has parameters in fp32 and the schedule open an autocast.
--distributed-optimizer is Megatron-Core's own, with gathers of parameters that overlap the forward
pass. --checkpoint-at makes, after that step, the calls that the training loop makes around a
checkpoint.
"""
import argparse
import os
from functools import partial

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
os.environ.setdefault("NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0")

import torch  # noqa: E402
from megatron.core import full_cuda_graph as full  # noqa: E402
from megatron.core import parallel_state  # noqa: E402
from megatron.core.distributed import (  # noqa: E402
    DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads)
from megatron.core.models.gpt import gpt_layer_specs  # noqa: E402
from megatron.core.models.gpt.gpt_model import GPTModel  # noqa: E402
from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator  # noqa: E402
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: E402
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func  # noqa: E402
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed  # noqa: E402
from megatron.core.transformer import cuda_graphs  # noqa: E402
from megatron.core.transformer.module import Float16Module  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402

options = argparse.ArgumentParser()
options.add_argument("--impl", default="none")
options.add_argument("--spec", default="local")
options.add_argument("--fp8", default="")
options.add_argument("--tp", type=int, default=1)
options.add_argument("--ddp-stream", default="side")
options.add_argument("--delete-graphs", action="store_true")
options.add_argument("--recompute", default="")
options.add_argument("--dropout", type=float, default=0.0)
options.add_argument("--evaluate", action="store_true")
options.add_argument("--autocast", action="store_true")
options.add_argument("--distributed-optimizer", action="store_true")
options.add_argument("--checkpoint-at", type=int, default=-1)
options = options.parse_args()
LAYERS, HIDDEN, HEADS, SEQUENCE, BATCH, MICROBATCHES, WARMUP, STEPS = 4, 256, 4, 128, 2, 4, 3, 12

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
torch.distributed.init_process_group("nccl")
parallel_state.initialize_model_parallel(options.tp, 1)
data_parallel = parallel_state.get_data_parallel_world_size()
init_num_microbatches_calculator(rank, None, BATCH * MICROBATCHES * data_parallel, BATCH,
                                 data_parallel)
torch.manual_seed(1234)
te_tracker = options.spec == "te" or options.impl == "transformer_engine"
model_parallel_cuda_manual_seed(1234, te_rng_tracker=te_tracker, use_cudagraphable_rng=True)
extra = {}
if options.fp8:
    extra.update(fp8="hybrid", fp8_recipe=options.fp8, fp8_amax_history_len=4,
                 fp8_amax_compute_algo="max")
if options.recompute:
    extra.update(recompute_granularity="selective", recompute_modules=options.recompute.split(","),
                 add_bias_linear=False)
if options.autocast:
    extra.update(enable_autocast=True, autocast_dtype=torch.bfloat16)
dtype = torch.float32 if options.autocast else torch.bfloat16
config = TransformerConfig(
    num_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=HEADS,
    attention_dropout=options.dropout, hidden_dropout=options.dropout,
    gradient_accumulation_fusion=False, bf16=dtype == torch.bfloat16, params_dtype=dtype,
    pipeline_dtype=dtype, tensor_model_parallel_size=options.tp, use_te_rng_tracker=te_tracker,
    cuda_graph_impl=options.impl, cuda_graph_warmup_steps=WARMUP, cuda_graph_modules=[], **extra)
spec = (gpt_layer_specs.get_gpt_layer_with_transformer_engine_spec if options.spec == "te"
        else gpt_layer_specs.get_gpt_layer_local_spec)
model = GPTModel(config=config, transformer_layer_spec=spec(num_experts=None), vocab_size=1024,
                 max_sequence_length=SEQUENCE, pre_process=True, post_process=True).cuda()
torch.cuda.synchronize()
if config.bf16:
    model = Float16Module(config, model)
torch.cuda.synchronize()
distributed = options.distributed_optimizer
ddp = DistributedDataParallelConfig(grad_reduce_in_fp32=True, overlap_grad_reduce=distributed,
                                    overlap_param_gather=distributed,
                                    use_distributed_optimizer=distributed)
if options.ddp_stream == "default":
    model = DistributedDataParallel(config=config, ddp_config=ddp, module=model)
else:
    side = (full.get_shared_capture_stream() if options.impl == "full_iteration"
            else torch.cuda.Stream())
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model = DistributedDataParallel(config=config, ddp_config=ddp, module=model)
    torch.cuda.current_stream().wait_stream(side)
model.train()
config.finalize_model_grads_func = finalize_model_grads
parameters = [p for p in model.parameters() if p.requires_grad]
if distributed:
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-3, bf16=config.bf16, use_distributed_optimizer=True,
                        overlap_param_gather=True), [model])
    config.no_sync_func = model.no_sync
else:
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
draw = torch.Generator(device="cuda")
draw.manual_seed(7 + parallel_state.get_data_parallel_rank())
positions = torch.arange(SEQUENCE, device="cuda").expand(BATCH, -1).contiguous()
causal = torch.triu(torch.ones(SEQUENCE, SEQUENCE, device="cuda", dtype=torch.bool), 1)
causal = causal.expand(BATCH, 1, -1, -1).contiguous()


def batches():
    while True:
        tokens = torch.randint(0, 1024, (BATCH, SEQUENCE + 1), device="cuda", generator=draw)
        yield {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous(),
               "position_ids": positions, "attention_mask": causal,
               "loss_mask": torch.ones(BATCH, SEQUENCE, device="cuda")}


def loss_of(mask, output):
    value = (output.float() * mask).sum() / mask.sum()
    return value, {"lm loss": value.detach().clone()}  # the schedule divides `value` in place


def forward(data, model):
    batch = next(data)
    output = model(batch["tokens"], batch["position_ids"], batch["attention_mask"],
                   labels=batch["labels"])
    return output, partial(loss_of, batch["loss_mask"])


step = get_forward_backward_func()
if options.impl == "full_iteration":
    step = full.FullCudaGraphWrapper(step, cuda_graph_warmup_steps=WARMUP,
                                     use_single_mempool=config.cuda_graph_use_single_mempool)
helper = None
if options.impl == "transformer_engine":
    helper = cuda_graphs.TECudaGraphHelper(model=[model], config=config, seq_length=SEQUENCE,
                                           micro_batch_size=BATCH, optimizers=[])
data = batches()
for index in range(STEPS):
    if helper is not None and index == WARMUP:
        helper.create_cudagraphs()
    model.zero_grad_buffer()
    losses = step(forward_step_func=forward, data_iterator=data, model=[model],
                  num_microbatches=MICROBATCHES, seq_length=SEQUENCE, micro_batch_size=BATCH,
                  decoder_seq_length=SEQUENCE, forward_only=False)
    torch.cuda.synchronize()
    if not distributed:
        for p in parameters:
            p.grad = p.main_grad.to(p.dtype)
    optimizer.step()
    for p in parameters if not distributed else []:
        p.grad = None
    if index == options.checkpoint_at:
        model.disable_forward_pre_hook()
        model.enable_forward_pre_hook()
    torch.cuda.synchronize()
    print(f"step {index} rank {rank} {[float(l['lm loss']) for l in losses][:1]}", flush=True)
if options.evaluate:
    model.eval()
    batch = next(data)
    for again in range(3):
        with torch.no_grad():
            losses = step(forward_step_func=forward, data_iterator=iter([batch]), model=[model],
                          num_microbatches=1, seq_length=SEQUENCE, micro_batch_size=BATCH,
                          decoder_seq_length=SEQUENCE, forward_only=True)
        print(f"evaluation {again} rank {rank} {float(losses[0]['lm loss'])}", flush=True)
if helper is not None and helper.graphs_created():
    helper.delete_cuda_graphs()
if options.delete_graphs:
    if options.impl == "local":
        cuda_graphs.delete_cuda_graphs()
    full.FullCudaGraphWrapper.cuda_graph = {"training": None, "validation": None}
torch.distributed.barrier()
torch.distributed.destroy_process_group()
print(f"rank {rank} ends", flush=True)
