"""The programs that the verb bundle copies: they run, and they notice what they are for."""

import importlib.util
import json
import os
import pathlib
import runpy
import socket
import subprocess
import sys
import tempfile
import traceback
import unittest
from unittest import mock

import torch

from graphproof.device import stand_in
from graphproof.server import require_forkable
from judged_batch import ROOT, axes_of

stand_in.install()

FOLDER = os.path.join(ROOT, "python", "graphproof", "reproducers")
COLLECTIVES = ("all_reduce", "all_reduce_in_place", "all_gather", "reduce_scatter", "send_recv")


def case_of(**axes) -> dict:
    return {**axes_of(""), **axes, "seed": 1, "environment": {"NCCL_ALGO": "Ring"}}


def filled(name: str, case: dict) -> str:
    """The text of a program for a case, as the verb writes it."""
    with open(os.path.join(FOLDER, name + ".py"), encoding="utf-8") as file:
        before, after = file.read().split('r"""{}"""')
    return before + 'r"""' + json.dumps(case, indent=2) + '"""' + after


def module(name: str, case: dict):
    """The program as a module."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(filled(name, case))
        file.flush()
        spec = importlib.util.spec_from_file_location("reproducer", file.name)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    return made


def run_alone(name: str, case: dict, ranks: int) -> subprocess.CompletedProcess:
    """The program without graphproof in its path, on CPUs."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "reproducer.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(filled(name, case))
        start = [sys.executable, "-W", "ignore"]
        if ranks > 1:
            start += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.run([*start, program, "--device", "cpu"], env=environment, text=True,
                              capture_output=True, timeout=100, check=False)


def run_forked(name: str, case: dict, ranks: int) -> list:
    """[(exit code, output)] of the program's ranks, forked from this process: the import of PyTorch
    takes longer than the program."""
    require_forkable()
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        program = os.path.join(folder, "reproducer.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(filled(name, case))
        free.close()
        pids = []
        for rank in range(ranks):
            pid = os.fork()
            if pid == 0:
                run_as_rank(program, rank, ranks, port, os.path.join(folder, str(rank)))
            pids.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        return [(code, pathlib.Path(folder, str(rank)).read_text(encoding="utf-8"))
                for rank, code in enumerate(codes)]


def run_as_rank(program: str, rank: int, ranks: int, port: int, output: str) -> None:
    """The rest of a forked process."""
    code = 1
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(file, stream)
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        sys.argv = [program, "--device", "cpu"]
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Training(unittest.TestCase):
    def test_graphs_compute_what_eager_steps_compute_with_the_stand_in(self):
        for axes in ({"impl": "manual", "optimizer": "adam", "dropout": True, "clip_grad": True},
                     {"impl": "full_iteration", "optimizer": "adam", "optimizer_graph": True,
                      "microbatches": 2},
                     {"impl": "callables", "modules": ["attn"], "pool": "per_graph"},
                     {"impl": "callables", "optimizer": "adam", "precision": "bf16"},
                     {"impl": "manual", "optimizer": "adam", "activation": "swiglu",
                      "normalization": "LayerNorm"}):
            case = case_of(subject="torch", **axes)
            self.assertTrue(module("training", case).compare(case, "cpu", True), axes)

    def test_stale_inputs_are_noticed(self):
        case = case_of(subject="torch", impl="full_iteration")
        program = module("training", case)
        capture = program.Run.capture

        def stale(run, tokens, labels):
            step = capture(run, tokens, labels)
            return lambda *fresh: step(tokens, labels)

        with mock.patch.object(program.Run, "capture", stale):
            self.assertFalse(program.compare(case, "cpu", True))

    def test_it_runs_alone_with_one_rank_and_with_two(self):
        for axes in ({"impl": "manual", "optimizer": "adam"},
                     {"impl": "manual", "dp": 2, "comm": "c10d", "overlap_grad_reduce": True}):
            case = case_of(subject="torch", **axes)
            done = run_alone("training", case, case["dp"])
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("the same, bit for bit", done.stdout)
            self.assertIn("no graph was captured", done.stdout)

    def test_another_number_of_ranks_is_refused(self):
        done = run_alone("training", case_of(subject="torch", impl="manual", dp=2), 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("torchrun --nproc-per-node 2", done.stderr)


class Collective(unittest.TestCase):
    def case(self, collective: str) -> dict:
        return case_of(model="collective", impl="manual", dp=2, collective=collective,
                       collective_bytes=1024, placement="per_rank", steps=2)

    def test_it_runs_alone_with_two_ranks(self):
        done = run_alone("collective", self.case("all_reduce"), 2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rank in (0, 1):
            self.assertIn(f"rank {rank}: every result was right", done.stdout)

    def test_every_collective_is_right_between_two_ranks(self):
        for collective in COLLECTIVES:
            with self.subTest(collective):
                for rank, (code, said) in enumerate(
                        run_forked("collective", self.case(collective), 2)):
                    self.assertEqual(code, 0, said)
                    self.assertIn(f"rank {rank}: every result was right", said)

    def test_a_wrong_result_is_named(self):
        program = module("collective", self.case("all_reduce"))

        class Lost(program.Distributed):
            def run(self, kind, out, x):
                out.copy_(x)  # without the other rank

        with mock.patch("builtins.print") as said:
            self.assertFalse(program.run_arm("eager", Lost(0, 2), "cpu", 0, 2))
        self.assertIn("elements are wrong", "".join(str(call) for call in said.call_args_list))

    def test_buffers_straddle_a_border_on_odd_ranks_alone(self):
        program = module("collective", self.case("all_reduce"))
        size = program.aligned(1024)
        for rank, offset in ((0, 0), (1, size - program.aligned(512))):
            buffers = program.Buffers("cpu", rank, 2)
            self.assertEqual(buffers.x.storage_offset() * 4, offset)
            self.assertEqual(buffers.out.storage_offset() * 4, 2 * size + offset)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
