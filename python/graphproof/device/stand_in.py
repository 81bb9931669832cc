"""A stand-in for CUDA graphs on CPU tensors: it records operators and runs them again.

It exists to test this package without a GPU: arms, evidence, subjects and faults. It says nothing
about CUDA, so the evidence names it, and no case that used it can pass (kind `unobserved`).

What it shares with a CUDA graph: a capture runs nothing that lasts, memory of others is kept by
address and not alive, host numbers are frozen, results land where the capture put them, and
operators that wait for the device are refused.
"""

import contextlib
import itertools

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from graphproof.device.storages import Made, Storages, WeakStorage, has_storage, tensors_in

UNWRITTEN = 0xA5  # the byte of memory that a capture made and no replay has written

CAPTURE_REFUSED = 900  # cudaErrorStreamCaptureUnsupported

# Operators that need a value on the host, which CUDA refuses in a capture.
HOST_OPERATORS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero",
                  "_unique2", "unique_consecutive", "unique_dim", "bincount")


class CaptureRefused(RuntimeError):
    """An operator that no capture can hold."""

    def __init__(self, operator: str):
        super().__init__("CUDA error: operation not permitted when stream is capturing "
                         f"(stand-in, {operator})")
        self.error_code = CAPTURE_REFUSED


class HostOperators(TorchDispatchMode):
    """Runs operators, and calls note() for those for which a host would wait for a device."""

    def __init__(self, note):
        super().__init__()
        self._note = note

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function._schema.name.removeprefix("aten::") in HOST_OPERATORS:
            self._note()
        return function(*args, **(kwargs or {}))


class _External:
    """A tensor over memory that the graph does not own."""

    def __init__(self, tensor: torch.Tensor, block: WeakStorage):
        self.block, self.dtype = block, tensor.dtype
        self.shape, self.stride = tensor.shape, tensor.stride()
        self.offset = tensor.storage_offset()

    def tensor(self) -> torch.Tensor:
        storage = self.block.storage()
        if storage is None:
            # The memory has another owner now. Any content is possible; NaN bytes show.
            storage = torch.UntypedStorage(self.block.size)
            storage.fill_(0xFF)
        with torch.no_grad():
            return torch.empty(0, dtype=self.dtype).set_(storage, self.offset, self.shape,
                                                         self.stride)


