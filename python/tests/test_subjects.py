"""Which subjects there are, their versions, and what a translation refuses."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
import unittest

from graphproof.case import Case
from graphproof.message import Error
from graphproof.subjects import NAMES, available, ranges, refusals
from judged_batch import ROOT, axes_of


def versions(**found):
    def version_of(package: str) -> str:
        if package not in found:
            raise importlib.metadata.PackageNotFoundError(package)
        return found[package]
    return version_of


class Availability(unittest.TestCase):
    def test_every_subject_has_a_range(self):
        self.assertEqual(tuple(ranges()), NAMES)

    def test_inside_below_above_and_missing(self):
        rows = (({"torch": "2.11.0+cu130"}, True, ""),
                ({"torch": "2.4.1"}, False, "torch 2.4.1 is too old; want 2.8 or newer"),
                ({"torch": "3.0.0"}, False, "torch 3.0.0 is too new"),
                ({}, False, "torch is not installed"))
        for found, can, why in rows:
            answer = available("torch", versions(**found))
            self.assertEqual(answer["available"], can, found)
            self.assertIn(why, answer["why"])

    def test_an_unknown_subject_is_an_error(self):
        with self.assertRaisesRegex(Error, "jax"):
            available("jax")

    def test_the_program_answers_fast_and_without_torch(self):
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "graphproof.subjects", "--json"],
            env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}, capture_output=True,
            text=True, check=True)
        self.assertLess(time.monotonic() - begin, 10)
        answer = json.loads(done.stdout)
        self.assertEqual(tuple(answer), NAMES)
        self.assertEqual(set(answer["torch"]), {"available", "version", "why"})
        # Each line ends with the name of a module, indented by its depth.
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        self.assertIn("graphproof.subjects", imported)
        self.assertNotIn("torch", imported)


def rows_of(file: str) -> dict:
    """A table of the tree, without its comments."""
    with open(os.path.join(ROOT, file), encoding="utf-8") as stream:
        return json.loads(re.sub(r"^\s*//.*$", "", stream.read(), flags=re.M))


class Refusals(unittest.TestCase):
    def test_the_words_are_those_of_the_rules(self):
        rules = rows_of("matrix/rules/graphproof.json")["rules"]
        self.assertEqual(refusals(), {rule["id"]: rule["says"] for rule in rules
                                      if "says" in rule})


class Translation(unittest.TestCase):
    def test_torch_refuses_what_it_has_no_counterpart_for(self):
        from graphproof.subjects.torch_subject import build
        for name, axis in (("impl=local", "impl"), ("tp=2", "tp"), ("precision=mxfp8", "precision"),
                           ("experts=4", "experts")):
            with self.assertRaisesRegex(Error, f"axis {axis} of a case with subject torch"):
                build(Case(axes_of(name), seed=1, device="cpu"))

    def test_megatron_core_gets_the_settings_of_every_axis_that_it_has(self):
        from graphproof.subjects import megatron_core_config as translated

        def config(name: str, graph_arm: bool = True) -> dict:
            return translated.config_of(Case(axes_of(name), seed=1).of_arm(graph_arm))

        rows = (
            ("impl=full_iteration,warmup_steps=3", {"cuda_graph_impl": "full_iteration",
                                                    "cuda_graph_warmup_steps": 3,
                                                    "cuda_graph_modules": []}),
            ("impl=local,modules=attn+mlp", {"cuda_graph_modules": ["attn", "mlp"]}),
            ("tp=2,sequence_parallel=true,pp=2,vpp=2,layers=4,microbatch_group=4",
             {"tensor_model_parallel_size": 2, "sequence_parallel": True,
              "pipeline_model_parallel_size": 2, "virtual_pipeline_model_parallel_size": 2,
              "microbatch_group_size_per_vp_stage": 4, "batch_p2p_sync": False}),
            ("model=moe,experts=4,topk=2,ep=2,dispatcher=alltoall,dispatch=drop_and_pad,"
             "router_aux_loss=true,shared_expert=true",
             {"num_moe_experts": 4, "moe_router_topk": 2, "expert_model_parallel_size": 2,
              "moe_token_dispatcher_type": "alltoall", "moe_expert_capacity_factor": 1.0,
              "moe_pad_expert_input_to_capacity": True, "moe_aux_loss_coeff": 1e-2,
              "moe_grouped_gemm": False,
              "moe_shared_expert_intermediate_size": 256}),
            ("model=moe,experts=4,layer_spec=transformer_engine", {"moe_grouped_gemm": True}),
            ("precision=fp8_current", {"fp8": "hybrid", "fp8_recipe": "tensorwise", "bf16": True,
                                       "first_last_layers_bf16": False}),
            ("precision=mxfp8", {"fp8": "e4m3", "fp8_recipe": "mxfp8", "fp4": None}),
            ("precision=nvfp4", {"fp4": "e2m1", "fp4_recipe": "nvfp4", "fp8": None, "bf16": True}),
            ("impl=full_iteration,pool=per_graph", {"cuda_graph_use_single_mempool": False}),
            ("impl=full_iteration", {"cuda_graph_use_single_mempool": True,
                                     "use_transformer_engine_op_fuser": None}),
            ("op_fuser=true", {"use_transformer_engine_op_fuser": True}),
            ("model=moe,experts=4,dispatcher=flex,dispatch=paged_stash",
             {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep",
              "moe_router_dtype": "fp32", "moe_paged_stash": True,
              "moe_expert_rank_capacity_factor": 2.0, "use_transformer_engine_op_fuser": True}),
            ("precision=fp8_current,first_last_layers_bf16=true", {"first_last_layers_bf16": True}),
            ("model=moe,experts=4,router_score_correction=true",
             {"moe_router_score_function": "sigmoid", "moe_router_enable_expert_bias": True}),
            ("model=moe,experts=4", {"moe_router_score_function": None,
                                     "moe_router_enable_expert_bias": None}),
            ("recompute=full(block,2)", {"recompute_granularity": "full",
                                         "recompute_method": "block", "recompute_num_layers": 2}),
            ("recompute=selective(core_attn,mlp)", {"recompute_granularity": "selective",
                                                    "recompute_modules": ["core_attn", "mlp"]}),
            ("dropout=true,kv_groups=2,qkv_bias=true,activation=swiglu",
             {"hidden_dropout": 0.1, "attention_dropout": 0.0, "num_query_groups": 2,
              "add_qkv_bias": True, "gated_linear_unit": True}),
        )
        for name, wanted in rows:
            with self.subTest(case=name):
                made = config(name)
                self.assertEqual({key: made.get(key) for key in wanted}, wanted)
        eager = config("impl=local", graph_arm=False)
        self.assertEqual(eager["cuda_graph_impl"], "none")
        self.assertNotIn("cuda_graph_modules", eager)

    def test_megatron_cores_own_configuration_takes_these_settings(self):
        try:
            from megatron.core.transformer.transformer_config import TransformerConfig
        except ImportError:
            self.skipTest("megatron-core is not installed here")
        from graphproof.subjects import megatron_core_config as translated
        fields = TransformerConfig.__dataclass_fields__
        for name in ("impl=local,dropout=true", "pp=2,vpp=2,layers=4,microbatch_group=4",
                     "model=moe,experts=4,topk=2,dispatcher=alltoall,dispatch=drop_and_pad",
                     "precision=fp8_delayed,recompute=full(uniform,1)", "cp=2",
                     "mtp_num_layers=1,autocast=bf16", "precision=nvfp4", "op_fuser=true",
                     "impl=full_iteration,pool=per_graph",
                     "model=moe,experts=4,topk=2,dispatcher=flex,dispatch=paged_stash",
                     "impl=local,schedule=decode,inference_scope=block"):
            unknown = set(translated.config_of(Case(axes_of(name), seed=1))) - set(fields)
            self.assertEqual(unknown, set(), name)

    def test_megatron_cores_own_configuration_refuses_in_the_words_of_each_rule(self):
        try:
            from megatron.core.transformer.transformer_config import (MLATransformerConfig,
                                                                      TransformerConfig)
        except ImportError:
            self.skipTest("megatron-core is not installed here")
        from graphproof.subjects import megatron_core_config as translated
        from graphproof.subjects.megatron_core_subject import require_settings
        seen = set()
        for row in rows_of("matrix/profiles/subjects.json")["include"]:
            axes = {**axes_of("subject=megatron_core"), **row}
            if row["subject"] != "megatron_core" or axes["delay_wgrad"] and axes["overlap_ep_comm"]:
                continue  # with delayed weight gradients it looks for Transformer Engine itself
            case = Case(axes, seed=1).of_arm(True)
            said, settings = "", translated.config_of(case)
            config = MLATransformerConfig if translated.has_latents(case) else TransformerConfig
            try:
                require_settings(config(**settings), settings)
            except (AssertionError, ValueError) as error:
                said = str(error)
            rules = [rule for rule, words in refusals().items() if words in said]
            with self.subTest(row=row):
                self.assertEqual(len(rules), 1 if said else 0, said)
                seen.update(rules)
        self.assertEqual(seen, set(refusals()) - {"P001", "P002", "P003", "P004", "R247", "RN47"})
        # Those are said when a model is built or captured.

    def test_transformer_engine_gets_the_arguments_of_its_layer_and_recipe(self):
        from graphproof.subjects import transformer_engine_subject as te
        case = Case(axes_of("precision=fp8_delayed,dropout=true,linear_bias=true,hidden=128"),
                    seed=1)
        layer = te.layer_of(case)
        self.assertEqual((layer["hidden_size"], layer["ffn_hidden_size"], layer["bias"]),
                         (128, 512, True))
        self.assertEqual((layer["hidden_dropout"], str(layer["params_dtype"])),
                         (0.1, "torch.bfloat16"))
        self.assertEqual(te.recipe_of(case)[0], "DelayedScaling")
        self.assertIsNone(te.recipe_of(Case(axes_of("precision=bf16"), seed=1)))

    def test_the_compiler_and_fully_shard_get_their_settings(self):
        from graphproof.subjects import fsdp2_subject, torch_compile_subject
        options = torch_compile_subject.options_of(
            Case(axes_of("graph_trees=off,graph_partition=true"), seed=1), graphs=True)
        self.assertEqual((options["triton.cudagraphs"], options["triton.cudagraph_trees"],
                          options["graph_partition"]), (True, False, True))
        self.assertEqual([torch_compile_subject.options_of(
            Case(axes_of(""), seed=1), graphs=graphs)["triton.cudagraph_or_error"]
            for graphs in (True, False)], [True, False])
        sharding = fsdp2_subject.sharding_of(
            Case(axes_of("reshard_after_forward=off,precision=bf16"), seed=1))
        self.assertFalse(sharding["reshard_after_forward"])
        self.assertEqual(str(sharding["mp_policy"].param_dtype), "torch.bfloat16")

    def test_a_graph_that_the_compiler_gives_up_is_an_error_with_its_reason(self):
        import torch
        from torch._inductor.cudagraph_utils import log_cudagraph_skip_and_bump_counter
        with torch._inductor.config.patch({"triton.cudagraph_or_error": True}), \
                self.assertRaisesRegex(RuntimeError, "due to cpu device"):
            log_cudagraph_skip_and_bump_counter("skipping cudagraphs due to cpu device")

    def test_an_axis_is_never_guessed(self):
        with self.assertRaisesRegex(Error, "axis layers of the case"):
            Case({}, seed=1).layers


if __name__ == "__main__":
    unittest.main()
