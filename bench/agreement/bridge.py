"""What Megatron Bridge itself says about a configuration: builds its configuration container and
runs runtime_config_update, as its training entry does, on the CPU. Needs the Python files of the
wheels megatron-bridge and megatron-core and what they import from PyPI (see compare.py); packages
that want a GPU's libraries are replaced by empty ones, since no configuration runs them."""
import contextlib
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import io
import logging
import os
import sys
import traceback
import types
import warnings

from real import Upstream, plain

# Imported by modules of Bridge, and used by none of what a configuration runs.
ABSENT = {"transformer_engine", "transformer_engine_torch", "megatron.energon", "PIL"}


class Anything(type):
    """A class that has every attribute."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = Anything(name, (), {})
        setattr(cls, name, value)
        return value


class EmptyPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if any(name == one or name.startswith(one + ".") for one in ABSENT):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__, module.__version__ = [], "0.0.0"

        def attribute(name):
            if name.startswith("__"):
                raise AttributeError(name)
            value = Anything(name, (), {})
            setattr(module, name, value)
            return value

        module.__getattr__ = attribute
        return module

    def exec_module(self, module):
        pass


class Bridge(Upstream):
    """`folder` holds both unpacked wheels and the packages that they import."""

    def __init__(self, folder):
        sys.meta_path.append(EmptyPackages())
        super().__init__(folder)
        logging.disable(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load = importlib.import_module
            self.training = load("megatron.bridge.training.config")
            self.provider = load("megatron.bridge.models.gpt_provider").GPTModelProvider
            self.overlap = load("megatron.bridge.training.comm_overlap").CommOverlapConfig
            self.sft = load("megatron.bridge.data.builders.gpt_sft").GPTSFTDatasetConfig
            self.packing = load("megatron.bridge.data.packing").PackedSequenceSpecs

    def fields(self):
        """The section of every field; the first one that has it."""
        config = self.training
        sections = {"model": self.provider, "ddp": config.DistributedDataParallelConfig,
                    "optimizer": config.OptimizerConfig, "train": config.TrainingConfig,
                    "dataset": config.GPTDatasetConfig, "rng": config.RNGConfig,
                    "dist": config.DistributedInitConfig,
                    "rerun_state_machine": config.RerunStateMachineConfig}
        return {field.name: name for name, kind in reversed(sections.items())
                for field in dataclasses.fields(kind)}

    def container(self, sections):
        """What no question is about is as a small sound job has it."""
        config = self.training
        given = lambda name: dict(sections.get(name, {}))
        model = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "seq_length": 64,
                 **self.typed(given("model"))}
        train = {"train_iters": 10, "micro_batch_size": 1, "global_batch_size": 64,
                 **given("train")}
        packed = given("dataset")
        if packed:  # Sequences are packed in datasets for fine-tuning only.
            if model.get("context_parallel_size", 1) > 1:
                model.setdefault("calculate_per_token_loss", True)
            specs = packed.pop("offline_packing_specs", None)
            dataset = self.sft(seq_length=model["seq_length"], dataset_root="/data",
                               dataset_kwargs=packed.pop("dataset_kwargs", None), **packed,
                               offline_packing_specs=self.packing(**specs) if specs else None)
        else:
            dataset = config.GPTDatasetConfig(seq_length=model["seq_length"], random_seed=1,
                                              reset_position_ids=False, eod_mask_loss=False,
                                              reset_attention_mask=False)
        overlap = self.overlap(**{"tp_comm_overlap": False, **given("comm_overlap")}) \
            if "comm_overlap" in sections else None
        return config.ConfigContainer(
            train=config.TrainingConfig(**train), model=self.provider(**model),
            optimizer=config.OptimizerConfig(**{"lr": 1e-4, **given("optimizer")}),
            ddp=config.DistributedDataParallelConfig(**given("ddp")),
            scheduler=config.SchedulerConfig(), dataset=dataset, logger=config.LoggerConfig(),
            tokenizer=config.TokenizerConfig(), checkpoint=config.CheckpointConfig(),
            rng=config.RNGConfig(**given("rng")),
            dist=config.DistributedInitConfig(**given("dist")),
            rerun_state_machine=config.RerunStateMachineConfig(**given("rerun_state_machine")),
            validation=config.ValidationConfig(eval_iters=0, eval_interval=None),
            comm_overlap=overlap)

    def ask(self, question):
        """{"object": {section: {field: value}}, "env", "stack"} -> as Upstream.ask."""
        self.set_facts(question)
        result = {"accepted": True}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), \
                warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                container = self.container(question["object"])
                self.training.runtime_config_update(container)
                result["effective"] = {name: plain(value) for name, value in
                                       vars(container.model).items()}
            except Exception as error:
                site, message = self.site_of(error)
                result = {"accepted": False, "stage": "config", "site": site, "message": message}
        self.restore()
        return result

    def site_of(self, error, output=""):
        frames = [frame for frame in traceback.extract_tb(error.__traceback__)
                  if os.path.realpath(frame.filename).startswith(self.folder)]
        where = [f"{os.path.relpath(os.path.realpath(frame.filename), self.folder)}:{frame.lineno}"
                 for frame in frames]
        return " < ".join(reversed(where[-2:])), f"{type(error).__name__}: {error}"
