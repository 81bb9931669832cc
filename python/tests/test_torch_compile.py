"""What subject torch_compile makes of its axes, and when it says that the compiler's graphs are not
those of the case. The compiler itself is left out: its graphs need a GPU."""

import types
import unittest
from unittest import mock

import torch

from graphproof.case import Case
from graphproof.device import stand_in
from graphproof.message import Error
from graphproof.subjects import torch_compile_subject as compiled
from judged_batch import axes_of

stand_in.install()


def case_of(name: str) -> Case:
    return Case(axes_of(f"subject=torch_compile,impl=callables,{name}"), seed=1, device="cpu")


def built(name: str):
    """The subject of a case, whose code runs as it is written."""
    torch.manual_seed(3)
    with mock.patch.object(torch, "compile", lambda module, options: module):
        return compiled.build(case_of(name))


class Regions:
    """What torch.compile hands to the code generator of the compiler, which is left out."""

    def __init__(self):
        self.kinds, self.moving = [], []  # moving: changed inputs that are not static ones
        self._compile = torch.compile

    def compile(self, code, options, **more):
        return self._compile(code, backend=self._backend, **more)

    def _backend(self, module, inputs):
        from torch._inductor.compile_fx import compile_fx
        return compile_fx(module, inputs, inner_compile=self._note)

    def _note(self, module, inputs, static_input_idxs=(), is_backward=False, is_inference=False,
              **_):
        self.kinds.append("backward" if is_backward else "both" if is_inference else "forward")
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        changed = [placeholders.index(node.args[0]) for node in module.graph.nodes
                   if node.target is torch.ops.aten.copy_.default]
        self.moving += [placeholders[at].name for at in changed if at not in static_input_idxs]
        return module


class Code(unittest.TestCase):
    def test_the_scalar_of_the_host_is_added_to_the_loss_of_its_step(self):
        plain, moved = built("compiled_code=plain"), built("compiled_code=host_scalar")
        for step, scalar in ((0, 1.0), (2, 1.25)):
            batch = moved.batch(step)
            self.assertEqual((batch["given"].device.type, batch["given"].dim()), ("cpu", 0))
            with self.subTest(step=step):
                torch.testing.assert_close(
                    moved.model(batch["tokens"][0], batch["labels"][0], batch["given"]),
                    scalar + plain.model(batch["tokens"][0], batch["labels"][0]))

    def test_the_input_that_is_changed_is_no_buffer_of_the_model(self):
        subject = built("compiled_code=changed_input,microbatches=3")
        batch = subject.batch(0)
        subject.step(batch)
        self.assertEqual(float(batch["given"]), 3)
        self.assertNotIn(batch["given"].data_ptr(),
                         [buffer.data_ptr() for buffer in subject.model.buffers()])

    def test_a_microbatch_reads_what_the_one_before_it_left(self):
        subject = built("compiled_code=outputs_fed_back,microbatches=2")
        batch = subject.batch(0)
        _, left = subject.model(batch["tokens"][0], batch["labels"][0], batch["given"])
        self.assertGreater(float(left.abs().max()), 0)
        second, _ = subject.model(batch["tokens"][1], batch["labels"][1], left)
        alone, _ = subject.model(batch["tokens"][1], batch["labels"][1], batch["given"])
        losses = subject.step(batch)
        self.assertEqual(float(losses[1]), float(second))
        self.assertNotEqual(float(losses[1]), float(alone))

    def test_a_step_launches_a_forward_and_a_backward_graph_of_each_region(self):
        for name, wanted in (("microbatches=2", 4), ("compiled_code=outputs_fed_back", 2),
                             ("compiled_code=graph_break,microbatches=3", 12),
                             ("compiled_code=backward,microbatches=3", 6),
                             ("compiled_code=backward_traced,microbatches=3", 3)):
            training = compiled.Compiled.__new__(compiled.Compiled)
            training.case = case_of(name)
            training.model = compiled.CompiledGpt(training.case)
            self.assertEqual(training.launches_of_a_step(), wanted, name)

    def test_code_with_its_backward_pass_computes_what_the_plain_one_does(self):
        computed = {}
        for kind, graphs in (("plain", ["forward", "backward"]),
                             ("backward", ["forward", "backward"]), ("backward_traced", ["both"])):
            torch._dynamo.reset()
            torch.manual_seed(3)
            regions = Regions()
            with mock.patch.object(torch, "compile", regions.compile):
                subject = compiled.build(case_of(f"microbatches=2,compiled_code={kind}"))
                computed[kind] = [subject.step(subject.batch(step)).tolist() for step in range(3)]
            with self.subTest(kind=kind):
                self.assertEqual(computed[kind], computed["plain"])
                self.assertEqual(regions.kinds, graphs)
                # What a graph changes besides has to stay where it is, or the compiler gives it up.
                self.assertEqual(regions.moving, [])

    def test_graphs_of_other_codes_are_refused_where_nothing_is_built(self):
        with self.assertRaisesRegex(Error, "axis compiled_code.*got graph_break; want plain"):
            built("schedule=decode,compiled_code=graph_break")


