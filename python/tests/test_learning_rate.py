"""The learning rate that an update really used, of PyTorch's optimizers and of fused ones."""

import math
import unittest

import torch

from graphproof.learning_rate import (ADAM, SGD, Chained, adam_steps, effective_rate, is_adam,
                                      schedule_of, set_rate, unknown_update, watched)

STEPS = 6


class FusedAdam(torch.optim.Optimizer):
    """The update of Transformer Engine's optimizer of this name, by PyTorch's operators: the step
    number is the group's, weight decay is decoupled."""

    def __init__(self, params, lr, weight_decay=0.0, adam_w_mode=True, **kept):
        super().__init__(params, {"lr": lr, "bias_correction": True, "betas": (0.9, 0.999),
                                  "eps": 1e-8, "weight_decay": weight_decay})
        self.adam_w_mode, self.master_weights = int(adam_w_mode), False
        self.exp_avg_dtype = self.exp_avg_sq_dtype = torch.float32
        vars(self).update(kept)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            for parameter in group["params"]:
                state, (beta1, beta2) = self.state[parameter], group["betas"]
                for name in ("exp_avg", "exp_avg_sq"):
                    state.setdefault(name, torch.zeros_like(parameter))
                state["exp_avg"].lerp_(parameter.grad, 1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(parameter.grad, parameter.grad,
                                                         value=1 - beta2)
                root = (state["exp_avg_sq"] / (1 - beta2 ** group["step"])).sqrt() + group["eps"]
                update = state["exp_avg"] / (1 - beta1 ** group["step"]) / root
                parameter.sub_((update + group["weight_decay"] * parameter) * group["lr"])


class FusedSGD(torch.optim.SGD):
    """A type of its own, as Transformer Engine's is."""


FusedAdam.__module__ = FusedSGD.__module__ = "transformer_engine.pytorch.optimizers"


def optimizers() -> dict:
    """name -> a function that makes the optimizer."""
    return {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "sgd with decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
        "fused sgd": lambda p: FusedSGD(p, lr=0.1),
        "adam": lambda p: torch.optim.Adam(p, lr=0.001),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.001, weight_decay=0.01),
        "fused adam": lambda p: FusedAdam(p, lr=0.001),
        "fused adam with decay": lambda p: FusedAdam(p, lr=0.001, weight_decay=0.01),
    }


class Watched(unittest.TestCase):
    def test_a_frozen_parameter_is_not_watched_unless_all_are_copies(self):
        frozen, trained = (torch.nn.Parameter(torch.ones(size), size < 4) for size in (8, 2))
        self.assertIs(watched(torch.optim.SGD([frozen, trained], lr=1.0))[0], trained)
        copies = [torch.ones(2), torch.ones(8)]
        self.assertIs(watched(torch.optim.SGD(copies, lr=1.0))[0], copies[1])


