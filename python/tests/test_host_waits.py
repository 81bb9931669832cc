"""Where eager steps wait for the device: how PyTorch's mode for it is used, and how the places are
told. The mode itself needs a GPU."""

import contextlib
import inspect
import os
import unittest
import warnings
from unittest import mock

import torch

from graphproof.arms.host_waits import KEPT_PLACES, HostWaits
from graphproof.device import stand_in
from graphproof.device.cuda import WAIT_WARNING, CudaDevice
from judged_batch import JudgedBatch


class Device:
    """One that tells of the operators of the stand-in."""

    @staticmethod
    def waits_told(note):
        return stand_in.HostOperators(note)


def forward_backward(loss: torch.Tensor) -> None:
    loss.item()


def update(loss: torch.Tensor) -> None:
    loss.clone().nonzero()


def line_of(function) -> int:
    return inspect.getsourcelines(function)[1] + 1


class Places(unittest.TestCase):
    def told(self, captured, *steps) -> dict:
        waits = HostWaits(Device(), captured)
        for step in steps:
            with waits.watched():
                step(torch.ones(1))
        return waits.line()

    def test_a_wait_is_told_with_its_line_and_how_often_it_happened(self):
        file = os.path.basename(__file__)
        self.assertEqual(
            self.told(None, forward_backward, forward_backward),
            {"steps": 2, "waits": [{"place": f"{file}:{line_of(forward_backward)} forward_backward",
                                    "times": 2, "captured": True}]})

    def test_waits_outside_of_what_is_captured_come_last_and_say_so(self):
        found = self.told(("forward_backward",), update, forward_backward)
        self.assertEqual([(one["place"].partition(" ")[2], one["captured"])
                          for one in found["waits"]],
                         [("forward_backward", True), ("update", False)])

    def test_a_step_that_does_not_wait_has_no_place(self):
        self.assertEqual(self.told(None, torch.square), {"steps": 1, "waits": []})

    def test_a_line_names_the_first_places_alone(self):
        def here(loss):
            for number in range(2 * KEPT_PLACES):
                exec(compile("\n" * number + "loss.item()", "many.py", "exec"), {"loss": loss})

        self.assertEqual(len(self.told(None, here)["waits"]), KEPT_PLACES)


class Mode(unittest.TestCase):
    @contextlib.contextmanager
    def modes(self):
        """The modes that PyTorch is set to inside, in their order."""
        seen = []
        with mock.patch.object(torch.cuda, "get_sync_debug_mode", lambda: 0), \
                mock.patch.object(torch.cuda, "set_sync_debug_mode", seen.append):
            yield seen

    def test_it_is_on_in_the_region_alone_and_its_warnings_are_counted_one_by_one(self):
        notes, told = [], CudaDevice.waits_told
        with warnings.catch_warnings(record=True) as others, self.modes() as modes:
            warnings.simplefilter("default")
            with told(None, lambda: notes.append(1)):
                for _ in range(3):
                    warnings.warn(WAIT_WARNING + " (Triggered internally at CUDAFunctions.cpp:5.)")
                warnings.warn("something else")
            with self.assertRaises(ZeroDivisionError), told(None, None):
                1 / 0
        self.assertEqual(len(notes), 3)
        self.assertEqual([str(one.message) for one in others], ["something else"])
        self.assertEqual(modes, ["warn", 0, "warn", 0])


class Arms(unittest.TestCase):
    def test_eager_steps_with_the_number_of_captured_ones_are_watched(self):
        batch = JudgedBatch(["impl=full_iteration",
                             "impl=callables,capture_mode=global,warmup_steps=0", "impl=none"])
        self.addCleanup(batch.remove)
        self.assertEqual(batch.run(), [0])
        told = [[(one["arm"], one["steps"], one["waits"])
                 for one in batch.lines(case, "host_waits")] for case in batch.ids]
        self.assertEqual(told, [[("eager_a", 3, [])], [("eager_a", 4, [])], []])


if __name__ == "__main__":
    unittest.main()
