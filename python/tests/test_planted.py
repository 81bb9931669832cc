"""Every planted fault is a row of the table and a function here; on the stand-in it fails its
detector, and its clean twin does not. Faults of other packages than PyTorch need them: here their
places are looked up in the sources of those that are installed."""

import ast
import importlib.util
import json
import os
import re
import sys
import tempfile
import textwrap
import types
import unittest
from unittest import mock

import torch

from graphproof.message import Error
from graphproof.planted import FAULTS, megatron_core, plant, source, transformer_engine
from judged_batch import ROOT, JudgedBatch, run_all


def table() -> list:
    """The rows of matrix/tables/faults.json whose code is in this package."""
    with open(os.path.join(ROOT, "matrix", "tables", "faults.json"), encoding="utf-8") as file:
        text = re.sub(r"^\s*//.*$", "", file.read(), flags=re.M)
    return [row for row in json.loads(text)["faults"]
            if row["axes"].get("subject", "reference") != "reference"]


def case_name(axes: dict) -> str:
    def text(value):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return ",".join(f"{axis}={text(value)}" for axis, value in axes.items())


# Faults that the stand-in cannot show: it does not see what other threads do, and nothing of it
# runs any more when a graph is dropped.
ONLY_ON_A_DEVICE = ("M340", "M347", "M390")


def shown_here() -> list:
    """Only PyTorch itself runs on the stand-in."""
    return [row for row in table() if row["axes"]["subject"] == "torch"
            and row["fault"] not in ONLY_ON_A_DEVICE]


class Table(unittest.TestCase):
    def test_every_row_of_a_package_has_a_function_of_its_name_and_every_function_a_row(self):
        self.assertEqual({row["fault"]: row["name"] for row in table()},
                         {fault: function.__name__ for fault, function in FAULTS.items()})

    def test_an_unknown_fault_is_an_error(self):
        with self.assertRaisesRegex(Error, "M999"):
            plant("M999")


class Planted(unittest.TestCase):
    def judged(self, cases: list) -> list:
        """check -> word for each of the cases [(name, ranks)], which have processes of their own:
        a fault lasts for the life of a process."""
        batches = [JudgedBatch([name], world_size=ranks) for name, ranks in cases]
        for batch in batches:
            self.addCleanup(batch.remove)
        run_all(batches)
        return [{check: word for check, (word, _) in batch.judge(batch.ids[0]).items()}
                for batch in batches]

    def test_each_fault_fails_its_detector(self):
        rows = shown_here()
        self.assertGreaterEqual(len(rows), 30)
        judged = self.judged([(f"{case_name(row['axes'])},fault={row['fault']}",
                               row["axes"].get("dp", 1)) for row in rows])
        for row, words in zip(rows, judged, strict=True):
            with self.subTest(fault=row["fault"], title=row["title"]):
                failed = [check for check, word in words.items() if word == "fail"]
                self.assertTrue(any(check.startswith(row["detector"] + ".") for check in failed),
                                failed)

    def test_no_detector_fails_in_a_clean_twin_and_each_has_seen_something(self):
        detectors = {}
        for row in shown_here():
            ranks, found = detectors.setdefault(case_name(row["axes"]),
                                                (row["axes"].get("dp", 1), set()))
            found.add(row["detector"])
        cases = sorted(detectors.items())
        judged = self.judged([(name, ranks) for name, (ranks, _) in cases])
        for (name, (_, found)), words in zip(cases, judged, strict=True):
            with self.subTest(case=name):
                self.assertEqual([check for check, word in words.items() if word == "fail"], [])
                for detector in found - {"D19"}:  # the stand-in is no capture of CUDA
                    passed = [check for check, word in words.items()
                              if check.startswith(detector + ".") and word == "pass"]
                    self.assertNotEqual(passed, [], detector)


def places(module) -> dict:
    """name of the fault -> (module, function, old, new, how often) of each place that a fault of
    `module` (of graphproof.planted) exchanges; "" and 0 where a whole function is wrapped."""
    result = {}
    for function in FAULTS.values():
        if function.__module__ != module.__name__:
            continue
        seen = result[function.__name__] = []
        with mock.patch.object(module, "changed",
                               lambda module, name, old, new, times=1, seen=seen:
                               seen.append((module, name, old, new, times))), \
                mock.patch.object(module, "replaced",
                                  lambda module, name, wrapper, seen=seen:
                                  seen.append((module, name, "", "", 0)), create=True):
            function()
    return result


