"""Subject `fsdp2`: the model of subject torch, every layer and the rest sharded by fully_shard.

impl manual and full_iteration capture the whole step, with and without the optimizer. impl
callables asks for a graph of each layer, which PyTorch refuses because fully_shard works by hooks.
"""

import contextlib

import torch
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from graphproof import checkpoint
from graphproof.case import Case
from graphproof.subject import Subject
from graphproof.subjects.gpt import Gpt, make_batch
from graphproof.subjects.torch_subject import TorchTraining
from graphproof.subjects.translation import require


def sharding_of(case: Case) -> dict:
    """The arguments of fully_shard that the case's axes stand for."""
    policy = MixedPrecisionPolicy()
    if case.precision == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return {"reshard_after_forward": case.axis("reshard_after_forward", "on") == "on",
            "mp_policy": policy}


class Sharded(TorchTraining):
    """The step over sharded parameters, whose gradients fully_shard reduces by itself. It cannot
    shard a parameter of no dimension."""

    model_class = Gpt

    def wrapped(self):
        mesh = init_device_mesh(self.case.device, (self.case.world_size,))
        for layer in self.model.layers:
            fully_shard(layer, mesh=mesh, **sharding_of(self.case))
        return fully_shard(self.model, mesh=mesh, **sharding_of(self.case))

    def autocast(self):
        return contextlib.nullcontext()  # the policy of fully_shard casts

    def reduces_now(self, last: bool):
        self.trained.set_requires_gradient_sync(last)
        return contextlib.nullcontext()

    def reduce(self) -> None:
        """fully_shard has reduced the gradients in the backward pass."""

    def checkpoint(self, folder: str) -> None:
        """Writes this rank's shards. torch.distributed.checkpoint would write the same ones, and
        needs NumPy for it."""
        checkpoint.write(folder, self.case.rank, "shards",
                         get_state_dict(self.model, self.optimizer))

    def restore(self, folder: str) -> None:
        model, optimizer = checkpoint.read(folder, self.case.rank, "shards")
        set_state_dict(self.model, self.optimizer, model_state_dict=model,
                       optim_state_dict=optimizer)


def build(case: Case) -> Subject:
    """The subject of a case. Error for axes without a counterpart in fully_shard."""
    require(case, "fsdp2", impl=("none", "manual", "full_iteration", "callables"), tp=1, pp=1,
            vpp=1, cp=1, ep=1, etp=1, model="gpt", precision=("fp32", "bf16"), recompute="none",
            modules=([],), optimizer_graph=False, overlap_grad_reduce=False, pool="single")
    training = Sharded(case)
    capture = {"full_iteration": training.capture_iteration,
               "callables": training.capture_callables}.get(case.impl)
    return Subject(model=training.model, step=training.step, optimizer=training.optimizer,
                   batch=lambda step: make_batch(case, step), layers=training.layers,
                   capture=capture, checkpoint=training.checkpoint, restore=training.restore)