class _Recorder(TorchDispatchMode):
    """Runs and records operators. Undoes what they did to memory that is not the graph's."""

    def __init__(self, pool: "Pool"):
        super().__init__()
        self.storages = Storages(pool.made)
        self._made_before = set(pool.made)
        self.pool, self.calls, self._saved, self.refused = pool, [], {}, None

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function._schema.name.removeprefix("aten::")
        if name in HOST_OPERATORS:
            self.refused = function._schema.name
            raise CaptureRefused(self.refused)
        inputs = tensors_in(args, kwargs)
        if name == "lift_fresh":
            # A constant that the captured code makes itself.
            self.storages.saw_outputs(inputs)
            self.pool.keep(inputs)
            self._made_before.update(t.untyped_storage()._cdata for t in inputs)
        self.storages.saw_inputs(inputs)
        # The schemas of collectives do not say which of their tensors they write.
        if function._schema.is_mutable or function.namespace == "c10d":
            for tensor in inputs:
                self._save(tensor)
        result = function(*args, **kwargs)
        outputs = tensors_in(result)
        self.storages.saw_outputs(outputs)
        self.pool.keep(outputs)
        if function.namespace != "profiler":  # marks of the host, which no graph holds
            frozen = [self._frozen(args), self._frozen(kwargs), self._frozen(outputs)]
            # Most operators use nothing but what the capture made, which needs no look at each
            # replay.
            self.calls.append((function, *frozen, _has_external(frozen)))
        return result

    def _save(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage() if has_storage(tensor) else None
        if storage is not None and storage._cdata in self.storages.external \
                and storage._cdata not in self._saved:
            self._saved[storage._cdata] = storage.clone()

    def _frozen(self, value):
        def freeze(leaf):
            if isinstance(leaf, torch.Tensor) and has_storage(leaf):
                block = self.storages.external.get(leaf.untyped_storage()._cdata)
                return leaf.detach() if block is None else _External(leaf, block)
            return leaf
        return _mapped(freeze, value)

    def undo(self) -> None:
        for key, saved in self._saved.items():
            storage = self.storages.external[key].storage()
            if storage is not None:
                storage.copy_(saved)
        # A capture computes nothing: what it made holds no results before the first replay.
        for key in self.storages.made.keys() - self._made_before:
            self.pool.storage(key).fill_(UNWRITTEN)


class Pool:
    """The memory that captures made, kept as long as a graph of the pool lives."""

    numbers = itertools.count(1)

    def __init__(self):
        self.id = (0, next(Pool.numbers))
        self.made, self._kept = Made(), {}

    def keep(self, tensors) -> None:
        for tensor in tensors:
            if has_storage(tensor):
                storage = tensor.untyped_storage()
                if storage._cdata in self.made:
                    self._kept[storage._cdata] = storage

    def storage(self, key: int) -> torch.UntypedStorage:
        return self._kept[key]

    def bytes(self) -> int:
        return sum(storage.nbytes() for storage in self._kept.values())


_pools = {}  # id -> (Pool, number of graphs)


def pool_bytes() -> int:
    """Bytes in all pools that a graph still uses."""
    # The garbage collector may run in between and end graphs, whose pools go then.
    return sum(pool.bytes() for pool, graphs in list(_pools.values()) if graphs)


class StandInGraph:
    """The methods of torch.cuda.CUDAGraph over recorded operators. Used from one thread."""

    current = None  # the graph that is being captured

    def __init__(self, keep_graph: bool = False):
        self._recorder = self._pool = self._storages = None
        self._calls, self._generators = [], [torch.default_generator]
        self.freezes_generators = False  # a planted fault: replays draw the capture's numbers

    def register_generator_state(self, generator) -> None:
        self._generators.append(generator)

    def capture_begin(self, pool=None, capture_error_mode="global") -> None:
        if StandInGraph.current is not None:
            raise CaptureRefused("capture_begin in a capture")
        if pool is None or pool not in _pools:
            fresh = Pool()
            pool = fresh.id if pool is None else pool
            _pools[pool] = (fresh, 0)
        self._id = pool
        self._pool, graphs = _pools[pool]
        _pools[pool] = (self._pool, graphs + 1)
        self._states = [generator.get_state() for generator in self._generators]
        self._recorder = _Recorder(self._pool)
        StandInGraph.current = self
        self._recorder.__enter__()

    def capture_end(self) -> None:
        recorder, StandInGraph.current = self._recorder, None
        if recorder is None:
            raise RuntimeError("capture_end without capture_begin")
        self._recorder = None
        recorder.__exit__(None, None, None)
        recorder.undo()
        for generator, state in zip(self._generators, self._states):
            generator.set_state(state)
        if recorder.refused is not None:
            raise CaptureRefused(recorder.refused)
        self._calls, self._storages = recorder.calls, recorder.storages

    def instantiate(self) -> None:
        """Nothing to do: the recorded operators are the executable."""

    def replay(self) -> None:
        if not self._calls:
            raise RuntimeError("replay of a graph without a capture")
        if self.freezes_generators:
            for generator, state in zip(self._generators, self._states):
                generator.set_state(state)
        # Below autograd and version counters, as a launch is.
        with torch.no_grad(), torch._C._AutoDispatchBelowADInplaceOrView():
            for function, args, kwargs, outputs, external in self._calls:
                if external:
                    args, kwargs, outputs = _thawed(args), _thawed(kwargs), _thawed(outputs)
                run_again(function, args, kwargs, outputs)

    def reset(self) -> None:
        if self._pool is not None:
            pool, graphs = _pools[self._id]
            if graphs == 1:
                del _pools[self._id]
            else:
                _pools[self._id] = (pool, graphs - 1)
        self._calls, self._pool, self._storages = [], None, None

    def __del__(self):
        if self._pool is not None:
            StandInGraph.reset(self)

    def pool(self):
        return self._id

    def storages(self) -> Storages:
        return self._storages

    def names(self) -> list:
        """The recorded operators in order."""
        return [function._schema.name for function, *_ in self._calls]


def _mapped(change, value):
    """The arguments of an operator with `change` applied to what is no tuple, list or dict."""
    if isinstance(value, list):
        return [_mapped(change, one) for one in value]
    if isinstance(value, tuple):
        return tuple([_mapped(change, one) for one in value])
    if isinstance(value, dict):
        return {key: _mapped(change, one) for key, one in value.items()}
    return change(value)


def _thawed(value):
    return _mapped(lambda leaf: leaf.tensor() if isinstance(leaf, _External) else leaf, value)


def _has_external(value) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_external(one) for one in value)
    if isinstance(value, dict):
        return any(_has_external(one) for one in value.values())
    return isinstance(value, _External)


