"""The rank program on the stand-in, from batch file to evidence that graphproof-judge judges."""

import json
import os
import tempfile
import unittest

from judged_batch import JudgedBatch, built, run_all

# What the stand-in cannot show (graphproof/device/cpu.py), and what no CPU shows.
NOT_SHOWN = {"D19.capture_status", "D56.races", "D06.freed_memory", "D28.one_libnccl"}

CLEAN = (
    "impl=none,precision=bf16,microbatches=2",
    "impl=manual,microbatches=2,optimizer_kernels=fused",
    "impl=manual,dropout=true,optimizer=adam,weight_decay=true,clip_grad=true",
    "impl=manual,optimizer=adam,optimizer_kernels=foreach,precision=bf16,linear_bias=true",
    "impl=manual,precision=fp16,optimizer=adam,optimizer_kernels=fused",
    "impl=full_iteration,optimizer_graph=true,optimizer=adam,activation=swiglu",
    "impl=full_iteration,recompute=full(block,1),normalization=LayerNorm",
    "impl=callables,microbatches=2,capture_mode=global,dropout=true",
    "impl=callables,modules=attn+mlp,capture_mode=global,optimizer=adam,optimizer_graph=true",
    "impl=callables,pool=per_graph,microbatches=2,capture_mode=global",
    "impl=manual,recompute=selective(mlp),checkpoint=reentrant,optimizer_kernels=fused",
    "impl=full_iteration,precision=bf16,autocast_cache=true",
    "impl=full_iteration,schedule=train-eval-train,dropout=true,optimizer=adam",
    "impl=callables,schedule=train-eval-train,dropout=true,capture_mode=global",
    "impl=manual,schedule=resume,optimizer=adam,dropout=true",
    "impl=full_iteration,schedule=resume,precision=fp16",
    "impl=manual,schedule=resume,resume_in=new_process,steps=7,optimizer=adam,dropout=true,"
    "optimizer_kernels=fused",
    "impl=full_iteration,schedule=resume,resume_in=new_process,steps=7,precision=fp16",
    "impl=callables,schedule=resume,resume_in=new_process,steps=5,warmup_steps=1,dropout=true,"
    "capture_mode=global",
    "impl=manual,schedule=decode,precision=bf16",
    "impl=full_iteration,microbatches=2,shape_buckets=2,warmup_steps=1,optimizer=adam",
    "impl=callables,capture_mode=global,microbatches=2,shape_buckets=1,precision=bf16",
    "impl=callables,modules=attn,capture_mode=global,microbatches=2,shape_buckets=2,clip_grad=true",
    "impl=full_iteration,microbatches=2,shape_buckets=3,warmup_steps=1,precision=fp16,"
    "loss_scale=static,activation=swiglu",
)


class Judged(unittest.TestCase):
    def batch(self, names, **options) -> JudgedBatch:
        batch = JudgedBatch(list(names), **options)
        self.addCleanup(batch.remove)
        return batch

    def words(self, batch: JudgedBatch, number: int = 0) -> dict:
        return {check: word for check, (word, _) in batch.judge(batch.ids[number]).items()}

    def assert_clean(self, batch: JudgedBatch, extra: frozenset = frozenset()) -> None:
        for number, name in enumerate(batch.names):
            judged = batch.judge(batch.ids[number])
            for check, (word, result) in judged.items():
                with self.subTest(case=name, check=check):
                    self.assertNotEqual(word, "fail", result)
                    if word == "unexercised":
                        self.assertIn(check, NOT_SHOWN | extra, result)


