"""bench/watch_overhead without a GPU: its statistics, and a run against the stand-in driver.

GRAPHPROOF_PROGRAMS, GRAPHPROOF_PLAYER and GRAPHPROOF_FAKES name the built programs, the program
that plays the subject, and the folder of the stand-ins. The times of such a run say nothing of a
GPU.
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

PLAYED = ("--subject", os.environ["GRAPHPROOF_PLAYER"], "blocks")
SCRIPT = pathlib.Path(__file__).with_name("watch_overhead")
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("watch_overhead", str(SCRIPT))
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("watch_overhead", loader))
loader.exec_module(bench)


def run(*arguments, **settings):
    environment = dict(os.environ) | {
        "PATH": os.environ["GRAPHPROOF_PROGRAMS"] + ":" + os.environ["PATH"],
        "LD_LIBRARY_PATH": os.environ["GRAPHPROOF_FAKES"],
    } | settings
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([sys.executable, SCRIPT, *arguments], env=environment, cwd=folder,
                              text=True, capture_output=True)


class Statistics(unittest.TestCase):
    def test_the_interval_is_that_of_the_order_statistics(self):
        # Of 10 values the 2nd and the 9th hold the median with 97.9 %, of 40 the 14th and the
        # 27th with 96.2 % (tables of the binomial distribution).
        self.assertEqual(bench.median_interval(range(1, 11)), (5.5, 2, 9))
        self.assertEqual(bench.median_interval(range(1, 41)), (20.5, 14, 27))

    def test_few_values_give_their_whole_range(self):
        self.assertEqual(bench.median_interval([3, 1, 2]), (2, 1, 3))
        self.assertEqual(bench.median_interval([1]), (1, 1, 1))


class WholeRun(unittest.TestCase):
    def test_the_table_has_a_row_for_each_kind(self):
        done = run("--rounds", "6", "--steps", "20", "--evidence-steps", "1000", *PLAYED)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
        kinds = [row.split("|")[1].strip() for row in rows]
        self.assertEqual(kinds, ["", "---", "bare", "quick", "full"])
        self.assertIn("evidence of 1,000 steps, KiB", rows[0])
        self.assertIn("2% or less: ", rows[3])
        self.assertRegex(rows[3], r"[+-][0-9.]+% to [+-][0-9.]+%")

    def test_one_profile_can_be_measured_alone(self):
        done = run("--profiles", "quick", "--rounds", "2", "--steps", "2", "--evidence-steps", "4",
                   *PLAYED)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| quick |", done.stdout)
        self.assertNotIn("| full |", done.stdout)

    def test_a_time_limit_ends_the_rounds_and_says_how_many_were_done(self):
        begin = time.monotonic()
        done = run("--rounds", "1000000", "--steps", "20", "--evidence-steps", "1000000000",
                   "--seconds", "6", *PLAYED)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(time.monotonic() - begin, 40)  # without the limit it takes days
        rounds = re.search(r"\n(\d+) of 1000000 rounds of 20 steps each in \d+ s;", done.stdout)
        self.assertIsNotNone(rounds, done.stdout)
        self.assertGreaterEqual(int(rounds[1]), 1)
        self.assertNotIn("evidence of 1,000,000,000 steps", done.stdout)

    def test_too_few_rounds_decide_nothing(self):
        done = run("--rounds", "5", "--steps", "2", "--evidence-steps", "4", *PLAYED)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2% or less: not decided", done.stdout)

    def test_a_program_that_was_not_watched_has_no_figures(self):
        done = run("--rounds", "2", "--steps", "2", *PLAYED,
                   GRAPHPROOF_FAKE_CUPTI_HOLDER="another tool")
        self.assertEqual(done.returncode, 1)
        self.assertIn("another tool may hold CUPTI", done.stderr)
        self.assertNotIn("| quick |", done.stdout)

    def test_a_subject_that_ends_early_is_no_measurement(self):
        done = run("--rounds", "2", "--steps", "2", "--subject", "false")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the subject did not start (bare)", done.stderr)


if __name__ == "__main__":
    unittest.main()
