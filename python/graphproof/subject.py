"""What a subject is: a model with its step, its inputs, and its own means of capture.

A file of the user defines `build(case) -> Subject`. It is called once for each arm and must build
the same model each time; the seeds of Python and PyTorch are set before each call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from graphproof.message import Error


def local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's part of a distributed tensor; any other tensor as it is."""
    return getattr(tensor, "_local_tensor", tensor)


def gradient_of(parameter: torch.Tensor) -> torch.Tensor | None:
    """The gradient that the optimizer reads: Megatron-Core adds them up in `main_grad`."""
    gradient = getattr(parameter, "main_grad", None)
    gradient = parameter.grad if gradient is None else gradient
    return None if gradient is None else local(gradient)


@dataclass
class Captured:
    """A captured step, as capture() returns it.

    `step(batch)` runs a step with the graphs and returns the losses, one for each microbatch; the
    caller keeps them, so they must not be the memory that the next replay writes.
    `inputs` and `losses` are the static tensors of the graphs, as far as there are any. `leave()`
    has the model run without the graphs until the next call of `step`, which takes them again.
    """
    step: Callable
    inputs: dict = field(default_factory=dict)  # name -> static tensor
    losses: torch.Tensor | None = None
    close: Callable = lambda: None
    leave: Callable = lambda: None


@dataclass
class Subject:
    """A model under test. All tensors are on the case's device.

    model      -- the module; its parameters with gradients are compared after each step.
    step       -- step(batch) -> losses, a tensor with one loss for each microbatch. It sets the
                  gradients to zero at its beginning, so that they can be read after it, and ends
                  with the optimizer.
    batch      -- batch(step) -> any nest of tensors: the inputs of step number `step`. The same
                  number gives the same values.
    optimizer  -- an optimizer of torch.optim, or None for inference.
    layers     -- the modules whose forward passes are counted: as many as axis `layers` says.
    capture    -- capture(step, batch) -> Captured, or None for one graph of the whole step.
    captured_calls -- the names of the functions whose calls in a step are what capture() captures,
                  if it is not None: waits for the device in them are told ahead of the capture.
    graphs     -- the names of the graphs in the order of their capture, if it is not None.
    captured_modules -- for each graph the module that it captures on its own, or None.
    generators -- generators() -> {name: torch.Generator} of the device, besides the default one,
                  that the step draws from. capture() has to register them with its graphs.
    skipped    -- how many steps the optimizer has left out so far, as a loss scaler does.
    loss_scale -- loss_scale() -> the factor of the next backward pass, or None without one.
    used_scale -- used_scale() -> the factor that the last backward pass found in device memory.
    unobserved -- check -> why the subject leaves no evidence for it.
    gradient_read -- gradient_read(parameter) -> what the optimizer read as the gradient of one of
                  its parameters in the last step, for optimizers of copies of the parameters.
    keeps_masks -- whether the masks of torch.nn.Dropout can be kept, for which its forward is
                  replaced.
    exclusive  -- whether the graphs of one arm must go before another arm captures, because the
                  library keeps them in one place of the process.
    counts_compiled -- whether layers are counted in compiled code too. Not where the compiler
                  captures: it makes no graph of code that changes tensors which are not its own.
    layer_methods -- the methods of a layer that run it forward. Other than forward where a library
                  captures another one.
    warming_up -- warming_up() -> whether a library runs layers now to warm up, within a step.
    empty_graphs -- whether the library captures graphs without any work, which it never launches:
                  they keep a memory pool alive between its captures.
    captures_alike -- whether every rank captures as many graphs as the others, so that they can
                  vote after each. Otherwise they vote once, after the step that captured.
    compared_buffers -- compared_buffers(name) -> whether a buffer of the model is compared with the
                  results of a step. Not where a library keeps memory that it does not initialise.
    evaluate   -- evaluate(batch) -> losses, without dropout and gradients, for axis schedule
                  train-eval-train.
    capture_evaluation -- capture_evaluation(batch) -> Captured of it, for impl full_iteration.
    save, load -- save() -> a checkpoint of parameters, optimizer and loss scale; load(checkpoint)
                  puts it back without moving any tensor, for axis schedule resume.
    checkpoint, restore -- checkpoint(folder) writes files from which restore(folder) puts a subject
                  that was built anew, in another process, where this one was, for axis resume_in.
                  All ranks call both. Without them they are the state_dict of model and optimizer.
    close      -- called once at the end of an arm, after the graphs were dropped.
    """
    model: torch.nn.Module
    step: Callable
    batch: Callable
    optimizer: torch.optim.Optimizer | None = None
    layers: Sequence[torch.nn.Module] = ()
    capture: Callable | None = None
    captured_calls: Sequence[str] = ()
    graphs: Sequence[str] = ("training",)
    captured_modules: dict = field(default_factory=dict)
    generators: Callable = dict
    gradient_read: Callable = gradient_of
    keeps_masks: bool = True
    exclusive: bool = False
    counts_compiled: bool = True
    layer_methods: Sequence[str] = ("forward",)
    warming_up: Callable = lambda: False
    empty_graphs: bool = False
    captures_alike: bool = True
    compared_buffers: Callable = lambda name: True
    evaluate: Callable | None = None
    capture_evaluation: Callable | None = None
    save: Callable | None = None
    load: Callable | None = None
    checkpoint: Callable | None = None
    restore: Callable | None = None
    skipped: Callable = lambda: 0
    loss_scale: Callable = lambda: None
    used_scale: Callable = lambda: 0.0
    unobserved: dict = field(default_factory=dict)
    close: Callable = lambda: None