def source_of(module: str, name: str) -> str | None:
    """The source of a function of an installed package, which is not imported: that may need a
    GPU. None if the package is not installed."""
    package, _, rest = module.partition(".")
    spec = importlib.util.find_spec(package)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations:
        file = os.path.join(folder, *rest.split(".")) + ".py"
        if os.path.exists(file):
            break
    else:
        return None
    with open(file, encoding="utf-8") as stream:
        text = stream.read()
    body = ast.parse(text).body
    for part in name.split("."):
        found = next(node for node in body if getattr(node, "name", "") == part)
        body = getattr(found, "body", [])
    return ast.get_source_segment(text, found)


class Places(unittest.TestCase):
    """The places of faults in Transformer Engine and Megatron-Core."""

    def test_each_is_in_the_installed_version_as_often_as_the_fault_says(self):
        for module in (transformer_engine, megatron_core):
            for fault, seen in places(module).items():
                self.assertNotEqual(seen, [], fault)
                for package_module, name, old, _, times in seen:
                    text = source_of(package_module, name)
                    if text is None:
                        self.skipTest(f"{package_module} is not installed here")
                    with self.subTest(fault=fault):
                        self.assertIsNotNone(text)
                        if old:
                            self.assertEqual(text.count(old), times)

    def test_what_is_exchanged_is_another_text(self):
        for module in (transformer_engine, megatron_core):
            for fault, seen in places(module).items():
                for _, _, old, new, times in seen:
                    self.assertTrue(old != new or times == 0, fault)


STAND_IN = {
    "megatron/core/inference/contexts/dynamic_context.py": """
        class DynamicInferenceContext:
            is_creating_cuda_graphs = False

            def is_decode_only(self):
                return True

            def transfer_bookkeeping_to_gpu(self):
                return self._cpu_mha_kv_seq_lengths.tolist(), self._cpu_mha_block_table.tolist()
    """,
    "megatron/core/__init__.py": "",
    "megatron/core/full_cuda_graph.py": '''
        import torch
        REPLAYED = []

        def clone_tensors_in_struct(tgt, src):
            tgt.copy_(src, non_blocking=True)

        class StaticBufferLoader:
            static_buffers = {"training": [torch.zeros(1), torch.zeros(1)]}

            def __call__(self, inputs, stage, microbatch):
                clone_tensors_in_struct(
                    StaticBufferLoader.static_buffers[stage][microbatch], inputs)

        class Graph:
            def replay(self):
                REPLAYED.append(self)

        class FullCudaGraphWrapper:
            cuda_graph = {"training": Graph()}

            def __init__(self, function):
                self.forward_backward_func = function

            def __call__(self, *args, **kwargs):
                training_str = "training"
                if kwargs.get("captures"):
                    assert FullCudaGraphWrapper.cuda_graph[training_str] is None
                result = self.forward_backward_func(
                    *args, **kwargs
                )
                FullCudaGraphWrapper.cuda_graph[training_str].replay()
                return result

            def reset_cuda_graph(self):
                del FullCudaGraphWrapper.cuda_graph['training']
        ''',
    "megatron/core/transformer/__init__.py": "",
    "megatron/core/transformer/cuda_graphs.py": '''
        def set_current_microbatch(model, microbatch_id):
            model.append(microbatch_id)

        class _CudagraphReplayNode:
            @staticmethod
            def forward(ctx, runner, inputs):
                for user_input, cudagraph_input in zip(inputs, runner):
                    cudagraph_input.copy_(user_input)
        ''',
    "megatron/core/schedules.py": '''
        from megatron.core.transformer.cuda_graphs import set_current_microbatch
        ''',
}


