"""Graphs that tell an observer when they are captured, replayed and destroyed.

The class takes the place of torch.cuda.CUDAGraph for the life of the process, so that everything
that is written in Python and captures through PyTorch goes through it: torch.cuda.graph,
make_graphed_callables, Transformer Engine and Megatron-Core.
"""

import time
import weakref
from dataclasses import dataclass, field

import torch

from graphproof.device.storages import Made, SeenOperands


@dataclass
class GraphInfo:
    """What is known of one captured graph. Bytes and milliseconds."""
    index: int
    mode: str
    pool: tuple
    ms: float = 0.0
    nodes: int = 0
    census: dict = field(default_factory=dict)
    signature: str = ""
    pool_bytes: int = 0
    generators: int = 0


class Observer:
    """Told about graphs. The functions run between captures, never inside one."""

    def before_capture(self, index: int) -> None: ...
    def after_capture(self, info: GraphInfo) -> None: ...
    def failed_capture(self, info: GraphInfo, error: BaseException) -> None: ...
    def before_replay(self, graph) -> None: ...
    def after_replay(self, graph) -> None: ...


class Observed:
    """The observer of this process, and every live graph. One at a time: arms run in turn."""
    observer: Observer | None = None
    # Whether the operands of captures are noted. While they are, PyTorch's compiler runs eagerly.
    notes_operands = True
    live = weakref.WeakSet()
    made = weakref.WeakValueDictionary()  # pool -> Made, which the graphs of the pool keep
    captures = 0        # begun in this process
    launches = 0        # in this process


def default_generator():
    """The generator that PyTorch registers with every graph."""
    of_gpus = torch.cuda.default_generators  # empty until CUDA is in use, and with the stand-in
    return of_gpus[torch.cuda.current_device()] if of_gpus else torch.default_generator


def observed_class(base, census_of, pool_bytes, mark):
    """A subclass of `base`, torch.cuda.CUDAGraph or its stand-in, that reports to Observed.

    `census_of(graph)` returns (nodes, census, signature); `pool_bytes()` the bytes of all pools;
    `mark(earlier)` puts a mark behind the work of the current stream, in the place of an earlier
    one if that is not None.
    """

    class ObservedGraph(base):
        def __init__(self, keep_graph: bool = False):
            # The template graph is kept, because its nodes can only be read from it.
            super().__init__(True)
            self.info, self.replays = None, 0
            # The default generator is registered by PyTorch, and may be by the program again.
            self._operands, self._registered = None, {default_generator()._cdata}
            self._begun = self._bytes_before = 0
            self._mark = None  # behind the latest launch

        def register_generator_state(self, generator):
            self._registered.add(generator._cdata)
            return super().register_generator_state(generator)

        def capture_begin(self, pool=None, capture_error_mode="global"):
            index = Observed.captures
            Observed.captures += 1
            if Observed.observer is not None:
                Observed.observer.before_capture(index)
            self._bytes_before = pool_bytes()
            self.info = GraphInfo(index=index, mode=capture_error_mode, pool=(),
                                  generators=len(self._registered))
            self._begun = time.monotonic()
            super().capture_begin(pool=pool, capture_error_mode=capture_error_mode)
            if Observed.notes_operands and not hasattr(self, "storages"):
                self._operands = SeenOperands(
                    Made() if pool is None else Observed.made.setdefault(tuple(pool), Made()))
                self._operands.__enter__()

        def capture_end(self):
            info = self.info
            if self._operands is not None:
                self._operands.__exit__(None, None, None)
            try:
                super().capture_end()
                if hasattr(base, "raw_cuda_graph"):
                    super().instantiate()
            except BaseException as error:
                info.ms = (time.monotonic() - self._begun) * 1000
                if Observed.observer is not None:
                    Observed.observer.failed_capture(info, error)
                raise
            info.ms = (time.monotonic() - self._begun) * 1000
            info.pool = tuple(self.pool())
            if self._operands is not None:
                Observed.made[info.pool] = self._operands.storages.made
            info.nodes, info.census, info.signature = census_of(self)
            info.pool_bytes = max(0, pool_bytes() - self._bytes_before)
            Observed.live.add(self)
            if Observed.observer is not None:
                Observed.observer.after_capture(info)

        def replay(self):
            if Observed.observer is not None:
                Observed.observer.before_replay(self)
            Observed.launches += 1
            self.replays += 1
            super().replay()
            self._mark = mark(self._mark)
            if Observed.observer is not None:
                Observed.observer.after_replay(self)

        def reset(self):
            Observed.live.discard(self)
            super().reset()

        def running(self) -> bool:
            """Whether the device still runs the latest launch. Does not wait for it."""
            return self._mark is not None and not self._mark.query()

        def operands(self):
            """The Storages that the capture used, or None if it was not seen."""
            if hasattr(self, "storages"):
                return self.storages()
            return self._operands.storages if self._operands is not None else None

    ObservedGraph.__name__ = ObservedGraph.__qualname__ = "CUDAGraph"
    return ObservedGraph


def install(base, census_of, pool_bytes, mark) -> None:
    """Puts the observed class into torch.cuda of this process."""
    made = observed_class(base, census_of, pool_bytes, mark)
    torch.cuda.CUDAGraph = torch.cuda.graphs.CUDAGraph = made