class Measured(unittest.TestCase):
    def rates(self, make, used=lambda rate: rate):
        """(the rate that was set, the measured one, its bound) of each step, in which the optimizer
        uses `used(rate)`."""
        torch.manual_seed(1)
        parameter = torch.nn.Parameter(torch.randn(64, 32))
        optimizer = make([parameter])
        for step in range(STEPS):
            rate = schedule_of(optimizer).at(step)
            set_rate(optimizer, used(rate))
            parameter.grad = torch.randn_like(parameter)
            before = parameter.detach().clone()
            optimizer.step()
            yield (rate, *effective_rate(optimizer, before, rate, step + 1))
        if is_adam(optimizer):
            self.assertEqual(adam_steps(optimizer), STEPS)

    def test_the_rate_is_measured_within_its_bound_and_another_one_is_not(self):
        for name, make in optimizers().items():
            self.assertEqual(unknown_update(make([torch.nn.Parameter(torch.ones(2))])), "", name)
            for rate, measured, bound in self.rates(make):
                with self.subTest(optimizer=name, rate=rate):
                    self.assertLessEqual(abs(measured - rate), bound)
                    self.assertLess(bound, 0.01 * rate)
            for rate, measured, bound in self.rates(make, used=lambda rate: 1.05 * rate):
                with self.subTest(optimizer=name, wrong=rate):
                    self.assertGreater(abs(measured - rate), bound)

    def test_parameters_in_bf16_with_small_gradients_show_a_rate_that_another_step_had(self):
        torch.manual_seed(2)
        parameter = torch.nn.Parameter((0.4 * torch.randn(64, 256)).bfloat16())
        for make in (lambda p: torch.optim.SGD(p, lr=0.1),
                     lambda p: torch.optim.SGD(p, lr=0.1, foreach=True)):
            optimizer = make([parameter])
            for set_to, used in ((0.1, 0.1), (0.075, 0.075), (0.075, 0.1)):
                set_rate(optimizer, used)
                parameter.grad = (0.025 * torch.randn(64, 256)).bfloat16()
                before = parameter.detach().clone()
                optimizer.step()
                measured, bound = effective_rate(optimizer, before, set_to, 1)
                self.assertLess(bound, 0.01)
                self.assertEqual(abs(measured - set_to) <= bound, set_to == used)

    def test_a_large_parameter_in_bf16_shows_it_by_fewer_of_its_elements(self):
        torch.manual_seed(5)
        parameter = torch.nn.Parameter((0.02 * torch.randn(2048, 1024)).bfloat16())
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        for used in (0.1, 0.095):
            set_rate(optimizer, used)
            parameter.grad = (0.0002 * torch.randn(2048, 1024)).bfloat16()
            before = parameter.detach().clone()
            optimizer.step()
            measured, bound = effective_rate(optimizer, before, 0.1, 1)
            self.assertLess(bound, 0.005)
            self.assertEqual(abs(measured - 0.1) <= bound, used == 0.1, (measured, bound))

    def test_chained_optimizers_are_measured_as_one(self):
        torch.manual_seed(3)
        small, large = (torch.nn.Parameter(torch.randn(n, 8)) for n in (4, 64))
        for kind in (torch.optim.SGD, torch.optim.Adam):
            chained = Chained([kind([small], lr=0.1), kind([large], lr=0.1)])
            self.assertEqual(unknown_update(chained), "")
            self.assertIs(watched(chained)[0], large)
            set_rate(chained, 0.05)
            before = large.detach().clone()
            for member in chained.members:
                for parameter in member.param_groups[0]["params"]:
                    parameter.grad = torch.randn_like(parameter)
                member.step()
            measured, bound = effective_rate(chained, before, 0.05, 1)
            self.assertLessEqual(abs(measured - 0.05), bound)
            self.assertLess(bound, 0.001)
            self.assertEqual(is_adam(chained), kind is torch.optim.Adam)
            self.assertEqual(len(chained.state), 2 if is_adam(chained) else 0)

    def test_adam_in_bf16_shows_a_rate_that_another_step_had(self):
        torch.manual_seed(4)
        parameter = torch.nn.Parameter((0.4 * torch.randn(64, 256)).bfloat16())
        optimizer = torch.optim.Adam([parameter], lr=torch.tensor(0.001), foreach=False)
        for step, (set_to, used) in enumerate(((0.001, 0.001), (0.00095, 0.00095),
                                               (0.0009, 0.0009), (0.00075, 0.0009))):
            set_rate(optimizer, used)
            parameter.grad = (0.025 * torch.randn(64, 256)).bfloat16()
            before = parameter.detach().clone()
            optimizer.step()
            measured, bound = effective_rate(optimizer, before, set_to, step + 1)
            self.assertEqual(abs(measured - set_to) <= bound, set_to == used,
                             (step, set_to, measured, bound))
            if step > 0:
                self.assertLess(bound, 0.00015)

    def test_an_optimizer_of_copies_reads_the_gradient_of_the_parameter(self):
        of_model = torch.nn.Parameter(torch.zeros(8, 8, dtype=torch.bfloat16))
        of_model.main_grad = torch.randn(8, 8)
        copy = torch.nn.Parameter(of_model.detach().float())
        optimizer = FusedSGD([copy], lr=0.1)
        copy.grad = of_model.main_grad
        before = copy.detach().clone()
        optimizer.step()
        copy.grad = None  # as Megatron-Core does
        measured, bound = effective_rate(optimizer, before, 0.1, 1, lambda _: of_model.main_grad)
        self.assertLessEqual(abs(measured - 0.1), bound)

    def test_a_gradient_of_zeros_says_nothing(self):
        parameter = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        parameter.grad = torch.zeros(4)
        self.assertTrue(all(math.isnan(value) for value in
                            effective_rate(optimizer, torch.ones(4), 0.1, 1)))


class Unknown(unittest.TestCase):
    def test_what_is_not_computed_again_is_told(self):
        p = [torch.nn.Parameter(torch.ones(2))]
        for optimizer, why in (
                (None, "no optimizer"),
                (torch.optim.RMSprop(p), "RMSprop is not known"),
                (torch.optim.SGD(p, lr=0.1, momentum=0.9), "momentum"),
                (FusedSGD(p, lr=0.1, momentum=0.9), "momentum"),
                (torch.optim.Adam(p, amsgrad=True), "amsgrad"),
                (FusedAdam(p, 0.1, master_weights=True), "copies of the parameters"),
                (FusedAdam(p, 0.1, exp_avg_dtype=torch.bfloat16), "smaller type"),
                (FusedAdam(p, 0.1, weight_decay=0.1, adam_w_mode=False), "in the gradient")):
            self.assertIn(why, unknown_update(optimizer))

    def test_a_class_of_another_package_is_not_taken_for_one_that_is_known(self):
        class FusedSGD(torch.optim.SGD):
            pass
        optimizer = FusedSGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
        self.assertIn("FusedSGD is not known", unknown_update(optimizer))

    def test_schedules_and_the_watched_parameter(self):
        small, large = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
        optimizer = FusedAdam([small, large], 0.1)
        self.assertEqual(schedule_of(optimizer), ADAM)
        self.assertEqual(schedule_of(FusedSGD([small], lr=0.1)), SGD)
        self.assertIs(watched(optimizer)[0], large)


if __name__ == "__main__":
    unittest.main()
