"""What Megatron-Core has once a process follows the case that runs. Its modules are stood in for by
what the subject asks of them."""

import contextlib
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

import torch
import torch.distributed as dist

from graphproof.batch import Batch, Place
from graphproof.case import Case
from graphproof.learning_rate import Chained
from graphproof.message import Error
from graphproof.subjects import megatron_core_checkpoint as checkpoint
from graphproof.subjects import megatron_core_config as translated
from graphproof.subjects import megatron_core_inference as inference
from graphproof.subjects import megatron_core_subject as megatron
from graphproof.subjects import packed_sequences
from graphproof.world import World
from judged_batch import LIMITS, axes_of


class Core:
    """Megatron-Core's state of a process, of which `made` is a list of what was asked for."""

    def __init__(self):
        self.made = []
        self.sizes = None

    def initialize(self, tp, pp, vpp, context_parallel_size, expert_model_parallel_size,
                   expert_tensor_parallel_size) -> None:
        assert self.sizes is None, "groups are already initialized"
        self.sizes = (tp, pp, vpp, context_parallel_size, expert_model_parallel_size,
                      expert_tensor_parallel_size)
        self.made.append(("groups", *self.sizes))

    def destroy(self) -> None:
        self.sizes = None

    def count(self, rank, rampup, batch_size, microbatch_size, replicas) -> None:
        self.made.append(("microbatches", batch_size // microbatch_size // replicas))

    def track(self, use_te_rng_tracker, use_cudagraphable_rng, force_reset) -> None:
        assert use_cudagraphable_rng and force_reset
        self.made.append(("tracker", "te" if use_te_rng_tracker else "core"))

    def modules(self) -> dict:
        state = types.SimpleNamespace(initialize_model_parallel=self.initialize,
                                      destroy_model_parallel=self.destroy,
                                      get_data_parallel_world_size=lambda: 1)
        for place, kind in enumerate(("tensor_model", "pipeline_model", "virtual_pipeline_model",
                                      "context", "expert_model", "expert_tensor")):
            setattr(state, f"get_{kind}_parallel_world_size", lambda at=place: self.sizes[at])
        counter = types.SimpleNamespace(init_num_microbatches_calculator=self.count,
                                        destroy_num_microbatches_calculator=lambda: None)
        graphs = types.SimpleNamespace(alloc_tensor_from_graph_mempool=lambda meta: meta)
        names = ("megatron", "megatron.core.tensor_parallel")
        return {**{name: types.SimpleNamespace() for name in names},
                "megatron.core": types.SimpleNamespace(parallel_state=state),
                "megatron.core.parallel_state": state,
                "megatron.core.num_microbatches_calculator": counter,
                "megatron.core.transformer": types.SimpleNamespace(cuda_graphs=graphs),
                "megatron.core.transformer.cuda_graphs": graphs,
                "megatron.core.tensor_parallel.random":
                    types.SimpleNamespace(initialize_rng_tracker=self.track)}


@contextlib.contextmanager
def world_of_one():
    """A world whose single rank votes for itself."""
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(run_id="", batch="", device="sim", world_size=1, seed=1, isolation="batch",
                      heartbeat_fifo="", store=os.path.join(folder, "store"), log_folder=folder,
                      mark="", limits_ms=LIMITS)
        world = World(batch, Place())
        try:
            yield world
        finally:
            world.leave_group()


class LayoutOfACase(unittest.TestCase):
    def setUp(self):
        megatron._initialized.clear()

    def test_each_case_of_a_process_gets_the_groups_of_its_own_layout(self):
        core = Core()
        rows = (("tp=2,microbatches=4", ("groups", 2, 1, None, 1, 1, 1), 4, "core"),
                ("pp=2,vpp=2,layers=4,microbatches=2", ("groups", 1, 2, 2, 1, 1, 1), 2, "core"),
                ("dp=2,ep=2,layer_spec=transformer_engine", ("groups", 1, 1, None, 1, 2, 1), 1,
                 "te"))
        with mock.patch.dict(sys.modules, core.modules()), world_of_one() as world:
            for name, groups, microbatches, tracker in rows:
                world.leave_group()
                world.join_group("gloo")
                case = Case(axes_of(f"subject=megatron_core,{name}"), seed=1)
                core.made.clear()
                for _ in ("eager_a", "solo_eager"):
                    megatron.initialize(case)
                with self.subTest(case=name):
                    self.assertEqual(core.made, [("tracker", tracker), groups,
                                                 ("microbatches", microbatches)])

    def test_groups_of_another_layout_are_an_error_and_no_case(self):
        core = Core()
        with mock.patch.dict(sys.modules, core.modules()), world_of_one() as world:
            world.join_group("gloo")
            megatron.initialize(Case(axes_of("subject=megatron_core,tp=2"), seed=1))
            with self.assertRaisesRegex(Error, "'tp': 2, 'pp': 1.*want {'tp': 1, 'pp': 2"):
                megatron.initialize(Case(axes_of("subject=megatron_core,pp=2"), seed=1))

    def test_allocations_of_a_process_are_noted_once_however_many_cases_it_has(self):
        core = Core()
        modules = core.modules()
        graphs = modules["megatron.core.transformer.cuda_graphs"]
        with mock.patch.dict(sys.modules, modules):
            megatron.note_allocations()
            megatron.note_allocations()
        graphs.alloc_tensor_from_graph_mempool("meta")
        self.assertEqual(megatron._allocations, ["meta"])
        megatron._allocations.clear()

    def test_a_group_can_be_made_again_after_it_was_left(self):
        with world_of_one() as world:
            world.join_group("gloo")
            first = dist.group.WORLD
            world.join_group("gloo")
            self.assertIs(dist.group.WORLD, first)
            world.leave_group()
            world.join_group("gloo")
            self.assertIsNot(dist.group.WORLD, first)


class Settings(unittest.TestCase):
    def test_settings_that_megatron_core_has_taken_are_no_error(self):
        module = types.SimpleNamespace(name="attn")  # it makes its own names of those of modules
        config = types.SimpleNamespace(hidden_size=64, cuda_graph_modules=[module], dropout=0.1)
        megatron.require_settings(config, {"hidden_size": 64, "cuda_graph_modules": ["attn"]})

    def test_a_setting_that_it_changed_is_an_error_and_no_case(self):
        config = types.SimpleNamespace(hidden_size=64, cuda_graph_modules=[],
                                       cuda_graph_impl="none")
        with self.assertRaisesRegex(Error, "got {'cuda_graph_impl': 'none', 'cuda_graph_modules': "
                                           r"\[\]}; want {'cuda_graph_impl': 'local', "
                                           r"'cuda_graph_modules': \['mlp'\]}"):
            megatron.require_settings(config, {"hidden_size": 64, "cuda_graph_impl": "local",
                                               "cuda_graph_modules": ["mlp"]})


class Pipelines(unittest.TestCase):
    def test_no_two_chunks_get_one_tensor(self):
        # impl local counts by tensors which graphs share an input.
        training = megatron.MegatronTraining.__new__(megatron.MegatronTraining)
        training.case = Case(axes_of("subject=megatron_core,pp=2,vpp=2,layers=4"), seed=1)
        training.chunks = [None, None]
        batch = [{"tokens": torch.zeros(2)}, {"tokens": torch.ones(2)}]
        drawn = [one["tokens"] for chunk in training._data(batch) for one in chunk]
        self.assertEqual(len({id(tensor) for tensor in drawn}), 4)
        for tensor, one in zip(drawn, batch * 2):
            self.assertTrue(torch.equal(tensor, one["tokens"]))

    def test_stages_of_an_interleaved_pipeline_do_not_send_in_one_batch(self):
        # Megatron-LM's arguments.py wants more than two stages without overlap_p2p_comm, whose
        # sends and receives between the same two ranks would be one batch.
        for name, overlaps in (("pp=2,vpp=2,layers=4", (True, False)), ("pp=2", (None, None))):
            settings = translated.config_of(Case(axes_of(f"subject=megatron_core,{name}"), seed=1))
            self.assertEqual((settings.get("overlap_p2p_comm"), settings.get("batch_p2p_comm")),
                             overlaps)


class Layers(unittest.TestCase):
    def config(self, name: str) -> dict:
        return translated.config_of(Case(axes_of(f"subject=megatron_core,{name}"), seed=1))

    def test_latents_have_the_widths_of_the_axis(self):
        found = self.config("multi_latent_attention=true,hidden=64,heads=4")
        self.assertEqual({name: found[name] for name in
                          ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "v_head_dim",
                           "qk_pos_emb_head_dim", "rope_type", "qk_layernorm")},
                         {"q_lora_rank": 32, "kv_lora_rank": 16, "qk_head_dim": 16,
                          "v_head_dim": 16, "qk_pos_emb_head_dim": 8, "rope_type": "rope",
                          "qk_layernorm": True})
        self.assertNotIn("q_lora_rank", self.config(""))

    def test_other_settings_are_those_of_their_axes(self):
        for name, wanted in (("mtp_num_layers=2", {"mtp_num_layers": 2}),
                             ("autocast=bf16", {"enable_autocast": True,
                                                "autocast_dtype": torch.bfloat16})):
            found, plain = self.config(name), self.config("")
            self.assertEqual({key: value for key, value in found.items()
                              if plain.get(key) != value}, wanted)

    def test_layers_of_predictions_are_counted_on_the_last_stage(self):
        axes = axes_of("subject=megatron_core,pp=2,layers=4,mtp_num_layers=1")
        self.assertEqual([Case(axes, 1, rank, 4).stage_layers for rank in range(4)], [2, 2, 3, 3])

    def test_a_forward_pass_outside_of_autocast_is_an_error_and_no_case(self):
        training = megatron.MegatronTraining.__new__(megatron.MegatronTraining)
        training.case = Case(axes_of("subject=megatron_core,autocast=bf16"), seed=1)
        training.config = types.SimpleNamespace(enable_autocast=True,
                                                autocast_dtype=torch.bfloat16)
        with self.assertRaisesRegex(Error, "no region of autocast"):
            training._forward(iter([{}]), None)


class Packing(unittest.TestCase):
    def batch(self, seed: int) -> dict:
        generator = torch.Generator().manual_seed(seed)
        return packed_sequences.packed(torch.arange(65).unsqueeze(0), generator)

    def test_documents_follow_one_another_and_padding_follows_them(self):
        for seed in range(20):
            one = self.batch(seed)
            begins = one["cu_seqlens"].tolist()
            with self.subTest(seed=seed):
                self.assertEqual((begins[0], begins[-1]), (0, 64))
                self.assertEqual(len(begins), packed_sequences.DOCUMENTS + 2)
                lengths = [end - begin for begin, end in zip(begins, begins[1:])]
                self.assertTrue(all(lengths), begins)
                self.assertEqual(one["position_ids"][0].tolist(),
                                 [place for length in lengths for place in range(length)])
                self.assertEqual(one["labels"][0].tolist(), list(range(1, 65)))

    def test_neither_padding_nor_the_next_document_is_part_of_the_loss(self):
        one = self.batch(3)
        begins = one["cu_seqlens"].tolist()
        masked = [place for place, kept in enumerate(one["loss_mask"][0].tolist()) if not kept]
        self.assertEqual(masked, sorted({*(begin - 1 for begin in begins[1:-1]),
                                         *range(begins[-2], 64)}))

    def test_lengths_differ_from_microbatch_to_microbatch_and_their_number_does_not(self):
        lengths = {tuple(self.batch(seed)["cu_seqlens"].tolist()) for seed in range(5)}
        self.assertEqual(len(lengths), 5)
        self.assertEqual({len(one) for one in lengths}, {packed_sequences.DOCUMENTS + 2})


class Decoding(unittest.TestCase):
    def setUp(self):
        graph = type("Graph", (), {"replay": lambda self: None})
        patch = mock.patch.object(torch.cuda, "CUDAGraph", graph)
        patch.start()
        self.addCleanup(patch.stop)

    def job(self, scope: str, launches: int) -> inference.MegatronDecoding:
        """One of two layers, a step of which launches as many graphs."""
        job = inference.MegatronDecoding.__new__(inference.MegatronDecoding)
        job.case = Case(axes_of("subject=megatron_core,impl=local,schedule=decode,"
                                f"inference_scope={scope},microbatch_size=4"), seed=1)
        job.model = torch.nn.Module()
        block = type("TransformerBlock", (torch.nn.Module,), {})()
        block.layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Identity()])
        job.model.decoder = block
        job.context = types.SimpleNamespace(using_cuda_graph_this_step=lambda: True)

        def step(batch):
            for _ in range(launches):
                torch.cuda.CUDAGraph.replay(None)
            return torch.ones(1)

        job.step = step
        return job

    def test_a_step_with_fewer_graphs_than_layers_is_an_error(self):
        for scope, launches, right in (("layer", 2, True), ("layer", 1, False),
                                       ("layer", 0, False), ("block", 1, True),
                                       ("block", 2, False)):
            job = self.job(scope, launches)
            with self.subTest(scope=scope, launches=launches):
                if right:
                    self.assertEqual(job.replayed({}).tolist(), [1.0])
                else:
                    with self.assertRaisesRegex(Error, f"{launches} graphs launched"):
                        job.replayed({})

    def test_a_step_that_has_no_graph_of_its_size_is_an_error(self):
        job = self.job("block", 1)
        job.context.using_cuda_graph_this_step = lambda: False
        with self.assertRaises(Error):
            job.replayed({})

    def test_requests_end_one_after_the_other(self):
        job = self.job("block", 1)
        job.began, seen = 1, []
        for job.steps in range(1, 1 + inference.GENERATION_STEPS):
            seen.append(sum(job.running(request) for request in range(4)))
        self.assertEqual(seen, [4, 4, 4, 3, 2, 1])

    def test_a_graph_arm_runs_eagerly_until_the_engine_has_captured(self):
        job = self.job("block", 1)
        job.model.decoder.cudagraph_manager = object()
        with job.without_graphs():
            self.assertFalse(job.model.decoder._should_call_local_cudagraph(1, a=2))
        self.assertFalse(hasattr(job.model.decoder, "_should_call_local_cudagraph"))

    def test_eager_arms_have_no_scope_and_graph_arms_that_of_the_axis(self):
        case = self.job("layer", 1).case
        self.assertNotIn("inference_cuda_graph_scope", translated.config_of(case.of_arm(False)))
        self.assertEqual(translated.config_of(case.of_arm(True))["inference_cuda_graph_scope"],
                         "layer")


