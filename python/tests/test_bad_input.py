"""Packages that do not load, ranks that have different ones, and scripts that hang or do not repeat
themselves. Ranks are processes of their own here: what they import differs."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from graphproof.subjects import template_file
from judged_batch import ROOT, JudgedBatch

DEADLINE_S = 120


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def batch(self, name: str, ranks: int = 1) -> JudgedBatch:
        batch = JudgedBatch([name], world_size=ranks)
        self.addCleanup(batch.remove)
        return batch

    def write(self, file: str, text: str) -> str:
        """The path of a new file in the folder of this test."""
        path = os.path.join(self.folder, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def start(self, batch: JudgedBatch, rank: int = 0, first_on_path: str = "",
              **environment) -> subprocess.Popen:
        paths = [first_on_path] * bool(first_on_path) + [os.path.join(ROOT, "python")]
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "graphproof.rank", "--batch", batch.file],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1",
                 "GRAPHPROOF_WORLD_SIZE": str(batch.world_size), "GRAPHPROOF_RANK": str(rank),
                 "GRAPHPROOF_LOCAL_RANK": str(rank), **environment},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def error_of(self, batch: JudgedBatch, rank: int = 0) -> dict:
        return batch.lines(batch.ids[0], "error", rank)[0]

    def test_a_package_that_does_not_load_is_told_with_what_to_do(self):
        self.write("transformer_engine/__init__.py", "")
        self.write("transformer_engine/pytorch.py",
                   "raise ImportError('undefined symbol: of_another_torch')\n")
        batch = self.batch("subject=transformer_engine,impl=none,precision=bf16")
        self.assertEqual(self.start(batch, first_on_path=self.folder).wait(DEADLINE_S), 10)
        error = self.error_of(batch)
        self.assertEqual(error["phase"], "build")
        self.assertRegex(error["message"],
                         "an import of subject transformer_engine; got ImportError: undefined "
                         "symbol: of_another_torch; want packages that can be imported; .*; next: "
                         "import them alone with ")

    def test_ranks_with_different_versions_are_told_on_both(self):
        self.write("torch-99.9.dist-info/METADATA",
                   "Metadata-Version: 2.1\nName: torch\nVersion: 99.9\n")
        batch = self.batch("impl=none,dp=2,comm=c10d", ranks=2)
        ranks = [self.start(batch, 0), self.start(batch, 1, first_on_path=self.folder)]
        self.assertEqual([rank.wait(DEADLINE_S) for rank in ranks], [10, 10])
        for rank in (0, 1):
            self.assertRegex(self.error_of(batch, rank)["message"],
                             "the ranks' packages differ; got rank 0 torch .*, rank 1 torch 99.9; "
                             "want the same versions on every rank")

    def test_a_build_that_hangs_is_a_rank_that_is_silent_in_phase_build(self):
        script = self.write("mine.py", "import time\ndef build(case):\n    time.sleep(3600)\n")
        batch = self.batch("subject=script,impl=none")
        batch.batch["heartbeat_fifo"] = os.path.join(self.folder, "fifo")
        batch.write_batch()
        os.mkfifo(batch.batch["heartbeat_fifo"])
        heard, in_build = [], threading.Event()

        def listen():
            with open(batch.batch["heartbeat_fifo"], encoding="utf-8") as stream:
                for line in stream:
                    heard.append(json.loads(line))
                    if heard[-1].get("phase") == "build" and heard[-1].get("arm") == "eager_a":
                        in_build.set()

        listener = threading.Thread(target=listen)
        listener.start()
        process = self.start(batch, GRAPHPROOF_SCRIPT=script)
        self.assertTrue(in_build.wait(DEADLINE_S))
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.kill()
        listener.join()
        # The launcher ends a rank that is silent for longer than the limit of its last phase.
        self.assertEqual((heard[-1]["event"], heard[-1]["phase"]), ("phase", "build"))
        process.wait()


class Scripts(unittest.TestCase):
    def words(self, old: str, new: str, wanted_code: int = 0, more: tuple = ("", "")) -> tuple:
        """(check -> word, error lines) of the example script with `old` exchanged for `new`, and
        with the other exchange `more`."""
        with open(template_file(), encoding="utf-8") as file:
            text = file.read().replace(*more, 1)
        self.assertIn(old, text)
        batch = JudgedBatch(["subject=script,impl=manual"])
        self.addCleanup(batch.remove)
        script = os.path.join(batch.folder, "mine.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
        self.assertEqual(batch.run({"GRAPHPROOF_SCRIPT": script}), [wanted_code])
        judged = {check: word for check, (word, _) in batch.judge(batch.ids[0]).items()}
        return judged, batch.lines(batch.ids[0], "error")

    def test_a_build_with_a_seed_of_its_own_time_fails_its_eager_arm(self):
        words, _ = self.words("    layers = [", "    import time\n"
                              "    torch.manual_seed(time.monotonic_ns())\n    layers = [")
        self.assertEqual(words["D02.eager_repeats"], "fail")

    def test_a_build_that_makes_another_model_each_time_is_told(self):
        _, errors = self.words(
            "nn.Linear(case.hidden, 1)",
            "nn.Linear(case.hidden, 1 + __import__('time').monotonic_ns() % 999)", wanted_code=10)
        self.assertIn("want the same names, types and shapes", errors[0]["message"])

    def test_a_failed_capture_names_the_line_of_the_script_in_which_it_began(self):
        _, errors = self.words("losses.append(loss.detach())",
                               "losses.append(torch.tensor(loss.item()))", wanted_code=10)
        self.assertEqual((errors[0]["phase"], errors[0]["code"]), ("capture", 900))
        with open(template_file(), encoding="utf-8") as file:
            line = next(number for number, text in enumerate(file, 1) if "losses.append" in text)
        self.assertRegex(errors[0]["message"],
                         "it began with CaptureRefused: .*local_scalar_dense.*, called by "
                         rf"mine.py:{line} step$")

    def test_averages_of_weights_that_graphs_leave_out_are_found(self):
        # They have no gradients and no optimizer: only the comparison of all parameters sees them.
        words, _ = self.words(
            "        optimizer.step()\n",
            "        optimizer.step()\n"
            "        if not torch.cuda.is_current_stream_capturing():\n"
            "            with torch.no_grad():\n"
            "                model.average.lerp_(layers[0][0].weight, 0.1)\n",
            more=("    # A captured optimizer",
                  "    model.average = nn.Parameter(layers[0][0].weight.detach().clone(), False)\n"
                  "    # A captured optimizer"))
        self.assertEqual((words["D02.eager_repeats"], words["D01.lockstep"]), ("pass", "fail"))

    def test_a_step_that_runs_another_number_of_layers_fails(self):
        words, _ = self.words("            loss = model(x)", "            model[0](x)\n"
                              "            loss = model(x)")
        self.assertEqual(words["D18.coverage"], "fail")


if __name__ == "__main__":
    unittest.main()