class CleanCases(Judged):
    def test_no_check_fails_and_the_stand_in_passes_for_no_graph(self):
        # Two processes, each of which runs many cases one after the other.
        batches = [self.batch(CLEAN[first::2]) for first in (0, 1)]
        codes = run_all(batches)
        for batch, code in zip(batches, codes):
            self.assertEqual(code, [0], batch.log()[-2000:])
            self.assert_clean(batch, frozenset({"D42.recompute"}))
            for number in range(len(batch.names)):
                words = self.words(batch, number)
                # Required of every case with graphs and of every case on this device: no case that
                # ran on the stand-in can be accepted.
                self.assertNotEqual(words["D19.capture_status"], "pass")
                self.assertNotEqual(words["D56.races"], "pass")
            config = batch.lines(batch.ids[0], "config")[0]
            self.assertEqual(config["effective"]["graphs"], "stand_in")

    def test_two_ranks_of_fully_shard(self):
        # Eager alone: the stand-in records operators, and fully_shard frees storages past them.
        batch = self.batch(("subject=fsdp2,impl=none,dp=2,comm=c10d,precision=bf16",),
                           world_size=2)
        self.assertEqual(batch.run(), [0, 0], batch.log()[-2000:])
        self.assert_clean(batch, frozenset({"D25.collective_ledger", "D53.layout_reference",
                                            "D28.effective_config"}))
        self.assertEqual(self.words(batch)["D53.replicas"], "pass")

    def test_two_ranks_with_and_without_ddp(self):
        batch = self.batch(("impl=manual,dp=2,comm=c10d,optimizer_kernels=fused,microbatches=2",
                            "impl=none,dp=2,comm=c10d,overlap_grad_reduce=true,microbatches=2",
                            "impl=manual,dp=2,comm=c10d,optimizer_kernels=fused,dropout=true,"
                            "schedule=resume,resume_in=new_process,steps=7"), world_size=2)
        self.assertEqual(batch.run(), [0, 0], batch.log()[-2000:])
        self.assert_clean(batch, frozenset({"D25.collective_ledger", "D53.layout_reference",
                                            "D28.effective_config"}))
        self.assertEqual(self.words(batch)["D53.replicas"], "pass")


UNEVEN = '''
import torch
from graphproof import Case, Captured, Subject
from graphproof.subject import copied, copy_into

def build(case: Case) -> Subject:
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1), fused=True)

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach().reshape(1)

    def capture(step, batch):
        static, graphs = copied(batch), [torch.cuda.CUDAGraph() for _ in range(1 + case.rank)]
        for graph in graphs:
            with torch.cuda.graph(graph):
                losses = step(static)

        def replay(fresh):
            copy_into(static, fresh)
            graphs[0].replay()
            return losses.clone()

        return Captured(step=replay, close=lambda: [graph.reset() for graph in graphs])

    return Subject(model=model, step=step, optimizer=optimizer, layers=[model] * case.layers,
                   batch=lambda step: torch.full((2, 4), 1.0 + step), capture=capture,
                   captures_alike=False)
'''


class UnevenCaptures(Judged):
    def test_ranks_that_capture_different_numbers_of_graphs_stay_in_step(self):
        batch = self.batch(("subject=script,impl=manual,dp=2,comm=c10d,layers=1",), world_size=2)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(UNEVEN)
            script.flush()
            codes = batch.run({"GRAPHPROOF_SCRIPT": script.name})
        self.assertEqual(codes, [0, 0], batch.log()[-2000:])
        for rank in (0, 1):
            # One vote for each graph arm, whatever the number of its captures.
            votes = [line for line in batch.lines(batch.ids[0], "vote", rank)
                     if line["phase"] == "capture"]
            captures = batch.lines(batch.ids[0], "capture", rank)
            self.assertEqual((len(votes), len(captures)), (3, 3 * (1 + rank)))
        # The judge asks a script for a vote after each capture: D26.votes allows one vote an arm
        # only where stages of impl local differ.
        first, second = (batch.lines(batch.ids[0], "vote", rank) for rank in (0, 1))
        self.assertEqual(first, second)


