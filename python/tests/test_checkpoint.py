"""Checkpoints in files: a subject that is built anew and restored goes on as the one that wrote
them, and one that is not restored does not."""

import os
import tempfile
import types
import unittest

import torch
from torch import nn

from graphproof import checkpoint
from graphproof.arms.arm import Arm
from graphproof.case import Case
from graphproof.subject import Subject
from graphproof.subjects import fsdp2_subject, torch_subject
from graphproof.subjects import megatron_core_subject as megatron
from graphproof.subjects import template
from judged_batch import axes_of
from test_megatron_core import world_of_one

STEPS = 3


class GoesOn(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "checkpoint")
        torch.use_deterministic_algorithms(True)

    def case(self, name: str) -> Case:
        return Case(axes_of(name), seed=1, device="cpu")

    def arm(self, build, case: Case, seed: int):
        """What Arm.checkpoint and Arm.restore need of an arm, without its evidence."""
        torch.manual_seed(seed)
        subject = build(case)
        return types.SimpleNamespace(parts=types.SimpleNamespace(case=case), subject=subject,
                                     index=STEPS - 1, _states={"default": torch.get_rng_state()})

    def losses(self, subject: Subject, first: int) -> list:
        return [subject.step(subject.batch(step)) for step in range(first, first + STEPS)]

    def test_as_the_job_that_wrote_it_and_only_if_restored(self):
        rows = ((torch_subject.build, "impl=none,optimizer=adam"),
                (torch_subject.build, "impl=none,precision=fp16"),
                (template.build, "subject=script,impl=none"),
                (fsdp2_subject.build, "subject=fsdp2,impl=none,optimizer=adam"))
        with world_of_one() as world:
            world.join_group("gloo")
            for build, name in rows:
                case = self.case(name)
                first = self.arm(build, case, seed=1)
                self.losses(first.subject, 0)
                Arm.checkpoint(first, self.folder)
                wanted = self.losses(first.subject, STEPS)
                for restored in (True, False):
                    second = self.arm(build, case, seed=2)
                    if restored:
                        self.assertEqual(Arm.restore(second, self.folder), STEPS)
                        self.assertTrue(torch.equal(second._states["default"],
                                                    first._states["default"]))
                    found = self.losses(second.subject, STEPS)
                    with self.subTest(case=name, restored=restored):
                        self.assertEqual(all(map(torch.equal, wanted, found)), restored)

    def test_a_file_that_was_not_written_whole_is_none(self):
        with self.assertRaises(AttributeError):
            checkpoint.write(self.folder, 0, "states", lambda: None)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".pt")], [])


class Chunks(unittest.TestCase):
    def test_megatron_core_loads_its_chunks_by_number_and_then_the_optimizer(self):
        def training():
            chunks = [nn.Linear(2, 2), nn.Linear(2, 2)]
            optimizer = torch.optim.Adam([p for chunk in chunks for p in chunk.parameters()])
            case = types.SimpleNamespace(rank=3, overlap_param_gather=False)
            one = types.SimpleNamespace(chunks=chunks, optimizer=optimizer, case=case)
            one._states = lambda: megatron.MegatronTraining._states(one)
            one._parameters_gathered = \
                lambda: megatron.MegatronTraining._parameters_gathered(one)
            return one

        first, second, order = training(), training(), []
        for parameter in first.optimizer.param_groups[0]["params"]:
            parameter.grad = torch.ones_like(parameter)
        first.optimizer.step()
        for part in (*second.chunks, second.optimizer):
            load = part.load_state_dict
            part.load_state_dict = lambda states, part=part, load=load: (order.append(part),
                                                                         load(states))
        with tempfile.TemporaryDirectory() as folder:
            megatron.MegatronTraining.write_files(first, folder)
            self.assertEqual(os.listdir(folder), ["rank-3.states.pt"])
            self.assertEqual(list(checkpoint.read(folder, 3, "states")),
                             ["model0", "model1", "optimizer"])
            megatron.MegatronTraining.read_files(second, folder)
        self.assertEqual(order, [*second.chunks, second.optimizer])
        for left, right in zip(first.chunks, second.chunks):
            self.assertTrue(torch.equal(left.weight, right.weight))
        self.assertEqual({float(state["step"]) for state in second.optimizer.state.values()}, {1.0})


if __name__ == "__main__":
    unittest.main()
