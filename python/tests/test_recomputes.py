"""What runs under a checkpoint, and what of it runs again, is counted outside of captures and
inside, by PyTorch's own checkpoints and as Megatron-Core's modules call theirs."""

import contextlib
import sys
import types
import unittest
from unittest import mock

import torch
from torch.utils.checkpoint import checkpoint

from graphproof import recomputes
from graphproof.recomputes import Counts, Recomputes, counted
from graphproof.subjects.megatron_core_recompute import count_recomputes
from judged_batch import JudgedBatch


def square(x: torch.Tensor) -> torch.Tensor:
    return x * x


def twice(x: torch.Tensor) -> torch.Tensor:
    """A part with a part of its own."""
    return checkpoint(counted(square), square(x), use_reentrant=True)


@contextlib.contextmanager
def running(arm: Recomputes, capturing=lambda: False):
    """A step of the arm."""
    with mock.patch.object(Recomputes, "current", arm), \
            mock.patch.object(recomputes, "_capturing", capturing):
        yield


class Counting(unittest.TestCase):
    def counts(self, work, warming_up: bool = False, capturing=lambda: False) -> Counts:
        """What is counted of work(x), whose gradient is then computed."""
        arm = Recomputes(lambda: warming_up)
        with running(arm, capturing):
            result = work(torch.ones(2, requires_grad=True))
            if result.requires_grad:
                result.sum().backward()
        return arm.counts

    def test_both_modes_of_pytorch_run_a_part_again_in_the_backward_pass(self):
        for reentrant in (True, False):
            with self.subTest(reentrant=reentrant):
                self.assertEqual(
                    self.counts(lambda x: checkpoint(counted(square), x, use_reentrant=reentrant)),
                    Counts(parts=1, parts_again=1))

    def test_a_plain_call_runs_a_part_once_and_a_second_one_in_the_forward_pass_is_no_recompute(
            self):
        def work(x):
            part = counted(square)
            return part(part(x))

        self.assertEqual(self.counts(lambda x: counted(square)(x)), Counts(parts=1))
        self.assertEqual(self.counts(work), Counts(parts=1))

    def test_inside_a_capture_both_runs_are_counted_apart(self):
        self.assertEqual(self.counts(lambda x: checkpoint(counted(square), x, use_reentrant=True),
                                     capturing=lambda: True),
                         Counts(captured=1, captured_again=1))

    def test_a_part_within_a_part_first_runs_under_a_checkpoint_when_the_outer_one_runs_again(self):
        self.assertEqual(self.counts(lambda x: checkpoint(counted(twice), x, use_reentrant=True)),
                         Counts(parts=2, parts_again=2))

    def test_passes_without_gradients_and_those_that_warm_up_are_not_counted(self):
        def evaluated(x):
            with torch.no_grad():
                return checkpoint(counted(square), x, use_reentrant=True)

        self.assertEqual(self.counts(evaluated), Counts())
        self.assertEqual(self.counts(lambda x: checkpoint(counted(square), x, use_reentrant=True),
                                     warming_up=True), Counts())
        self.assertEqual(self.counts(lambda x: counted(square)(x), warming_up=True,
                                     capturing=lambda: True), Counts(captured=1))

    def test_outside_of_a_step_a_function_is_handed_on_as_it_is(self):
        self.assertIs(counted(square), square)


class Checkpoint:
    """Megatron-Core's object for a part whose result is given up."""

    def checkpoint(self, function, *args):
        return function(*args)


class MegatronCore(unittest.TestCase):
    def modules(self, have_te: bool) -> dict:
        """Modules with the functions that Megatron-Core's layers look up."""
        def plain(function, distribute, *args):
            return function(*args)

        def of_te(function, *args, **settings):
            assert settings == {"distribute_saved_activations": False}
            return function(*args)

        self.core = types.SimpleNamespace(
            checkpoint=plain, CheckpointWithoutOutput=type("Without", (Checkpoint,), {}))
        self.te = types.SimpleNamespace(checkpoint=of_te)
        extension = types.SimpleNamespace(HAVE_TE=have_te)
        te = {"transformer_engine": types.SimpleNamespace(),
              "transformer_engine.pytorch": types.SimpleNamespace(),
              "transformer_engine.pytorch.distributed": self.te}
        return {"megatron": types.SimpleNamespace(),
                "megatron.core": types.SimpleNamespace(tensor_parallel=self.core),
                "megatron.core.tensor_parallel": self.core,
                "megatron.core.extensions": types.SimpleNamespace(),
                "megatron.core.extensions.transformer_engine": extension,
                **(te if have_te else {})}

    def test_every_kind_of_checkpoint_is_counted_once_however_many_arms_a_process_has(self):
        arm = Recomputes(lambda: False)
        with mock.patch.dict(sys.modules, self.modules(have_te=True)):
            for _ in ("eager_a", "solo_eager"):
                count_recomputes()
        x = torch.ones(2, requires_grad=True)
        with running(arm):
            for number, run in enumerate((
                    lambda: self.core.checkpoint(square, False, x),
                    lambda: self.core.CheckpointWithoutOutput().checkpoint(square, x),
                    lambda: self.te.checkpoint(square, x, distribute_saved_activations=False))):
                run()
                self.assertEqual(arm.counts, Counts(parts=number + 1))

    def test_transformer_engine_is_not_needed(self):
        with mock.patch.dict(sys.modules, self.modules(have_te=False)):
            count_recomputes()
        self.assertTrue(self.core.checkpoint.counts)


class Arms(unittest.TestCase):
    def test_every_arm_of_a_case_that_recomputes_tells_what_it_counted(self):
        batch = JudgedBatch(["impl=full_iteration,recompute=full(block,1),microbatches=2",
                             "impl=none,recompute=selective(core_attn,mlp),checkpoint=reentrant",
                             "impl=none"])
        self.addCleanup(batch.remove)
        self.assertEqual(batch.run(), [0])
        # One layer in two microbatches; two parts of two layers in one. There are five steps, in
        # lockstep one with the inputs of the capture again, two that warm up, and in solo arms as
        # many as a trend needs.
        wanted = ({"eager_a": (5, 2, 0), "solo_eager": (11, 2, 0), "lockstep_eager": (6, 2, 0),
                   "lockstep_graph": (2, 2, 2), "free_graph": (2, 2, 2), "solo_graph": (2, 2, 2)},
                  {"eager_a": (5, 4, 0), "solo_eager": (11, 4, 0)}, {})
        for case, arms in zip(batch.ids, wanted, strict=True):
            told = {one["arm"]: (one["eager_steps"], one["parts"], one["parts_again"],
                                 one["captured"], one["captured_again"])
                    for one in batch.lines(case, "recomputes")}
            self.assertEqual(told, {arm: (steps, steps * parts, steps * parts, captured, captured)
                                    for arm, (steps, parts, captured) in arms.items()})


if __name__ == "__main__":
    unittest.main()
