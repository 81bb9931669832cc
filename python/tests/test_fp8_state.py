"""Transformer Engine's FP8 state, apart for each arm. Its module is stood in for."""

import sys
import types
import unittest
from unittest import mock

from graphproof.subject import Captured
from graphproof.subjects.fp8_state import Fp8State


class State:
    """What Transformer Engine keeps: the modules that have registered."""

    def __init__(self):
        self.modules = []


def with_manager(manager):
    names = ("transformer_engine", "transformer_engine.pytorch")
    modules = {name: types.ModuleType(name) for name in names}
    quantization = types.ModuleType("transformer_engine.pytorch.quantization")
    quantization.FP8GlobalStateManager = manager
    modules[quantization.__name__] = quantization
    return mock.patch.dict(sys.modules, modules)


class Fp8StateTest(unittest.TestCase):
    def setUp(self):
        self.manager = type("FP8GlobalStateManager", (), {"quantization_state": State()})
        self.enterContext(with_manager(self.manager))

    def register(self, name):
        self.manager.quantization_state.modules.append(name)
        return list(self.manager.quantization_state.modules)

    def test_arms_that_run_in_turn_do_not_see_each_other(self):
        one, other = Fp8State(used=True).of(self.register), Fp8State(used=True).of(self.register)
        self.assertEqual(one("a"), ["a"])
        self.assertEqual(other("b"), ["b"])
        self.assertEqual(one("c"), ["a", "c"])
        self.assertEqual(self.manager.quantization_state.modules, [], "nothing is left outside")

    def test_what_a_capture_returns_runs_with_the_state_of_its_arm(self):
        state = Fp8State(used=True)
        capture = state.of_capture(lambda name: Captured(
            step=lambda _: self.register(name), close=lambda: self.register("closed")))
        captured = capture("a")
        self.assertEqual(captured.step(None), ["a"])
        self.assertEqual(captured.close(), ["a", "closed"])
        self.assertIsNone(state.of_capture(lambda: None)(), "one graph of the whole step")

    def test_a_step_within_a_step_keeps_the_state(self):
        state = Fp8State(used=True)
        inner = state.of(self.register)
        self.assertEqual(state.of(lambda: (self.register("a"), inner("b"))[1])(), ["a", "b"])

    def test_a_reset_is_of_the_arm_alone(self):
        state = Fp8State(used=True)
        state.of(self.register)("a")
        self.manager.quantization_state.modules.append("outside")

        def reset():
            self.manager.quantization_state = State()
        state.of(reset)()
        self.assertEqual(state.of(self.register)("b"), ["b"])
        self.assertEqual(self.manager.quantization_state.modules, ["outside"])

    def test_an_error_leaves_the_state_outside_as_it_was(self):
        outside = self.manager.quantization_state
        with self.assertRaises(ZeroDivisionError):
            Fp8State(used=True).of(lambda: 1 / 0)()
        self.assertIs(self.manager.quantization_state, outside)

    def test_a_version_that_keeps_it_elsewhere_is_left_as_it_is(self):
        del self.manager.quantization_state
        self.assertEqual(Fp8State(used=True).of(lambda: 1)(), 1)
        self.assertFalse(hasattr(self.manager, "quantization_state"))


class WithoutFp8Test(unittest.TestCase):
    def test_imports_nothing(self):
        with mock.patch.dict(sys.modules, {"transformer_engine": None}):
            self.assertEqual(Fp8State(used=False).of(lambda: 1)(), 1)


if __name__ == "__main__":
    unittest.main()
