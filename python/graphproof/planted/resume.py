"""Faults of a job that resumes from a checkpoint in a new process."""

import torch

from graphproof import case_run
from graphproof.arms import schedules
from graphproof.arms.arm import Arm, StepInput


def resume_without_optimizer_steps() -> None:
    load = torch.optim.Optimizer.load_state_dict

    def forgetting(optimizer, states):
        load(optimizer, states)
        for state in optimizer.state.values():
            state["step"].zero_()

    torch.optim.Optimizer.load_state_dict = forgetting


def resume_without_loss_scale() -> None:
    torch.amp.GradScaler.load_state_dict = lambda scaler, states: None


def resume_without_generators() -> None:
    restore = Arm.restore

    def drawing_anew(arm, folder):
        states = arm._states
        next_step = restore(arm, folder)
        arm._states = states
        return next_step

    Arm.restore = drawing_anew


def resume_without_step() -> None:
    restore = Arm.restore

    def from_the_beginning(arm, folder):
        restore(arm, folder)
        return 0

    Arm.restore = from_the_beginning


def capture_ahead_of_loading() -> None:
    restore = Arm.restore

    def captured_first(arm, folder):
        for index in range(arm.parts.case.first_replay + 1):
            arm.run(index, StepInput(arm.subject.batch(index), "fresh"))
        return restore(arm, folder)

    Arm.restore = captured_first


def resume_in_same_process() -> None:
    case_run.Resumption.run = lambda resumption, parts: schedules.resume_from_files(
        parts, resumption.folder)
