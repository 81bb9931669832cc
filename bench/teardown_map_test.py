"""bench/teardown_map without a GPU: its rows, how it reads an end, and a run over gloo."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("teardown_map")
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("teardown_map", str(SCRIPT))
teardown_map = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("teardown_map", loader))
loader.exec_module(teardown_map)


class Rows(unittest.TestCase):
    def test_hold_every_order_every_kept_part_and_every_early_end(self):
        rows = teardown_map.rows()
        parts = set(teardown_map.PARTS)
        whole = [steps for steps in rows.values() if set(steps) == parts | {"return"}]
        self.assertEqual(len(set(whole)), 24)
        kept = [steps for steps in rows.values()
                if len(parts - set(steps)) == 1 and steps[-1] == "return"]
        self.assertEqual({(parts - set(steps)).pop() for steps in kept}, parts)
        early = {name for name in rows if " when " in name}
        self.assertEqual(len(early), len(teardown_map.EARLY) * len(teardown_map.MOMENTS))
        self.assertEqual(list(rows)[:2], list(teardown_map.PLANTED), "the planted rows come first")


class Outcome(unittest.TestCase):
    def test_is_that_of_the_rank_that_hangs_or_dies(self):
        for expected, codes, last, want in (
                (0, [0, 0], ["return", "return"], "ends"),
                (-15, [-15, -15], ["SIGTERM", "SIGTERM"], "ends"),
                (0, [0, None], ["return", "group"], "hangs in group"),
                (0, [-6, None], ["tensors", "group"], "hangs in group"),
                (0, [0, -11], ["return", "graph"], "dies with signal SIGSEGV in graph"),
                (3, [3, 0], ["exit", "exit"], "dies with code 0 in exit")):
            with self.subTest(codes=codes, last=last):
                self.assertEqual(teardown_map.outcome(expected, codes, last), want)

    def test_a_map_without_its_planted_ends_or_the_plain_order_says_nothing(self):
        good = {name: {"outcome": word, "said": []} for name, word in zip(
            (*teardown_map.PLANTED, teardown_map.CLEAN),
            ("hangs in wait", "dies with signal SIGSEGV in trap", "ends"))}
        self.assertEqual(teardown_map.trusted(good), "")
        for name in good:
            broken = good | {name: {"outcome": "hangs in set-up", "said": []}}
            self.assertIn("hangs in set-up", teardown_map.trusted(broken), name)


class Run(unittest.TestCase):
    def test_over_gloo_sees_the_planted_ends_and_the_plain_order(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "map.json"
            ran = subprocess.run(
                [sys.executable, SCRIPT, "--device", "cpu", "--deadline", "40", "--only",
                 "^SIGTERM when captured$", "--json", str(file)],
                text=True, capture_output=True, timeout=200)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            results = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(results["SIGTERM when captured"]["outcome"], "ends")
        self.assertEqual(results["SIGTERM when captured"]["last"],
                         ["SIGTERM when captured"] * 2)
        self.assertIn("| planted: a step that never returns | hangs in wait |", ran.stdout)


if __name__ == "__main__":
    unittest.main()
