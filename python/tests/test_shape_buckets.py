"""Steps of changing length: their lengths and padding, the cache of graphs, and the distance of
padded steps from steps without padding."""

import math
import unittest

import torch

from graphproof.arms.bounds import reordered_bound
from graphproof.arms.lengths import IGNORED, length_schedule, padded, uneven_batch
from graphproof.arms.shape_buckets import GraphCache
from graphproof.case import Case
from graphproof.case_run import refuse_what_has_no_arms
from graphproof.comparison import distance
from graphproof.device.cpu import Ended
from graphproof.message import Error
from graphproof.subject import Captured
from graphproof.subjects.gpt import make_batch
from judged_batch import axes_of


def case_of(name: str = "microbatches=3", **options) -> Case:
    return Case(axes_of(name), seed=1, device="cpu", **options)


class Lengths(unittest.TestCase):
    def test_the_schedule_warms_up_evicts_and_comes_back(self):
        schedule = length_schedule(seq_length=16, bound=2, warmup_steps=1)
        self.assertEqual(schedule.buckets, (4, 8, 12))
        self.assertEqual(schedule.steps, (4, 4, 8, 8, 4, 12, 12, None, 8, 12, 12, None, 4))

    def test_the_longest_microbatch_of_a_step_lies_in_its_bucket_and_in_no_smaller_one(self):
        schedule = length_schedule(seq_length=20, bound=3, warmup_steps=2)
        for step, bucket in enumerate(schedule.steps):
            longest = schedule.longest(step)
            smallest = min((one for one in schedule.buckets if one >= longest), default=None)
            self.assertEqual(smallest, bucket, step)
            self.assertLessEqual(longest, 20)
        self.assertGreater(len({schedule.longest(step) for step in range(len(schedule.steps))}), 5)

    def test_buckets_without_a_length_of_their_own_are_an_error(self):
        with self.assertRaisesRegex(Error, "3 shape buckets; got seq_length 7; want at least 8"):
            length_schedule(seq_length=7, bound=2, warmup_steps=1)

    def test_only_the_first_rank_has_the_longest_microbatch_for_sure(self):
        schedule = length_schedule(seq_length=16, bound=2, warmup_steps=1)
        for rank in (0, 1):
            for step in range(len(schedule.steps)):
                case = case_of(rank=rank, world_size=2)
                batch = uneven_batch(case, make_batch(case, step), schedule, step)
                lengths = [one.shape[-1] for one in batch["tokens"]]
                self.assertEqual(lengths, [one.shape[-1] for one in batch["labels"]])
                self.assertLessEqual(max(lengths), schedule.longest(step))
                if rank == 0:
                    self.assertEqual(lengths[0], schedule.longest(step))

    def test_padding_has_the_filler_and_no_label_that_counts(self):
        batch = {"tokens": [torch.tensor([[1, 2]]), torch.tensor([[3]])],
                 "labels": [torch.tensor([[2, 5]]), torch.tensor([[6]])]}
        self.assertEqual({name: values.tolist() for name, values in padded(batch, 3, 9).items()},
                         {"tokens": [[[1, 2, 9]], [[3, 9, 9]]],
                          "labels": [[[2, 5, IGNORED]], [[6, IGNORED, IGNORED]]]})


class Cached:
    """A subject and a device that note what a cache does with them."""

    def __init__(self):
        self.done = []
        self.running = False

    def step(self, batch):
        self.done.append(("eager", batch["tokens"].shape[-1]))

    def capture(self, step, batch):
        length = batch["tokens"].shape[-1]

        def note(what):
            return lambda *_: self.done.append((what, length))

        note("capture")()
        return Captured(step=note("replay"), close=note("close"), leave=lambda: None)

    def synchronize(self):
        self.running = False

    def return_memory(self):
        self.done.append(("returned", 0))

    def mark(self):
        self.running = True
        return self

    def query(self):
        return not self.running


