"""What Megatron-LM itself says about a configuration: runs the Python files of an unpacked
megatron-core wheel (parser, validate_args, TransformerConfig, DistributedDataParallelConfig) on
the CPU. Facts about the machine (GPU architecture, versions, packages) are those of the question,
so no GPU and no Transformer Engine are needed. Not for several threads: it sets os.environ."""
import argparse
import contextlib
import dataclasses
import importlib
import io
import os
import re
import sys
import traceback
import types
import typing
import warnings


# Names of GPUs by architecture, as the driver gives them.
GPUS = {"75": "Tesla T4", "80": "NVIDIA A100-SXM4-80GB", "90": "NVIDIA H100 80GB HBM3",
        "100": "NVIDIA B200"}


class Upstream:
    """The code of the wheel that was unpacked to `folder`."""

    def __init__(self, folder):
        import torch
        import typing_extensions
        # The wheel wants Python 3.12, of which it uses nothing else.
        if not hasattr(typing, "override"):
            typing.override = typing_extensions.override
        sys.path.insert(0, folder)
        sys.argv = ["pretrain_gpt.py"]
        self.torch, self.folder = torch, os.path.realpath(folder)
        load = importlib.import_module
        self.arguments = load("megatron.training.arguments")
        self.arguments_to_config = load("megatron.training.argument_utils")
        self.config = load("megatron.core.transformer.transformer_config")
        self.ddp = load("megatron.core.distributed.distributed_data_parallel_config")
        self.enums = load("megatron.core.transformer.enums")
        self.utils = load("megatron.core.utils")
        self.rope = load("megatron.core.models.common.embeddings.rope_utils")
        self.moe = load("megatron.core.transformer.moe.moe_utils")
        self.environment = dict(os.environ)
        # Building the parser takes longer than all the rest. validate_args appends to defaults.
        parser = argparse.ArgumentParser(allow_abbrev=False)
        self.parser = self.arguments.add_megatron_arguments(parser)
        self.defaults = [(action, list(action.default)) for action in parser._actions
                         if isinstance(action.default, list)]
        self.arguments.add_megatron_arguments = self.same_parser

    def fields(self):
        return {field.name for field in dataclasses.fields(self.config.TransformerConfig)}

    def same_parser(self, _):
        for action, default in self.defaults:
            action.default = list(default)
        return self.parser

    def ask(self, question):
        """`question` has `words` (a command line) or `object` (fields of TransformerConfig), `env`
        and `stack`, as graphproof-bench-upstream reads them. Returns {"accepted", "stage", "site",
        "message", "effective"}: `site` is the line of upstream's code that raised, or what its
        argument parser complains about."""
        self.set_facts(question)
        errors = io.StringIO()
        stage, result = "cli", {"accepted": True}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors), \
                warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if "words" in question:
                    sys.argv[1:] = question["words"]
                    arguments = self.arguments.parse_args()
                    self.arguments.validate_args(arguments)
                    stage = "config"
                    config = self.arguments_to_config.core_transformer_config_from_args(arguments)
                    stage = "construct"
                    self.ddp.DistributedDataParallelConfig(**self.ddp_fields(arguments))
                else:
                    stage = "config"
                    config = self.config.TransformerConfig(**self.typed(question["object"]))
                result["effective"] = {name: plain(value) for name, value in vars(config).items()}
            except (Exception, SystemExit) as error:
                site, message = self.site_of(error, errors.getvalue())
                result = {"accepted": False, "stage": stage, "site": site, "message": message}
        self.restore()
        return result

    def set_facts(self, question):
        version = importlib.import_module("packaging.version").Version
        stack = question["stack"]
        te = stack.get("te_version", "none")
        self.utils._te_version = version("0.0.0" if te == "none" else te)
        self.utils._torch_version = version(stack["torch_version"])
        # Names that the wheel sets to None where Transformer Engine does not have them.
        for module, since, names in (
                (self.rope, "1.4", ("fused_apply_rotary_pos_emb",
                                    "fused_apply_rotary_pos_emb_thd")),
                (self.moe, "2.1.0", ("fused_permute", "fused_permute_with_probs", "fused_unpermute",
                                     "fused_sort_chunks_by_index",
                                     "fused_sort_chunks_by_index_with_probs"))):
            for name in names:
                present = te != "none" and version(te) >= version(since)
                setattr(module, name, object() if present else None)
        capability = divmod(int(stack["sm"]), 10)
        self.torch.cuda.get_device_capability = lambda *_: capability
        self.torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(
            major=capability[0], minor=capability[1], name=GPUS[stack["sm"]])
        self.arguments.is_flashinfer_min_version = lambda _: stack["flashinfer"] == "true"
        saver = types.ModuleType("torch_memory_saver")
        saver.torch_memory_saver = object()
        sys.modules["torch_memory_saver"] = saver if stack["torch_memory_saver"] == "true" else None
        os.environ.clear()
        os.environ.update(self.environment)
        for name in ("NCCL_ALGO", "CUBLAS_WORKSPACE_CONFIG", "CUDA_DEVICE_MAX_CONNECTIONS"):
            os.environ.pop(name, None)
        os.environ.update(question["env"])
        os.environ["WORLD_SIZE"] = stack["world_size"]

    def restore(self):
        os.environ.clear()
        os.environ.update(self.environment)
        self.torch.use_deterministic_algorithms(False)

    def ddp_fields(self, arguments):
        return {field.name: getattr(arguments, field.name)
                for field in dataclasses.fields(self.ddp.DistributedDataParallelConfig)
                if hasattr(arguments, field.name)}

    def typed(self, fields):
        """Fields as Python code would give them: a member of an enumeration is not its name."""
        typed = dict(fields)
        if typed.get("attention_backend") is not None:
            typed["attention_backend"] = self.enums.AttnBackend[typed["attention_backend"]]
        # graphproof reads a list of one as the same as its element, these fields do not.
        for name in ("moe_router_load_balancing_type", "moe_aux_loss_coeff", "cuda_graph_modules"):
            if isinstance(typed.get(name), list) and len(typed[name]) == 1:
                typed[name] = typed[name][0]
        # The type of what stages send is no option: set, as every training script sets it.
        typed["pipeline_dtype"] = self.torch.bfloat16
        return typed

    def site_of(self, error, output):
        if isinstance(error, SystemExit) and error.code == 2:
            line = output.strip().splitlines()[-1].split("error: ", 1)[1]
            kind = re.sub(r"invalid (choice|\w+ value).*", r"invalid \1", line)
            return "parser: " + re.sub(r"(unrecognized arguments: \S+).*", r"\1", kind), line
        frames = [frame for frame in traceback.extract_tb(error.__traceback__)
                  if os.path.realpath(frame.filename).startswith(self.folder)]
        # A helper is called for several rules: its callers belong to the place.
        first = next(i for i, frame in reversed(list(enumerate(frames))) if frame.name in
                     ("parse_args", "validate_args", "__post_init__",
                      "core_transformer_config_from_args"))
        return " < ".join(
            f"{os.path.relpath(os.path.realpath(frame.filename), self.folder)}:{frame.lineno}"
            for frame in reversed(frames[first:])), f"{type(error).__name__}: {error}"


def plain(value):
    """A value of a configuration object in the form of graphproof's effective configuration."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else value