def checked(subject, case) -> Subject:
    """The subject, if it is one that arms can run. Error, which names what is wrong, otherwise."""
    def refuse(got: str, want: str, next: str):
        raise Error("build(case) returned something that cannot be run", got, want,
                    "the arms of a case are built from it", next)
    if not isinstance(subject, Subject):
        refuse(type(subject).__name__, "a graphproof.Subject", "return Subject(model=..., ...)")
    if not isinstance(subject.model, torch.nn.Module):
        refuse(f"model {type(subject.model).__name__}", "a torch.nn.Module",
               "wrap what you train into a module")
    for name in ("step", "batch"):
        if not callable(getattr(subject, name)):
            refuse(f"{name} {getattr(subject, name)!r}", "a function",
                   f"give Subject the function {name}")
    if len(subject.layers) != case.stage_layers:
        refuse(f"{len(subject.layers)} layers", f"{case.stage_layers}, by axis layers",
               "pass the modules whose forward passes count as layers=[...], and build as many as "
               "case.layers says")
    return subject


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """A distributed tensor gathered from all ranks, which all call this; any other as it is."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def tensors_of(batch, prefix: str = "input") -> list:
    """The tensors of a nest of tuples, lists and dicts: [("input:0.tokens", tensor)]."""
    if isinstance(batch, torch.Tensor):
        return [(prefix, batch)]
    if isinstance(batch, dict):
        items = batch.items()
    elif isinstance(batch, (tuple, list)):
        items = enumerate(batch)
    else:
        return []
    separator = ":" if prefix == "input" else "."
    return [pair for key, value in items
            for pair in tensors_of(value, f"{prefix}{separator}{key}")]


def copied(batch):
    """A nest of the same shape with clones of its tensors."""
    if isinstance(batch, torch.Tensor):
        return batch.clone()
    if isinstance(batch, dict):
        return {key: copied(value) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return type(batch)(copied(value) for value in batch)
    return batch


def copy_into(static, batch) -> None:
    """Copies the tensors of `batch` into those of `static`, which has the same shape."""
    for (name, old), (_, new) in zip(tensors_of(static), tensors_of(batch), strict=True):
        if old.shape != new.shape:
            raise Error(f"{name} of a replayed step", str(tuple(new.shape)),
                        f"{tuple(old.shape)}, as captured", "a graph has fixed shapes",
                        "pad the inputs to one shape")
        old.copy_(new)


def capture_whole_step(step: Callable, batch, mode: str, generators=()) -> Captured:
    """One graph of `step` with static inputs, as PyTorch's guide has it (whole-network capture).
    The warm-up has happened: the arms ran eager steps on the stream of the capture before.
    `generators`: those that the step draws from besides the default one, which PyTorch registers
    by itself."""
    static = copied(batch)
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode=mode):
        losses = step(static)

    def replay(fresh):
        copy_into(static, fresh)
        graph.replay()
        return losses.detach().clone()

    return Captured(step=replay, inputs=dict(tensors_of(static)), losses=losses.detach(),
                    close=graph.reset)
