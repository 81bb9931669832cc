"""A program captures again whenever a length changes and keeps every graph.

defect: the cache is keyed by the exact length and never evicts, so graphs and their pools grow
        with every new length.
sound:  lengths are padded to four buckets.
"""
import sys

import torch

defect = sys.argv[1] == "defect"
weight = torch.randn(512, 512, device="cuda")
graphs = {}


def run(length):
    key = length if defect else (length + 127) // 128 * 128
    if key not in graphs:
        x = torch.zeros(key, 512, device="cuda")
        x @ weight
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x @ weight
        graphs[key] = (graph, x, y)
    graph, x, y = graphs[key]
    x[:length].normal_()
    graph.replay()
    return y[:length]


lengths = torch.randint(1, 512, (120,), generator=torch.Generator().manual_seed(0)).tolist()
for length in lengths:
    run(length)
torch.cuda.synchronize()
print("graphs", len(graphs))
