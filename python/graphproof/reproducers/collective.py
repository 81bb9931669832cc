"""One collective, eager and from a CUDA graph, with PyTorch and NCCL alone.

    torchrun --nproc-per-node N reproducer.py                 # N GPUs
    torchrun --nproc-per-node N reproducer.py --device cpu    # without a GPU: gloo, eager only

Every step has new inputs of small whole numbers, so the result is known exactly. Exit code 0: every
result was right. 1: one was wrong. 124: it did not end within a minute (a hang; the stacks are
printed). torchrun turns every failure into 1.

Where the buffers are matters: NCCL registers a buffer only if one physical allocation backs all of
it, and the expandable segments of PyTorch consist of pieces of 20 MiB. placement "symmetric" puts
the buffers of every rank at the border between two pieces; "per_rank" lets those of odd ranks
straddle it.
"""

import argparse
import ctypes
import faulthandler
import json
import os
import sys
import threading

CASE = json.loads(r"""{}""")
# Some of these are read when CUDA or NCCL is loaded.
os.environ.update(CASE.get("environment", {}))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

HANG_S = 60
PIECE = 20 << 20
FLOAT, SUM = 7, 0  # ncclFloat32, ncclSum


def aligned(count):
    return (count + 511) // 512 * 512


class Nccl:
    """NCCL by its own C functions, as out-of-place calls of torch.distributed do not exist."""

    class Id(ctypes.Structure):
        _fields_ = [("internal", ctypes.c_char * 128)]

    def __init__(self, rank, ranks):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            loaded = {line.split()[-1] for line in maps if "libnccl.so" in line}
        self.library = ctypes.CDLL(min(loaded) if loaded else "libnccl.so.2")
        unique = Nccl.Id()
        if rank == 0:
            self.call("ncclGetUniqueId", ctypes.byref(unique))
        shared = [ctypes.string_at(ctypes.byref(unique), ctypes.sizeof(unique))]
        dist.broadcast_object_list(shared, src=0)
        ctypes.memmove(ctypes.byref(unique), shared[0], len(shared[0]))
        self.communicator = ctypes.c_void_p()
        self.call("ncclCommInitRank", ctypes.byref(self.communicator), ranks, unique, rank)
        self.rank, self.ranks = rank, ranks

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} failed with {code}")

    def run(self, kind, out, x):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if kind == "all_reduce_in_place":
            out.copy_(x)
            x = out
        source, target = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr())
        size, last = ctypes.c_size_t, (self.communicator, stream)
        if kind in ("all_reduce", "all_reduce_in_place"):
            self.call("ncclAllReduce", source, target, size(x.numel()), FLOAT, SUM, *last)
        elif kind == "all_gather":
            self.call("ncclAllGather", source, target, size(x.numel()), FLOAT, *last)
        elif kind == "reduce_scatter":
            self.call("ncclReduceScatter", source, target, size(out.numel()), FLOAT, SUM, *last)
        else:
            self.call("ncclGroupStart")
            self.call("ncclSend", source, size(x.numel()), FLOAT, (self.rank + 1) % self.ranks,
                      *last)
            self.call("ncclRecv", target, size(out.numel()), FLOAT, (self.rank - 1) % self.ranks,
                      *last)
            self.call("ncclGroupEnd")


class Distributed:
    """The same by torch.distributed."""

    def __init__(self, rank, ranks):
        self.rank, self.ranks = rank, ranks

    def run(self, kind, out, x):
        if kind in ("all_reduce", "all_reduce_in_place"):
            out.copy_(x)
            dist.all_reduce(out)
        elif kind == "all_gather":
            dist.all_gather_into_tensor(out, x)
        elif kind == "reduce_scatter":
            dist.reduce_scatter_tensor(out, x)
        else:
            for work in dist.batch_isend_irecv(
                    [dist.P2POp(dist.isend, x, (self.rank + 1) % self.ranks),
                     dist.P2POp(dist.irecv, out, (self.rank - 1) % self.ranks)]):
                work.wait()


