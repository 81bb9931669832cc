"""Faults in steps of changing length: in what their loss leaves out, and in the cache of graphs."""

import torch.nn.functional as F

from graphproof.arms.shape_buckets import GraphCache

_kept = []  # what evicted_graphs_kept() keeps


def ignored_labels_counted() -> None:
    counted = F.cross_entropy

    def cross_entropy(logits, labels, *args, **kwargs):
        return counted(logits, labels.clamp(min=0), *args, **kwargs)

    F.cross_entropy = cross_entropy


def evicted_graphs_kept() -> None:
    GraphCache.drop = lambda self, resident: _kept.append(resident)


def length_of_the_latest_graph() -> None:
    bucket_of = GraphCache.bucket_of

    def latest(self, longest):
        return self.residents[0].length if self.residents else bucket_of(self, longest)

    GraphCache.bucket_of = latest


def evicted_while_running() -> None:
    """The device is kept busy behind each replay: eager steps take the host longer than a replay
    takes the device, so without that nothing would run any more when the graphs are dropped. The
    model has to be small, because the host waits once a thousand launches are ahead of it."""
    evict, step = GraphCache._evict, GraphCache.step

    def with_busy_device(self, batch, longest):
        losses = step(self, batch, longest)
        if self.replayed:
            self.device.delay_work(others=False, ms=300)
            self.residents[0].mark = self.device.mark()
        return losses

    def at_once(self):
        wait, self.device.synchronize = self.device.synchronize, lambda: None
        try:
            evict(self)
        finally:
            self.device.synchronize = wait

    GraphCache.step = with_busy_device
    GraphCache._evict = at_once