class StandInPackage(unittest.TestCase):
    """A package of the same names, written here: what a fault changes, and what it says if the
    package has changed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        before = set(sys.modules)
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules)
                  if name.partition(".")[0] == "megatron"}
        sys.path.insert(0, folder.name)

        def restore():
            sys.path.remove(folder.name)
            for name in set(sys.modules) - before:
                del sys.modules[name]
            sys.modules.update(hidden)

        self.addCleanup(restore)
        self.folder = folder.name
        os.makedirs(os.path.join(folder.name, "megatron", "core", "transformer"))
        for file, text in {"megatron/__init__.py": "", **STAND_IN}.items():
            self.write(file, text)
        importlib.invalidate_caches()

    def write(self, file: str, text: str) -> None:
        os.makedirs(os.path.dirname(os.path.join(self.folder, file)), exist_ok=True)
        with open(os.path.join(self.folder, file), "w", encoding="utf-8") as stream:
            stream.write(textwrap.dedent(text))

    def test_a_function_a_method_and_a_static_method_are_changed(self):
        from megatron.core import full_cuda_graph
        from megatron.core.transformer import cuda_graphs
        loader, buffers = (full_cuda_graph.StaticBufferLoader(),
                           full_cuda_graph.StaticBufferLoader.static_buffers["training"])
        plant("M291")
        loader(torch.ones(1), "training", 1)
        self.assertEqual([float(one) for one in buffers], [1, 0])
        plant("M290")
        loader(2 * torch.ones(1), "training", 0)
        self.assertEqual([float(one) for one in buffers], [1, 0])
        plant("M296")
        static = torch.zeros(1)
        cuda_graphs._CudagraphReplayNode.forward(None, [static], [torch.ones(1)])
        self.assertEqual(float(static), 0)

    def test_the_captured_call_is_one_of_forward_passes_alone(self):
        from megatron.core.full_cuda_graph import REPLAYED, FullCudaGraphWrapper
        calls = []
        plant("M293")
        FullCudaGraphWrapper(lambda **kwargs: calls.append(kwargs))(forward_only=False, model=1)
        self.assertEqual(calls, [{"forward_only": True, "model": 1}])
        self.assertEqual(len(REPLAYED), 1)

    def test_a_model_is_back_in_training_mode_when_its_evaluation_is_captured(self):
        from megatron.core.full_cuda_graph import FullCudaGraphWrapper
        model = torch.nn.Linear(1, 1).eval()
        plant("M308")
        wrapper = FullCudaGraphWrapper(lambda **kwargs: model.training)
        self.assertFalse(wrapper(model=[model], captures=False))
        self.assertTrue(wrapper(model=[model], captures=True))

    def test_graphs_of_inference_are_told_what_the_first_one_was(self):
        from megatron.core.inference.contexts.dynamic_context import DynamicInferenceContext
        plant("M422")
        for scope, seen in (("block", [2, 2, 2]), ("none", [2, 3, 4])):
            context, told = DynamicInferenceContext(), []
            context.inference_cuda_graph_scope = types.SimpleNamespace(name=scope)
            for length in (2, 3, 4):
                context._cpu_mha_kv_seq_lengths = torch.tensor([length])
                context._cpu_mha_block_table = torch.tensor([length])
                told.append(context.transfer_bookkeeping_to_gpu())
            self.assertEqual(told, [([one], [at]) for one, at in zip(seen, (2, 3, 4))])

    def test_a_graph_is_not_replayed(self):
        from megatron.core.full_cuda_graph import REPLAYED, FullCudaGraphWrapper
        plant("M295")
        self.assertEqual(FullCudaGraphWrapper(lambda **kwargs: 5)(forward_only=False), 5)
        self.assertEqual(REPLAYED, [])

    def test_a_graph_is_kept_alive_by_the_module(self):
        from megatron.core import full_cuda_graph
        plant("M294")
        full_cuda_graph.FullCudaGraphWrapper(None).reset_cuda_graph()
        self.assertEqual(len(full_cuda_graph._kept_by_a_fault), 1)

    def test_a_function_that_others_have_imported_by_its_name_is_replaced_there_too(self):
        from megatron.core import schedules
        plant("M301")
        model = []
        schedules.set_current_microbatch(model, 3)
        self.assertEqual(model, [0])

    def test_a_renamed_function_a_changed_place_and_a_missing_module_are_told(self):
        self.write("megatron/core/transformer/cuda_graphs.py", "def another(): pass\n")
        self.write("megatron/core/full_cuda_graph.py",
                   "def clone_tensors_in_struct(tgt, src):\n    tgt.copy_(src)\n")
        for fault, words in (
                ("M301", "megatron.core.transformer.cuda_graphs.set_current_microbatch; got .* has "
                         "no attribute 'set_current_microbatch'; want a function"),
                ("M296", "_CudagraphReplayNode.forward; got .* no attribute "
                         "'_CudagraphReplayNode'"),
                ("M290", "clone_tensors_in_struct; got 0 times `tgt.copy_.*want once"),
                ("M303", "param_and_grad_buffer.*No module named")):
            with self.assertRaisesRegex(Error, words):
                plant(fault)


class Source(unittest.TestCase):
    def test_a_place_that_has_gone_is_an_error(self):
        with self.assertRaisesRegex(Error, "0 times `not there`; want once"):
            source.changed("graphproof.planted.source", "changed", "not there", "")


if __name__ == "__main__":
    unittest.main()