class Refusals(Judged):
    def test_dropout_with_recompute_is_refused_in_the_capture_by_its_own_words(self):
        name = "impl=manual,dropout=true,recompute=full(uniform,1),optimizer_kernels=fused"
        batch = self.batch((name, "impl=none"))
        self.assertEqual(batch.run(), [10])
        error = batch.lines(batch.ids[0], "error")[0]
        self.assertEqual((error["phase"], error["code"], error["type"]), ("capture", 900, "cuda"))
        self.assertEqual(self.words(batch)["D19.capture_status"], "fail")
        self.assertFalse(batch.lines(batch.ids[0], "end")[0]["complete"])
        self.assertEqual(batch.lines(batch.ids[1], "start"), [],
                         "the next case needs a fresh process")

    def test_what_pytorch_must_refuse_is_a_refusal_in_its_own_words(self):
        name = "subject=fsdp2,impl=callables,capture_mode=global,dp=2,comm=c10d"
        batch = self.batch((name, "impl=none,dp=2,comm=c10d"), world_size=2)
        self.assertEqual(batch.run(), [0, 0], batch.log()[-2000:])
        for rank in (0, 1):
            refused = batch.lines(batch.ids[0], "refused", rank)[0]
            self.assertEqual((refused["rule"], refused["phase"]), ("P002", "capture"))
            self.assertIn("must not have hooks registered", refused["got"])
            self.assertTrue(batch.lines(batch.ids[0], "end", rank)[0]["complete"])
        words = self.words(batch)
        self.assertEqual((words["D26.votes"], words["D21.evidence_complete"]), ("pass", "pass"))
        self.assertNotIn("fail", self.words(batch, 1).values())

    def test_sgd_that_reads_its_rate_on_the_host_is_refused(self):
        batch = self.batch(("impl=manual,optimizer_kernels=foreach",))
        self.assertEqual(batch.run(), [10])
        self.assertEqual(self.words(batch)["D19.capture_status"], "fail")

    def test_an_axis_without_a_counterpart_ends_in_phase_build_with_a_whole_message(self):
        batch = self.batch(("impl=none,tp=2,comm=c10d",))
        self.assertEqual(batch.run(), [10])
        error = batch.lines(batch.ids[0], "error")[0]
        self.assertEqual(error["phase"], "build")
        self.assertRegex(error["message"], "axis tp of a case with subject torch; got 2; want 1; "
                                           ".*; next: ")

    def test_a_batch_for_another_world_is_a_usage_error_before_any_evidence(self):
        batch = self.batch(("impl=none",))
        batch.batch["world_size"] = 2
        batch.write_batch()
        self.assertEqual(batch.run(), [2])
        self.assertFalse(os.path.exists(batch.attempt(batch.ids[0])))

    def test_ranks_with_different_batch_files_are_told_apart(self):
        batch = self.batch(("impl=none,dp=2,comm=c10d",), world_size=2)
        other = os.path.join(batch.folder, "other.json")
        with open(other, "w", encoding="utf-8") as file:
            json.dump({**batch.batch, "seed": 2}, file)
        self.assertEqual(batch.run(files={1: other}), [10, 10])
        for rank in (0, 1):
            message = batch.lines(batch.ids[0], "error", rank)[0]["message"]
            self.assertRegex(message, "the ranks' configurations differ; got SHA-256 of the batch "
                                      "file: rank 0 .*, rank 1 ")

    def test_when_asked_to_stop_the_ranks_end_together_ahead_of_the_next_case(self):
        batch = self.batch(("impl=none", "impl=none"), world_size=2)
        with tempfile.NamedTemporaryFile() as stop:
            self.assertEqual(batch.run({"GRAPHPROOF_STOP": stop.name}), [0, 0])
        for rank in range(2):
            self.assertTrue(batch.lines(batch.ids[0], "end", rank)[0]["complete"])
            self.assertEqual(batch.lines(batch.ids[1], "start", rank), [])

    def test_an_early_exit_that_a_case_asks_for_is_planted(self):
        batch = self.batch(("impl=none",))
        self.assertEqual(batch.run({"GRAPHPROOF_EXIT": "eager,0"}), [12])