class Graphs(unittest.TestCase):
    def run_until_replayed(self, name: str, wanted: int, launched: int, skipped: int = 0,
                           cut: int = 0, says: str = "") -> None:
        """Passes of which each launches, gives up and cuts as many graphs, and logs `says`."""
        counters = torch._dynamo.utils.counters["inductor"]
        with mock.patch.object(torch, "compile", lambda module, options: module):
            graphs = compiled.CompilersGraphs(case_of(name), torch.nn.Identity(), wanted)

        def run():
            for _ in range(launched):
                torch.cuda.CUDAGraph.replay(graph)
            counters["cudagraph_skips"] += skipped
            if says:
                log.warning(says)
            counters["cudagraph_partitions"] += cut

        log = torch._logging.getArtifactLogger("torch._inductor.cudagraph_utils", "cudagraphs")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.ones(1)
        graphs.run_until_replayed(run)
        self.assertEqual(log.handlers, [])

    def test_all_graphs_of_the_case_are_launched(self):
        self.run_until_replayed("compiled_code=plain", wanted=4, launched=4)
        self.run_until_replayed("compiled_code=host_scalar,graph_partition=true", wanted=2,
                                launched=4, cut=2)

    def test_code_that_has_to_be_cut_is_compiled_for_every_model(self):
        compile_of_torch = torch.compile

        def compiled_for_two_models(name: str) -> int:
            compilations = []

            def backend(module, _inputs):
                compilations.append(module)
                return module.forward

            torch._dynamo.reset()
            with mock.patch.object(torch, "compile", lambda module, options: compile_of_torch(
                    module, backend=backend)):
                for _ in range(2):
                    graphs = compiled.CompilersGraphs(case_of(name), torch.nn.Linear(2, 2), 1)
                    graphs.compiled(torch.ones(2))
            return len(compilations)

        self.assertEqual(compiled_for_two_models("compiled_code=host_scalar"), 2)
        self.assertEqual(compiled_for_two_models("compiled_code=plain"), 1)

    def test_a_graph_that_is_missing_without_a_word_is_an_error(self):
        with self.assertRaisesRegex(Error, "2 launched in a pass, 0 given up; want 4 or more"):
            self.run_until_replayed("compiled_code=graph_break", wanted=4, launched=2)

    def test_a_graph_that_was_given_up_is_an_error_although_enough_are_launched(self):
        with self.assertRaisesRegex(Error, "4 launched in a pass, 3 given up"):
            self.run_until_replayed("compiled_code=plain", wanted=4, launched=4, skipped=1)

    def test_what_the_compiler_says_of_a_graph_that_it_gave_up_is_told(self):
        words = "skipping cudagraphs due to mutated inputs (1 instances)"
        with self.assertRaisesRegex(Error, r"given up: skipping cudagraphs due to mutated inputs"):
            self.run_until_replayed("compiled_code=changed_input", wanted=2, launched=1, skipped=1,
                                    says=words)

    def test_code_that_was_not_cut_is_an_error_where_it_had_to_be(self):
        with self.assertRaisesRegex(Error, "partitions of PyTorch's compiler; got none"):
            self.run_until_replayed("compiled_code=host_scalar,graph_partition=true", wanted=2,
                                    launched=2)

    def test_code_that_has_to_be_cut_is_compiled_in_every_arm(self):
        # A cache hands the second arm what the first one has compiled, and counts nothing.
        cut = case_of("compiled_code=host_scalar,graph_partition=true")
        hits = []
        for _ in range(2):
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            options = {name: value for name, value in compiled.options_of(cut, graphs=True).items()
                       if not name.startswith("triton.")}
            torch.compile(lambda x: x + 1, options=options)(torch.ones(3))
            counters = torch._dynamo.utils.counters
            hits.append((counters["inductor"]["fxgraph_cache_hit"],
                         counters["aot_autograd"]["autograd_cache_hit"]))
        self.assertEqual(hits, [(0, 0), (0, 0)])
        self.assertNotIn("fx_graph_cache", compiled.options_of(case_of("compiled_code=plain"),
                                                               graphs=True))

    def test_the_class_of_graphs_is_as_before_after_a_count(self):
        replay = torch.cuda.CUDAGraph.replay
        with self.assertRaisesRegex(RuntimeError, "ended"), compiled.launches():
            raise RuntimeError("ended")
        self.assertIs(torch.cuda.CUDAGraph.replay, replay)