class Chunk(torch.nn.Linear):
    """A model chunk whose hooks gather parameters, and which notes in which mode it runs."""

    def __init__(self):
        super().__init__(2, 2)
        self.seen, self.hooks = [], True

    def disable_forward_pre_hook(self) -> None:
        self.hooks = False

    def enable_forward_pre_hook(self) -> None:
        self.hooks = True


class Evaluation(unittest.TestCase):
    def training(self, name: str, losses) -> megatron.MegatronTraining:
        """One with a single chunk, whose schedule returns `losses` and notes how it was run."""
        training = megatron.MegatronTraining.__new__(megatron.MegatronTraining)
        training.case = Case(axes_of(f"subject=megatron_core,{name}"), seed=1)
        training.chunks = [Chunk()]

        def forward_backward(forward_only, **_):
            chunk = training.chunks[0]
            chunk.seen.append((forward_only, chunk.training, chunk.hooks, torch.is_grad_enabled()))
            return [{"lm loss": loss} for loss in losses]

        training.forward_backward = forward_backward
        return training

    def test_it_runs_the_schedule_forward_without_dropout_gradients_and_gathers(self):
        for name, hooks in (("dp=2,overlap_param_gather=true", False), ("dp=2", True)):
            training = self.training(name, [torch.tensor(1.0), torch.tensor(2.0)])
            losses = training.evaluate([{"tokens": torch.zeros(2)}])
            chunk = training.chunks[0]
            with self.subTest(case=name):
                self.assertEqual(losses.tolist(), [1.0, 2.0])
                self.assertEqual(chunk.seen, [(True, False, hooks, False)])
                self.assertTrue(chunk.training and chunk.hooks)

    def test_one_that_made_no_graph_is_an_error(self):
        graphs = {"training": object(), "validation": None}
        wrapper = types.SimpleNamespace(FullCudaGraphWrapper=types.SimpleNamespace(
            cuda_graph=graphs))
        modules = {name: types.SimpleNamespace() for name in ("megatron",)}
        modules["megatron.core"] = types.SimpleNamespace(full_cuda_graph=wrapper)
        modules["megatron.core.full_cuda_graph"] = wrapper
        training = self.training("impl=full_iteration", [torch.tensor(1.0)])
        captured = training.capture_evaluation([])
        with mock.patch.dict(sys.modules, modules):
            with self.assertRaisesRegex(Error, "an evaluation of Megatron-Core.*no graph in its"):
                captured.step([])
            graphs["validation"] = object()
            self.assertEqual(captured.step([]).tolist(), [1.0])


