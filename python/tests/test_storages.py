"""Memory that a graph uses and does not own: seen when its owner goes, unless a pool keeps it."""

import itertools
import unittest

import torch

from graphproof.device.observed_graph import Observed, observed_class


class Graph:
    """As much of torch.cuda.CUDAGraph as an observed graph needs: it captures nothing."""

    pools = itertools.count(1)

    def __init__(self, keep_graph: bool = False):
        self._pool = None

    def capture_begin(self, pool=None, capture_error_mode="global") -> None:
        self._pool = pool or (0, next(Graph.pools))

    def capture_end(self) -> None:
        pass

    def pool(self):
        return self._pool

    def register_generator_state(self, generator) -> None:
        pass

    def reset(self) -> None:
        pass


ObservedGraph = observed_class(Graph, lambda graph: (1, {}, ""), lambda: 0, lambda earlier: None)


def captured(work, pool=None):
    graph = ObservedGraph()
    graph.capture_begin(pool=pool)
    result = work()
    graph.capture_end()
    return graph, result


class PoolMemory(unittest.TestCase):
    def setUp(self):
        Observed.observer, Observed.notes_operands = None, True

    def backward_reads(self, pool, x) -> list:
        """What is missing before a graph is replayed that reads the activation of an earlier one,
        which has gone meanwhile."""
        forward, activation = captured(lambda: x * 2, pool)
        backward, _ = captured(lambda: activation * 3, forward.pool() if pool else None)
        self.assertEqual(len(backward.operands().external), 0 if pool else 1)
        self.forward, size = forward, activation.untyped_storage().nbytes()
        del activation
        self.assertEqual(size, 32)
        return backward.operands().freed()

    def test_an_activation_of_the_same_pool_is_kept_by_the_pool(self):
        x = torch.ones(8)
        self.assertEqual(self.backward_reads((1, 1), x), [])

    def test_an_activation_of_another_pool_is_missed_when_its_owner_has_gone(self):
        freed = self.backward_reads(None, torch.ones(8))
        self.assertEqual(len(freed), 1)
        self.assertIn("32 bytes", freed[0])

    def test_a_block_from_outside_is_missed_where_an_activation_of_the_pool_is_not(self):
        x, pool = torch.ones(8), (1, 2)
        forward, activation = captured(lambda: x * 2, pool)
        scale = torch.ones(16)
        backward, _ = captured(lambda: activation * scale.sum(), pool)
        del activation
        self.assertEqual(backward.operands().freed(), [])
        del scale
        self.assertEqual([text.split(", ")[1] for text in backward.operands().freed()],
                         ["64 bytes"])

    def test_the_pool_of_a_first_graph_is_known_to_one_that_joins_it_later(self):
        x = torch.ones(8)
        forward, activation = captured(lambda: x * 2)
        later, _ = captured(lambda: activation + 1, forward.pool())
        del activation
        self.assertEqual(later.operands().freed(), [])

    def test_a_new_block_is_not_taken_for_one_of_the_pool_that_has_gone(self):
        x, pool = torch.ones(8), (1, 3)
        forward, activation = captured(lambda: x * 2, pool)
        del activation
        for _ in range(100):
            outside = torch.ones(8)
            later, _ = captured(lambda: outside + 1, pool)
            del outside
            self.assertEqual(len(later.operands().freed()), 1)


class GeneratorsOfAGraph(unittest.TestCase):
    def test_one_that_is_registered_twice_counts_once(self):
        graph, other = ObservedGraph(), torch.Generator()
        # PyTorch registers the default one itself; Megatron-Core's local graphs do so too.
        for generator in (torch.default_generator, other, other):
            graph.register_generator_state(generator)
        graph.capture_begin()
        graph.capture_end()
        self.assertEqual(graph.info.generators, 2)


if __name__ == "__main__":
    unittest.main()
