"""Ranks of a batch are forked from one import, or start as they do without it. What ranks do is
stood in for by one line; a last test runs the rank program."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from graphproof import starter
from judged_batch import ROOT, JudgedBatch

MARK = "GRAPHPROOF_STARTER_TEST"
# Runs start() with other modules and another rank program than those of a subject.
PROGRAM = """
import os, signal, sys, time
from graphproof import rank_log, server, starter
starter.modules_of = lambda file: ["imported"]

def rank(arguments):
    import imported
    number, count = int(os.environ["GRAPHPROOF_RANK"]), os.environ["GRAPHPROOF_WORLD_SIZE"]
    {rank}

server.run_rank = rank
sys.exit(starter.start({start!r}, 2, ["batch.json"], {deadline}))
"""
SAY = 'os.write(1, f"rank {number} of {count}: {imported.SEEN}\\n".encode()); return 0'
SLEEP = 'os.write(1, b"up\\n"); time.sleep(60); return 0'
SOON_S = 20.0


class Starter(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.cold = self.write("cold", '#!/bin/sh\necho cold "$@"\nexit 5\n')
        os.chmod(self.cold, 0o755)
        self.mark = f"{os.getpid()}.{time.monotonic_ns()}"

    def write(self, name: str, text: str) -> str:
        file = os.path.join(self.folder, name)
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
        return file

    def starts(self, rank: str, imported: str = "SEEN = 1\n", deadline: float = 60,
               **environment) -> subprocess.Popen:
        self.write("imported.py", imported)
        text = PROGRAM.format(rank=rank, start=self.cold, deadline=deadline)
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", text], text=True,
            env={**os.environ, MARK: self.mark, **environment,
                 "PYTHONPATH": os.pathsep.join((os.path.join(ROOT, "python"), self.folder))},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ended(self, process: subprocess.Popen) -> tuple:
        """(exit code, standard output, standard error) of a starter that has left nothing."""
        out, err = process.communicate(timeout=SOON_S)
        self.assert_none_left()
        return process.returncode, out, err

    def assert_none_left(self) -> None:
        end = time.monotonic() + SOON_S
        while (left := self.marked()) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(left, [])

    def marked(self) -> list:
        """Processes that were started by this test, as the launcher finds them. A zombie has no
        environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"{MARK}={self.mark}".encode() in file.read():
                        found.append(int(pid))
            except OSError:
                continue
        return found

    def up(self, process: subprocess.Popen) -> None:
        """Waits until both ranks run."""
        for _ in range(2):
            self.assertEqual(process.stdout.readline(), "up\n")

    # ---- forked

    def test_ranks_know_their_place_and_what_was_imported(self):
        code, out, err = self.ended(self.starts(SAY))
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()), ["rank 0 of 2: 1", "rank 1 of 2: 1"])

    def test_a_batch_is_imported_once(self):
        count = self.write("count", "")
        imported = f"SEEN = open({count!r}, 'a').write('x')\n"
        self.assertEqual(self.ended(self.starts(SAY, imported))[0], 0)
        with open(count, encoding="utf-8") as file:
            self.assertEqual(file.read(), "x")

    def test_ranks_have_what_the_imports_printed_and_nobody_else(self):
        imported = ("import os, sys\nprint('one')\nprint('two', file=sys.stderr)\n"
                    "os.system('echo three')\nSEEN = 1\n")
        code, out, err = self.ended(self.starts(
            'os.write(1, b"%d %r\\n" % (number, sorted(rank_log.printed_by_imports.split()))); '
            "return 0", imported))
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()),
                         [f"{rank} [b'one', b'three', b'two']" for rank in (0, 1)])

    def test_a_log_has_them_once_among_the_lines_of_the_first_case(self):
        program = ("import sys\nfrom graphproof import rank_log\n"
                   "rank_log.printed_by_imports = b'of an import\\n'\n"
                   "log = rank_log.RankLog(sys.argv[1], 0)\nprint(log.bytes())\n"
                   "log.repeat_imports()\nlog.repeat_imports()\n")
        subprocess.run([sys.executable, "-c", program, self.folder], check=True,
                       env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")})
        with open(os.path.join(self.folder, "rank-0.log"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "0\nof an import\n")

    def test_each_environment_has_a_server_of_its_own(self):
        imported = "import os\nSEEN = os.environ['NVTE_CHOICE']\n"
        for choice in ("a", "b"):
            _, out, _ = self.ended(self.starts(SAY, imported, NVTE_CHOICE=choice))
            self.assertEqual(sorted(out.splitlines()),
                             [f"rank {rank} of 2: {choice}" for rank in (0, 1)])

    def test_defaults_of_a_rank_are_set_ahead_of_the_imports(self):
        imported = "import os\nSEEN = os.environ['NVTE_ALLOW_NONDETERMINISTIC_ALGO']\n"
        self.assertIn("rank 1 of 2: 0", self.ended(self.starts(SAY, imported))[1])

    def test_the_first_rank_that_fails_is_named_and_the_others_are_ended(self):
        deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
        for fails, code, told in (("return 7", 7, "ended with exit code 7"),
                                  ("os.kill(os.getpid(), signal.SIGSEGV)", 139,
                                   "ended by signal 11 (Segmentation fault)"),
                                  ("raise RuntimeError('x')", 6, "ended with exit code 6")):
            for others in ("time.sleep(60)", deaf):
                rank = f"if number == 0: {others}\n    {fails}"
                found, _, err = self.ended(self.starts(rank))
                with self.subTest(fails=fails, others=others):
                    self.assertEqual(found, code)
                    self.assertRegex(err, r"graphproof-start: rank 1 with PID \d+ "
                                     + re.escape(told))

    def test_a_signal_ends_ranks_server_and_starter(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            process = self.starts(SLEEP)
            self.up(process)
            process.send_signal(number)
            with self.subTest(number=number):
                self.assertEqual(self.ended(process)[0], -number)

    def test_ranks_do_not_outlive_a_server_that_dies(self):
        process = self.starts('os.write(1, b"%d\\n" % os.getppid()); time.sleep(60); return 0')
        os.kill(int(process.stdout.readline()), signal.SIGKILL)
        code, _, err = self.ended(process)
        self.assertEqual(code, 137)
        self.assertRegex(err, r"the import server with PID \d+ ended by signal 9, and all ranks")

    # ---- cold

    def test_where_no_server_becomes_ready_the_ranks_start_without_one(self):
        rows = (
            ("a thread", "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), "
                         "daemon=True).start()\n", "2 threads, CUDA not initialised"),
            ("CUDA", "from graphproof import server\nserver.cuda_is_initialized = lambda: True\n",
             "1 threads, CUDA initialised"),
            ("an import that fails", "import no_such_package\n", "No module named"),
            ("an import that exits", "raise SystemExit(3)\n", "SystemExit: 3"),
            ("an import that prints", "print('of an import')\nimport no_such_package\n",
             "of an import\n"),
            ("an import that dies", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
             "the import server of a batch; got none after"),
            ("an import that hangs", "import time\ntime.sleep(60)\n",
             "ready to fork within 2 s"),
        )
        for what, imported, told in rows:
            with self.subTest(what):
                code, out, err = self.ended(self.starts(SAY, imported, deadline=2))
                self.assertEqual(code, 5)
                self.assertEqual(out.split(), ["cold", "2", sys.executable, "-m",
                                               "graphproof.rank", "batch.json"])
                self.assertIn(told, err)
                self.assertIn("each rank imports its packages by itself now", err)

    def test_a_signal_during_the_imports_ends_everything(self):
        begun = os.path.join(self.folder, "begun")
        process = self.starts(SAY, f"import time\nopen({begun!r}, 'w').close()\ntime.sleep(60)\n")
        end = time.monotonic() + SOON_S
        while not os.path.exists(begun) and time.monotonic() < end:
            time.sleep(0.01)
        process.terminate()
        code, out, _ = self.ended(process)
        self.assertEqual((code, out), (-signal.SIGTERM, ""))

    # ---- the command line

    def test_modules_follow_the_subject_of_the_batch(self):
        for axes, wanted in (({"subject": "torch"}, []), ({}, []),
                             ({"subject": "megatron_core"}, starter.MODULES["megatron_core"])):
            text = f'{{"cases": [{{"axes": {str(axes).replace(chr(39), chr(34))}}}]}}'
            file = self.write("batch.json", text)
            self.assertEqual(starter.modules_of(file), ["graphproof.case_run", *wanted])
        for text in ("", "[]", '{"cases": []}', '{"cases": [3]}'):
            self.assertEqual(starter.modules_of(self.write("batch.json", text)), [], text)

    def test_a_batch_runs_from_one_import(self):
        batch = JudgedBatch(["impl=none,dp=2,comm=c10d"], world_size=2)
        self.addCleanup(batch.remove)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "graphproof.starter", self.cold, "2",
             batch.file], env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"),
                               "OMP_NUM_THREADS": "1", MARK: self.mark},
            capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr + batch.log())
        self.assertNotIn("graphproof.starter", done.stderr)
        self.assert_none_left()
        for rank in (0, 1):
            self.assertTrue(batch.lines(batch.ids[0], "end", rank)[0]["complete"])

    def test_words_that_are_missing_are_a_usage_error(self):
        for words in ([], ["start"], ["start", "2"], ["start", "0", "b"], ["start", "x", "b"]):
            self.assertEqual(starter.main(words), 2)


if __name__ == "__main__":
    unittest.main()
