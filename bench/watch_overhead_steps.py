"""The program that bench/watch_overhead measures: training steps of about 10 ms with 200 launches.

Protocol: prints `ready`, then for each line `N` of standard input runs N steps and prints their
seconds and the seconds until they were enqueued. Ends at the end of its input.
"""
import sys
import time

import torch

KERNELS, REPLAYS, STEP_S = 148, 50, 0.010  # the optimizer's step adds two launches


def steps_of(elements):
    """The step, as a function, over vectors of this many elements."""
    x = torch.ones(elements, device="cuda")
    weight = torch.nn.Parameter(torch.ones(1024, device="cuda"))
    weight.grad = torch.zeros_like(weight)
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    for _ in range(3):
        x.mul_(1.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.mul_(1.0)

    def step():
        for launch in range(KERNELS + REPLAYS):
            if launch % 4 == 3 and launch < 4 * REPLAYS:
                graph.replay()
            else:
                x.mul_(1.0)
        optimizer.step()

    return step


def timed(step, count):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        step()
    enqueued = time.perf_counter()
    torch.cuda.synchronize()
    return time.perf_counter() - begin, enqueued - begin


def calibrated():
    """Vectors for which the step takes about STEP_S."""
    elements = 1 << 22
    for _ in range(4):
        step = steps_of(elements)
        timed(step, 3)
        seconds = timed(step, 5)[0] / 5
        if abs(seconds / STEP_S - 1) < 0.1:
            break
        elements = min(max(int(elements * STEP_S / seconds), 1 << 16), 1 << 28)
    return step


step = calibrated()
print("ready", flush=True)
for line in sys.stdin:
    seconds, host = timed(step, int(line))
    print(seconds, host, flush=True)
