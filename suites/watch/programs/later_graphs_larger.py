"""Later graphs take more memory of the driver than the first ones foretell.

defect: four graphs of small kernels are followed by graphs whose kernel has a large array in local
        memory, which the driver reserves for every thread that can run at once. A program that
        sized its cache by the first graphs runs out of memory.
sound:  all graphs are alike.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
SOURCE = """
extern "C" __global__ void scratch(float* x, int n) {
  float room[SIZE];
  for (int i = 0; i < SIZE; ++i) room[i] = x[(i * 7) % n];
  float sum = 0;
  for (int i = 0; i < SIZE; ++i) sum += room[(i + int(x[0])) % SIZE];
  x[threadIdx.x] = sum * 1e-6f;
}
"""
x = torch.ones(1024, device="cuda")


def kernel(size):
    return torch.cuda._compile_kernel(SOURCE.replace("SIZE", str(size)), "scratch")


small, large = kernel(4), kernel(8192)  # 32 KiB a thread
graphs = []
for index in range(8):
    use = large if defect and index >= 4 else small
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        use(grid=(1, 1, 1), block=(256, 1, 1), args=(x, 1024))
    graphs.append(graph)
for _ in range(10):
    for graph in graphs:
        graph.replay()
torch.cuda.synchronize()
print("done", torch.cuda.mem_get_info()[0])