def run_again(function, args, kwargs, outputs) -> None:
    """Runs a recorded operator and puts its results where the capture had put them. `outputs`: the
    tensors among them."""
    result = function(*args, **kwargs)
    if function.namespace == "c10d":
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.ScriptObject) and "c10d.Work" in str(leaf._type()):
                leaf.wait()
    for old, new in zip(outputs, tensors_in(result)):
        if has_storage(old) and old.untyped_storage().data_ptr() != \
                new.untyped_storage().data_ptr():
            old.copy_(new)


def _refused_in_a_capture(function, name: str):
    """`function`, which reads or sets a generator's state, as a capture refuses it."""
    def checked(*args, **kwargs):
        if StandInGraph.current is not None:
            StandInGraph.current._recorder.refused = name
            raise CaptureRefused(name)
        return function(*args, **kwargs)
    return checked


def _wait_past_recorders(wait):
    """`wait` of the work of a collective, some of which copy results only then. A recorder does not
    see that: a replay runs the collective and waits for it, and what was copied from has gone."""
    def waited(*args, **kwargs):
        with torch._C._DisableTorchDispatch():
            return wait(*args, **kwargs)
    waited.past_recorders = True
    return waited


class _Stream:
    """Everything runs at once and in order, so a stream is nothing but a name."""

    cuda_stream = 0

    def __init__(self, *args, **kwargs):
        pass

    def wait_stream(self, stream) -> None:
        pass

    def synchronize(self) -> None:
        pass


def install() -> None:
    """Puts the stand-in into torch.cuda of this process, so that PyTorch's own Python for graphs
    (torch.cuda.graph, make_graphed_callables, capturable optimizers) runs on CPU tensors."""
    cuda, graphs = torch.cuda, torch.cuda.graphs
    cuda.CUDAGraph = graphs.CUDAGraph = StandInGraph
    cuda.Stream = _Stream
    cuda.stream = lambda stream: contextlib.nullcontext()
    cuda.current_stream = lambda device=None: _Stream()
    cuda.synchronize = lambda device=None: None
    cuda.empty_cache = lambda: None

    def handle():
        pool = Pool()
        _pools[pool.id] = (pool, 0)
        return pool.id

    cuda.graph_pool_handle = graphs.graph_pool_handle = handle
    cuda.is_current_stream_capturing = graphs.is_current_stream_capturing = \
        lambda: StandInGraph.current is not None
    torch._C._host_emptyCache = lambda: None
    if torch.distributed.is_available() and \
            not hasattr(torch.distributed.Work.wait, "past_recorders"):
        torch.distributed.Work.wait = _wait_past_recorders(torch.distributed.Work.wait)
    for name in ("get_rng_state", "set_rng_state"):
        function = _refused_in_a_capture(getattr(torch.random, name), name)
        setattr(torch, name, function)
        setattr(torch.random, name, function)
    # PyTorch lets `capturable` optimizers run on devices with graphs alone.
    from torch.optim import adam
    devices = adam._get_capturable_supported_devices
    adam._get_capturable_supported_devices = lambda *args, **kwargs: [
        *devices(*args, **kwargs), "cpu"]