class Silence(unittest.TestCase):
    def test_with_partitions_the_compiler_gives_a_graph_up_without_a_word(self):
        # Why launches are counted: docs/findings/partitions-given-up-in-silence.md.
        from torch._inductor import config, output_code
        reason = ["complex memory overlap"]

        def given_up(way: str) -> int:
            """What the compiler has counted."""
            region = types.SimpleNamespace(
                cudagraph_info=types.SimpleNamespace(cudagraph_fail_reasons=reason),
                partition_maps=[object()], device_types={"cuda"},
                current_callable=lambda *inputs: None, disabled_cudagraphs_reason=None,
                fx_kwargs={"is_backward": False, "is_inference": False})
            before = compiled.counted("cudagraph_skips")
            with config.patch({"triton.cudagraph_or_error": True}):
                getattr(output_code, way)((), region, output_code.BoxedBool(True), {}, None)
            return compiled.counted("cudagraph_skips") - before

        with self.assertRaisesRegex(RuntimeError, reason[0]):
            given_up("cudagraph_post_compile")
        self.assertEqual(given_up("cudagraph_partition_post_compile"), 0)


class HostScalars(unittest.TestCase):
    def saved_for_backward(self, loss_of) -> list:
        """Where the tensors lie that the forward graph of loss_of(loss, scalar) saves for its
        backward pass: before and after the compiler's pass that moves scalars of the host to the
        device. The loss is on the device, the scalar in host memory."""
        from torch._functorch.aot_autograd import aot_function
        from torch._functorch.partitioners import min_cut_rematerialization_partition
        from torch._inductor import config
        from torch._inductor.fx_passes import post_grad
        from torch._subclasses import fake_tensor
        forward = []

        def keep(graph, inputs):
            forward.append(graph)
            return graph

        def to_run(graph, inputs):
            return graph

        compiled_loss = aot_function(loss_of, fw_compiler=keep, bw_compiler=to_run,
                                     partition_fn=min_cut_rematerialization_partition)
        compiled_loss(torch.ones((), requires_grad=True), torch.ones(())).backward()
        graph = forward[0].graph
        with mock.patch.object(fake_tensor, "init_gpu_context"), fake_tensor.FakeTensorMode():
            places = iter(("cuda", "cpu"))
            for node in graph.nodes:
                if node.op != "output":
                    place = next(places) if node.op == "placeholder" else "cuda"
                    node.meta["val"] = torch.empty((), device=place)
        before = self.devices_of_saved(graph)
        with config.patch({"graph_partition": True, "triton.cudagraphs": True}), \
                mock.patch.object(post_grad, "get_gpu_type", lambda: "cuda"):
            post_grad.move_constructors_to_gpu(graph)
        return [before, self.devices_of_saved(graph)]

    @staticmethod
    def devices_of_saved(graph) -> list:
        """One for each saved tensor. What the pass has added has no value yet, and is on the
        device."""
        loss, *saved = next(iter(reversed(graph.nodes))).args[0]
        return [str(node.meta["val"].device) if "val" in node.meta else "cuda:0" for node in saved]

    def test_a_scalar_that_the_backward_pass_needs_reaches_it_on_the_device(self):
        # The backward graph was made with the scalar in host memory, and reads it there:
        # docs/findings/host-scalar-of-a-partition.md.
        self.assertEqual(self.saved_for_backward(lambda loss, scalar: loss * scalar),
                         [["cpu"], ["cuda:0"]])

    def test_the_scalar_of_the_case_is_not_needed_by_the_backward_pass(self):
        self.assertEqual(self.saved_for_backward(lambda loss, scalar: loss + scalar), [[], []])


class Decoding(unittest.TestCase):
    def test_the_passes_until_a_replay_decode_no_token(self):
        subject = built("schedule=decode")
        subject.step(subject.batch(0))
        before = [buffer.clone() for buffer in subject.model.buffers()]
        passes = []

        def counted(graphs, run):
            for _ in range(compiled.PASSES_UNTIL_REPLAY):
                passes.append(run())

        with mock.patch.object(torch, "compile", lambda module, options: module), \
                mock.patch.object(compiled.CompilersGraphs, "run_until_replayed", counted):
            captured = subject.capture(subject.step, subject.batch(1))
        self.assertEqual(len(passes), compiled.PASSES_UNTIL_REPLAY)
        for buffer, value in zip(subject.model.buffers(), before):
            self.assertTrue(torch.equal(buffer, value))
        captured.step(subject.batch(1))
        self.assertEqual(int(subject.model.decoded), 2)


if __name__ == "__main__":
    unittest.main()