class Cache(unittest.TestCase):
    def cache(self, bound: int = 1, warmup_steps: int = 1) -> tuple:
        cached = Cached()
        return cached, GraphCache(cached, cached, (4, 8), bound, warmup_steps)

    def run_of(self, cache: GraphCache, *lengths: int) -> None:
        for length in lengths:
            tokens = [torch.zeros(1, length, dtype=torch.int64)]
            cache.step({"tokens": tokens, "labels": tokens}, length)

    def test_a_length_is_warmed_up_captured_evicted_and_captured_again_without_a_warm_up(self):
        cached, cache = self.cache()
        self.run_of(cache, 3, 4, 9, 7, 8, 4)
        self.assertEqual(cached.done, [
            ("eager", 4), ("capture", 4), ("replay", 4), ("eager", 9), ("eager", 8),
            ("close", 4), ("returned", 0), ("capture", 8), ("replay", 8),
            ("close", 8), ("returned", 0), ("capture", 4), ("replay", 4)])
        self.assertEqual((cache.evicted, cache.in_flight, cache.length), ([8], 0, 4))

    def test_the_least_recently_used_length_goes_first(self):
        _, cache = self.cache(bound=2, warmup_steps=0)
        self.run_of(cache, 4, 8, 4)
        self.assertEqual([one.length for one in cache.residents], [4, 8])

    def test_an_eviction_that_does_not_wait_is_counted(self):
        cached, cache = self.cache(warmup_steps=0)
        cached.synchronize = lambda: None
        self.run_of(cache, 4, 8)
        self.assertEqual(cache.in_flight, 1)

    def test_work_of_the_cpu_has_ended(self):
        self.assertTrue(Ended().query())


class Subjects(unittest.TestCase):
    def test_only_torch_has_arms_for_steps_of_changing_length(self):
        refuse_what_has_no_arms(case_of("subject=torch,shape_buckets=2"))
        for subject in ("torch_compile", "fsdp2", "transformer_engine", "megatron_core", "script"):
            with self.assertRaisesRegex(Error, f"axis shape_buckets of a case with subject "
                                               f"{subject}; got 2; want 0"):
                refuse_what_has_no_arms(case_of(f"subject={subject},shape_buckets=2"))


class Distances(unittest.TestCase):
    def test_the_pair_that_is_nearest_to_its_bound_is_told(self):
        near = [("a", torch.tensor([1.0, 4.0])), ("b", torch.tensor([2.0]))]
        far = [("a", torch.tensor([1.0, 4.2])), ("b", torch.tensor([2.4]))]
        told = distance(far, near, 0.1, "so")
        self.assertEqual((told["tensors"], told["worst"], told["why"]), (2, "b", "so"))
        for field, value in (("max_abs", 0.4), ("max_rel", 0.2), ("bound", 0.2)):
            self.assertAlmostEqual(told[field], value, places=6)

    def test_equal_tensors_are_within_any_bound_and_nan_within_none(self):
        zero, nan = [("a", torch.zeros(2))], [("a", torch.tensor([0.0, math.nan]))]
        self.assertEqual(distance(zero, zero, 0.1, "")["max_abs"], 0.0)
        self.assertTrue(math.isnan(distance(nan, zero, 0.1, "")["max_abs"]))

    def test_the_bound_grows_with_what_is_summed_and_rounded(self):
        # The factor of a LayerNorm, of a gate and of the longest sum, as the files say.
        fp32 = reordered_bound(case_of("hidden=64,vocab=128"))[0]
        self.assertAlmostEqual(fp32, 4 * 16 * 2.0 ** -24 * 66)
        self.assertAlmostEqual(reordered_bound(case_of("normalization=LayerNorm"))[0] / fp32,
                               81 / 66)
        self.assertAlmostEqual(reordered_bound(case_of("vocab=1024"))[0] / fp32, 2)
        self.assertAlmostEqual(reordered_bound(case_of("precision=bf16"))[0],
                               4 * math.sqrt(108) * 2.0 ** -9)
        self.assertAlmostEqual(reordered_bound(case_of("precision=fp16,activation=swiglu"))[0],
                               4 * math.sqrt(114) * 2.0 ** -11)


if __name__ == "__main__":
    unittest.main()
