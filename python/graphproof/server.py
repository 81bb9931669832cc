"""An import server: it imports the packages of a subject once and forks the ranks.

graphproof.starter starts one for the ranks of a batch. `python -m graphproof.server MODULE...`
serves requests instead: it reads one JSON object a line from standard input, {"arguments": [...],
"environment": {...}}, forks a process that runs the rank program with them, and answers {"pid": N}
at once and {"pid": N, "code": N} when it has ended.

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
import signal
import sys

from graphproof.message import Error
from graphproof.rank import main as run_rank
from graphproof.rank import set_defaults

CUDA_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED
PR_SET_PDEATHSIG = 1
CANNOT_START = 127
POLL_S = 0.02


def import_all(modules: list) -> None:
    """Imports modules as a rank does, but without asking for GPUs through CUDA, which would
    initialise it."""
    set_defaults()
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    for module in modules:
        importlib.import_module(module)


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


def end_with(parent: int) -> None:
    """Has this process, which `parent` has forked, end with it. Not reached if it has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(CANNOT_START)


def fork_rank(arguments: list, environment: dict) -> int:
    """Forks a rank with variables besides those of this process, and returns its process id. The
    rank ends with this process. Error if this process must not fork."""
    require_forkable()
    sys.stdout.flush()
    sys.stderr.flush()
    parent, pid = os.getpid(), os.fork()
    if pid != 0:
        return pid
    code = 6
    try:
        end_with(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.environ.update(environment)
        code = run_rank(arguments)
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
                    request = json.loads(line)
                    pid = fork_rank(request["arguments"], request.get("environment", {}))
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
    import_all(modules)
    return serve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