class Scripts(Judged):
    """Subject script: the template, and files that are wrong in one way each."""

    def script(self, text: str) -> dict:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = os.path.join(folder.name, "mine.py")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
        return {"GRAPHPROOF_SCRIPT": file}

    def template(self) -> str:
        from graphproof.subjects import template_file
        with open(template_file(), encoding="utf-8") as file:
            return file.read()

    def test_the_template_runs_and_no_check_fails(self):
        batch = self.batch(("subject=script,impl=manual,microbatches=2",
                            "subject=script,impl=manual,schedule=resume,resume_in=new_process,"
                            "steps=7", "subject=script,impl=none"))
        self.assertEqual(batch.run(self.script(self.template())), [0], batch.log()[-2000:])
        self.assert_clean(batch)

    def test_each_wrong_script_is_told_what_is_wrong(self):
        good = self.template()
        rows = (
            ("pass\n", "init", "without a function build"),
            ("raise KeyError('mine')\n", "init", "KeyError: 'mine'"),
            ("def build(case):\n    raise ValueError('no data')\n", "build", "ValueError: no data"),
            ("def build(case):\n    return 5\n", "build", "got int; want a graphproof.Subject"),
            ("import sys\ndef build(case):\n    sys.exit(3)\n", "build", "SystemExit: 3"),
            (good.replace(", layers=layers)", ")"), "build", "got 0 layers; want 2"),
            (good.replace("return torch.stack(losses)", "return 1.5"), "eager",
             "got float; want a tensor with one loss"),
            (good.replace("optimizer.zero_grad(set_to_none=False)", "pass").replace(
                "optimizer.step()", "optimizer.step(); optimizer.zero_grad()"), "eager",
             "no parameter with a gradient"),
        )
        for text, phase, message in rows:
            with self.subTest(message=message):
                batch = self.batch(("subject=script,impl=none",))
                self.assertEqual(batch.run(self.script(text)), [10])
                error = batch.lines(batch.ids[0], "error")[0]
                self.assertEqual(error["phase"], phase)
                self.assertIn(message, error["message"])

    def test_a_model_that_is_not_deterministic_fails_its_eager_arm(self):
        text = self.template().replace(
            "drawn = torch.Generator().manual_seed(case.seed + step)",
            "drawn = torch.Generator()").replace("x = model(x)", "x = model(x)").replace(
            "loss = model(x).square().mean()",
            "loss = model(x + float(time.monotonic_ns() % 1000)).square().mean()").replace(
            "import torch\n", "import time\nimport torch\n", 1)
        batch = self.batch(("subject=script,impl=none",))
        self.assertEqual(batch.run(self.script(text)), [0])
        self.assertEqual(self.words(batch)["D02.eager_repeats"], "fail")

    def test_an_optimizer_whose_update_is_not_known_leaves_its_rate_unjudged(self):
        text = self.template().replace("SGD(model.parameters(), lr=rate, fused=True)",
                                       "RMSprop(model.parameters(), lr=0.1)")
        batch = self.batch(("subject=script,impl=none",))
        self.assertEqual(batch.run(self.script(text)), [0], batch.log()[-2000:])
        self.assert_clean(batch, frozenset({"D04.learning_rate"}))
        self.assertNotEqual(self.words(batch)["D04.learning_rate"], "pass")

    def test_a_script_that_prints_and_seeds_is_judged_as_any_other(self):
        text = self.template().replace('    layers = [', '    print("hello from the script")\n'
                                       '    torch.manual_seed(7)\n    layers = [', 1)
        batch = self.batch(("subject=script,impl=manual",))
        self.assertEqual(batch.run(self.script(text)), [0])
        self.assert_clean(batch)
        self.assertIn("hello from the script", batch.log())

    def test_buffers_of_a_model_are_results_and_a_replaced_one_is_caught(self):
        text = self.template()
        for old, new in (
                ("def build(case: Case)", '''class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen.add_(x.detach().mean())
        return x


def build(case: Case)'''),
                ("model = nn.Sequential(*layers, ", "model = nn.Sequential(*layers, Mean(), ")):
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        batch = self.batch(("subject=script,impl=manual",))
        self.assertEqual(batch.run(self.script(text)), [0], batch.log()[-2000:])
        self.assert_clean(batch)

        rebound = text.replace("layers=layers)", "layers=layers, capture=capture)").replace(
            "    # Without `capture`", '''    def capture(step, inputs):
        from graphproof.subject import capture_whole_step
        captured = capture_whole_step(step, inputs, case.capture_mode)
        mean = model[len(layers)]
        mean.seen = mean.seen.clone()
        return captured

    # Without `capture`''')
        batch = self.batch(("subject=script,impl=manual",))
        batch.run(self.script(rebound))
        words = self.words(batch)
        self.assertEqual((words["D01.lockstep"], words["D05.operands_alive"]), ("fail", "fail"))

    def test_an_empty_graph_that_keeps_a_pool_is_no_graph_of_the_step(self):
        text = self.template().replace("layers=layers)", "layers=layers, capture=capture)").replace(
            "    # Without `capture`", '''    def capture(step, inputs):
        from graphproof.subject import capture_whole_step
        empty = torch.cuda.CUDAGraph()
        with torch.cuda.graph(empty, capture_error_mode=case.capture_mode):
            pass
        captured = capture_whole_step(step, inputs, case.capture_mode)
        captured.close = lambda: [empty.reset()]
        return captured

    # Without `capture`''')
        for replaced, word in ((", capture=capture, empty_graphs=True)", "pass"),
                               (", capture=capture)", "fail")):
            with self.subTest(word=word):
                batch = self.batch(("subject=script,impl=manual",))
                script = self.script(text.replace(", capture=capture)", replaced))
                self.assertEqual(batch.run(script), [0], batch.log()[-2000:])
                self.assertEqual(self.words(batch)["D15.census"], word)
                arms = [line["arm"] for line in batch.lines(batch.ids[0], "capture")]
                self.assertEqual(arms.count("lockstep_graph"), 1 if word == "pass" else 2)

    def test_a_generator_of_the_script_is_registered_and_one_that_is_not_is_caught(self):
        text = self.template()
        for old, new in (
                ("    rate = torch", "    mine = torch.Generator(case.device)\n    rate = torch"),
                ("loss = model(x)", "loss = model(x + torch.rand(x.shape, generator=mine))"),
                ("layers=layers)", 'layers=layers, generators=lambda: {"mine": mine})')):
            text = text.replace(old, new, 1)
        name = "subject=script,impl=manual,dropout=true,microbatches=2"
        batch = self.batch((name,))
        self.assertEqual(batch.run(self.script(text)), [0], batch.log()[-2000:])
        self.assert_clean(batch, frozenset({"D08.masks"}))
        words = self.words(batch)
        self.assertEqual((words["D09.registered_generators"], words["D08.generator"]),
                         ("pass", "pass"))

        forgetful = text.replace("layers=layers,", "layers=layers, capture=capture,").replace(
            "    # Without `capture`", '''    def capture(step, inputs):
        from graphproof.subject import capture_whole_step
        return capture_whole_step(step, inputs, case.capture_mode)

    # Without `capture`''')
        batch = self.batch((name,))
        batch.run(self.script(forgetful))
        self.assertEqual(self.words(batch)["D09.registered_generators"], "fail")

    def test_a_script_with_a_capture_of_its_own_that_forgets_the_inputs_is_caught(self):
        text = self.template().replace(
            "layers=layers)", "layers=layers, capture=capture)").replace(
            "    # Without `capture`", '''    def capture(step, inputs):
        from graphproof import Captured
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode=case.capture_mode):
            losses = step(inputs)

        def replay(fresh):
            graph.replay()
            return losses.clone()

        return Captured(step=replay, inputs=inputs, losses=losses, close=graph.reset)

    # Without `capture`''')
        batch = self.batch(("subject=script,impl=manual",))
        self.assertEqual(batch.run(self.script(text)), [0], batch.log()[-2000:])
        self.assertEqual(self.words(batch)["D01.lockstep"], "fail")


class TheJudge(unittest.TestCase):
    def test_it_was_built(self):
        self.assertTrue(os.access(built("graphproof-judge"), os.X_OK), built("graphproof-judge"))


if __name__ == "__main__":
    unittest.main()