class CountingAdam(torch.optim.Adam):
    """An Adam that counts its steps in its groups, as Transformer Engine's does."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1


class Router(torch.nn.Linear):
    """A model whose steps also move a buffer."""

    def __init__(self):
        super().__init__(3, 3)
        self.register_buffer("expert_bias", torch.zeros(3))
        self.register_buffer("scratch", torch.zeros(3))


def is_bias(buffer: str) -> bool:
    return buffer == "expert_bias"


class Checkpoints(unittest.TestCase):
    def job(self, seed: int, kind: str) -> tuple:
        """(model, optimizer), new. "copies": the optimizer has copies of the parameters, as
        Megatron-Core's have in bf16; "chained": one optimizer for each parameter."""
        torch.manual_seed(seed)
        model = Router()
        parameters = list(model.parameters())
        if kind == "copies":
            parameters = [parameter.detach().clone() for parameter in parameters]
        if kind == "chained":
            return model, Chained([CountingAdam([parameter], lr=0.1) for parameter in parameters])
        return model, CountingAdam(parameters, lr=0.1)

    def step(self, model, optimizer) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.full_like(parameter, 0.5)
        for member in optimizer.members if isinstance(optimizer, Chained) else [optimizer]:
            member.step()
        with torch.no_grad():
            for mine, copy in zip(model.parameters(), self.of(optimizer)):
                mine.copy_(copy)
            model.expert_bias.add_(1)
            model.scratch.add_(1)

    @staticmethod
    def of(optimizer) -> list:
        return [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def everything(self, model, optimizer) -> list:
        states = [value for parameter in self.of(optimizer)
                  for value in optimizer.state.get(parameter, {}).values()]
        return [*model.parameters(), model.expert_bias, *self.of(optimizer), *states]

    def test_a_job_goes_on_as_the_one_that_was_saved(self):
        for kind in ("plain", "copies", "chained"):
            model, optimizer = self.job(1, kind)
            self.step(model, optimizer)
            saved = checkpoint.save(model, is_bias, optimizer)
            self.step(model, optimizer)
            wanted = [tensor.detach().clone() for tensor in self.everything(model, optimizer)]
            for begun in (False, True):
                new, other = self.job(2, kind)
                if begun:
                    self.step(new, other)
                places = [tensor.data_ptr() for tensor in self.everything(new, other)]
                checkpoint.load(saved, new, is_bias, other)
                found = self.everything(new, other)
                with self.subTest(kind=kind, begun=begun):
                    self.assertEqual([tensor.data_ptr() for tensor in found[:len(places)]], places)
                    self.step(new, other)
                    found = self.everything(new, other)
                    self.assertEqual(len(found), len(wanted))
                    for left, right in zip(found, wanted):
                        self.assertTrue(torch.equal(left, right))
                    self.assertEqual([group["step"] for group in other.param_groups],
                                     [2] * len(other.param_groups))

    def test_a_checkpoint_does_not_follow_the_job(self):
        model, optimizer = self.job(1, "plain")
        self.step(model, optimizer)
        saved = checkpoint.save(model, lambda name: True, optimizer)
        before = [tensor.clone() for tensor in saved["tensors"]]
        self.step(model, optimizer)
        for tensor, value in zip(saved["tensors"], before):
            self.assertTrue(torch.equal(tensor, value))


if __name__ == "__main__":
    unittest.main()
