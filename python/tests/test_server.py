"""The import server forks only where a fork is safe."""

import json
import os
import subprocess
import sys
import threading
import unittest

from graphproof.message import Error
from graphproof.server import cuda_is_initialized, require_forkable, threads
from judged_batch import ROOT


class Forkable(unittest.TestCase):
    def test_one_thread_without_cuda_is_and_two_threads_are_not(self):
        self.assertFalse(cuda_is_initialized())
        if threads() == 1:
            require_forkable()
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait)
        thread.start()
        try:
            with self.assertRaisesRegex(Error, "threads, CUDA not initialised"):
                require_forkable()
        finally:
            stop.set()
            thread.join()

    def test_a_rank_that_is_wrong_ends_with_its_code_and_the_server_goes_on(self):
        requests = [{"arguments": ["--what"]}, {"arguments": ["--batch", "/nowhere/batch.json"]}]
        done = subprocess.run(
            [sys.executable, "-m", "graphproof.server"],
            env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")},
            input="".join(json.dumps(one) + "\n" for one in requests) + "no json\n",
            capture_output=True, text=True, check=True, timeout=60)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(sorted(a["code"] for a in answers if "code" in a), [2, 2])
        self.assertEqual(sum("error" in answer for answer in answers), 1)
        self.assertIn("usage: python -m graphproof.rank", done.stderr)
        self.assertIn("the batch file /nowhere/batch.json", done.stderr)


if __name__ == "__main__":
    unittest.main()