class Buffers:
    """Input and result of one rank, views of one allocation."""

    def __init__(self, device, rank, ranks):
        whole, kind = CASE["collective_bytes"], CASE["collective"]
        part = whole // ranks
        piece = PIECE if device == "cuda" else aligned(whole)
        arena = torch.empty(5 * piece // 4, device=device)
        first = self.to_border(arena.data_ptr()) if device == "cuda" else 0
        across = CASE["placement"] == "per_rank" and rank % 2 == 1

        def place(size, border):
            at = first + border * piece + (piece - aligned(size // 2) if across else 0)
            return arena.narrow(0, at // 4, size // 4)

        self.x = place(part if kind == "all_gather" else whole, 0)
        self.out = place(part if kind == "reduce_scatter" else whole, 2)

    @staticmethod
    def to_border(address):
        """Bytes from `address` to the end of its physical allocation, if that is a piece."""
        begin, size = ctypes.c_uint64(), ctypes.c_size_t()
        code = ctypes.CDLL("libcuda.so.1").cuMemGetAddressRange_v2(
            ctypes.byref(begin), ctypes.byref(size), ctypes.c_uint64(address))
        if code != 0:
            raise RuntimeError(f"cuMemGetAddressRange failed with {code}")
        rest = begin.value + size.value - address
        return rest if rest <= PIECE else 0


def values(rank, step, count, device):
    counts = torch.arange(count, device=device)
    return ((counts * 7 + 131 * rank + 17 * step) % 251).float()


def expected(kind, rank, ranks, step, x, out):
    def of(who):
        return values(who, step, x.numel(), x.device)

    if kind == "all_gather":
        return torch.cat([of(who) for who in range(ranks)])
    if kind == "send_recv":
        return of((rank - 1) % ranks)
    total = sum(of(who) for who in range(ranks))
    if kind == "reduce_scatter":
        return total[rank * out.numel():(rank + 1) * out.numel()]
    return total


def run_arm(name, communication, device, rank, ranks):
    """All steps; with name "graph" those after the warm-up are replays. Whether all were right."""
    kind, buffers, graph, right = CASE["collective"], Buffers(device, rank, ranks), None, True
    for step in range(CASE["steps"]):
        print(f"rank {rank} {name} step {step}", flush=True)
        buffers.x.copy_(values(rank, step, buffers.x.numel(), device))
        if name == "graph" and step >= CASE["warmup_steps"]:
            if graph is None:
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=torch.cuda.current_stream(),
                                      capture_error_mode=CASE["capture_mode"]):
                    communication.run(kind, buffers.out, buffers.x)
            buffers.out.fill_(float("nan"))
            graph.replay()
        else:
            communication.run(kind, buffers.out, buffers.x)
        if device == "cuda":
            torch.cuda.synchronize()
        want = expected(kind, rank, ranks, step, buffers.x, buffers.out)
        if not torch.equal(buffers.out, want):
            right = False
            wrong = (buffers.out != want).nonzero().flatten()
            first = wrong[0].item()
            print(f"rank {rank} {name} step {step}: {wrong.numel()} elements are wrong, element "
                  f"{first} is {buffers.out[first].item()}, want {want[first].item()}", flush=True)
    if graph is not None:
        graph.reset()
    return right


def watch_for_hang(rank):
    def end():
        faulthandler.dump_traceback(all_threads=True)
        print(f"hang: rank {rank} did not end within {HANG_S} s", file=sys.stderr, flush=True)
        os._exit(124)

    timer = threading.Timer(HANG_S, end)
    timer.daemon = True
    timer.start()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = parser.parse_args().device
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) != CASE["dp"]:
        sys.exit(f"the case has {CASE['dp']} ranks: "
                 f"torchrun --nproc-per-node {CASE['dp']} {sys.argv[0]}")
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    watch_for_hang(rank)
    direct = device == "cuda" and CASE["comm"] == "nccl"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo" if direct or device == "cpu" else "nccl")
    communication = (Nccl if direct else Distributed)(rank, ranks)
    arms = ["eager", "graph"] if device == "cuda" and CASE["impl"] != "none" else ["eager"]
    if device == "cuda":
        torch.cuda.set_stream(torch.cuda.Stream())
    right = all([run_arm(name, communication, device, rank, ranks) for name in arms])
    print(f"rank {rank}: {'every result was right' if right else 'a result was wrong'}",
          flush=True)
    if "graph" not in arms:
        print("no graph was captured: this says nothing about CUDA graphs")
    sys.stdout.flush()
    if direct:
        communication.call("ncclCommDestroy", communication.communicator)
    dist.destroy_process_group()
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
