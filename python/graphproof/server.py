"""An import server: it imports the packages of a subject once and forks the ranks.

`python -m graphproof.server MODULE...` reads one JSON object a line from standard input:
{"arguments": [...], "environment": {...}}, forks a process that runs the rank program with them,
and answers {"pid": N} at once and {"pid": N, "code": N} when it has ended.

What the imports read from the environment (NVTE_*, TORCH_LOGS, TORCHINDUCTOR_*, the allocator) is
fixed by then, so that each set of such variables needs a server of its own. A process that has
threads or CUDA must not fork; the server shows before each fork that it has neither, and refuses
otherwise.
"""

import ctypes
import importlib
import json
import os
import selectors
import sys

from graphproof.message import Error

CUDA_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED
POLL_S = 0.02


def threads() -> int:
    """Threads of this process."""
    return len(os.listdir("/proc/self/task"))


def cuda_is_initialized() -> bool:
    """Whether anything in this process has initialised CUDA. torch.cuda.is_initialized() misses
    libraries that do it past PyTorch."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        if "libcuda.so" not in maps.read():
            return False
    count = ctypes.c_int()
    code = ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))
    return code != CUDA_NOT_INITIALIZED


def require_forkable() -> None:
    """Error if a child of this process could not use the GPU, or could hang in a lock."""
    if threads() != 1 or cuda_is_initialized():
        raise Error("the import server is about to fork",
                    f"{threads()} threads, CUDA {'' if cuda_is_initialized() else 'not '}"
                    "initialised", "one thread and no CUDA",
                    "locks of other threads stay locked in a child, and CUDA does not work there",
                    "start the ranks without the server, and find the import that does this")


def fork_rank(request: dict) -> int:
    """Forks a rank and returns its process id. In the child it does not return."""
    require_forkable()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid != 0:
        return pid
    code = 6
    try:
        os.environ.update(request.get("environment", {}))
        from graphproof.rank import main
        code = main(request["arguments"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Without the exit handlers of the server's imports, which belong to the server.
        os._exit(code)


def _answer(**fields) -> None:
    print(json.dumps(fields), flush=True)


def serve() -> int:
    """Serves until standard input ends and every rank has ended."""
    running, open_input = set(), True
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
    pending = b""
    while open_input or running:
        for _ in selector.select(POLL_S) if open_input else ():
            data = os.read(sys.stdin.fileno(), 1 << 16)
            open_input = bool(data)
            pending += data
            *lines, pending = pending.split(b"\n")
            for line in lines:
                try:
                    pid = fork_rank(json.loads(line))
                    running.add(pid)
                    _answer(pid=pid)
                except (Error, ValueError, KeyError) as error:
                    _answer(error=str(error))
        for pid in list(running):
            ended, status = os.waitpid(pid, 0 if not open_input else os.WNOHANG)
            if ended:
                running.discard(pid)
                _answer(pid=pid, code=os.waitstatus_to_exitcode(status))
    return 0


def main(modules: list) -> int:
    # The check for GPUs through NVML, which makes no CUDA context.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    for module in modules:
        importlib.import_module(module)
    return serve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
