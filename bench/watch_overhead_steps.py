"""The program that bench/watch_overhead measures: training steps of about 10 ms with 200 launches.

    watch_overhead_steps.py [ELEMENTS]

The vectors have ELEMENTS elements, or as many as a step of that time takes.

Protocol: prints `ready ELEMENTS`, so that another process can be started with equal vectors. For
each line `N usual` of standard input it runs N steps, and prints their seconds and the seconds
until they were enqueued. `N small` asks for steps with the same launches over small vectors, which
take about a tenth of the time. Ends at the end of its input.
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
    """Elements for which the step takes about STEP_S."""
    elements = 1 << 22
    for _ in range(4):
        step = steps_of(elements)
        timed(step, 3)
        seconds = timed(step, 5)[0] / 5
        if abs(seconds / STEP_S - 1) < 0.1:
            break
        elements = min(max(int(elements * STEP_S / seconds), 1 << 16), 1 << 28)
    return elements


elements = int(sys.argv[1]) if len(sys.argv) > 1 else calibrated()
steps = {"usual": steps_of(elements), "small": steps_of(1 << 10)}
print("ready", elements, flush=True)
for line in sys.stdin:
    count, size = line.split()
    seconds, host = timed(steps[size], int(count))
    print(seconds, host, flush=True)
