"""The stand-in for CUDA graphs has the properties of a graph that the arms rely on."""

import gc
import os
import tempfile
import unittest
from unittest import mock

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager

from graphproof.device import cpu, stand_in

stand_in.install()


def captured(work, pool=None):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = work()
    return graph, result


class StandIn(unittest.TestCase):
    def test_a_capture_changes_nothing_and_a_replay_computes_from_what_memory_holds_then(self):
        x, total = torch.ones(3), torch.zeros(3)
        state = torch.get_rng_state()

        def work():
            total.add_(x)
            return total * 2 + torch.rand(3)

        graph, result = captured(work)
        self.assertEqual(total.tolist(), [0, 0, 0])
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        self.assertNotEqual(result.tolist(), [2, 2, 2])
        x.fill_(5)
        graph.replay()
        self.assertEqual(total.tolist(), [5, 5, 5])
        torch.set_rng_state(state)
        self.assertTrue(torch.equal(result, total * 2 + torch.rand(3)))
        first = result.clone()
        graph.replay()
        self.assertFalse(torch.equal(first, result))

    def test_numbers_of_the_host_are_frozen_and_constants_are_not_lost(self):
        x, rate = torch.ones(2), 0.5
        graph, result = captured(lambda: x * rate + torch.tensor([1.0, 2.0]))
        rate = 7.0
        graph.replay()
        self.assertEqual(result.tolist(), [1.5, 2.5])

    def test_what_needs_the_host_is_refused_and_the_process_stays_usable(self):
        x = torch.ones(2)
        for work in (lambda: x.sum().item(), lambda: x.nonzero(), torch.get_rng_state):
            with self.assertRaisesRegex(RuntimeError, "not permitted when stream is capturing"):
                captured(work)
        graph, result = captured(lambda: x + 1)
        graph.replay()
        self.assertEqual(result.tolist(), [2, 2])

    def test_memory_of_others_is_kept_by_address_and_not_alive(self):
        x = torch.ones(4)
        graph, result = captured(lambda: x * 3)
        self.assertEqual(graph.storages().freed(), [])
        del x
        self.assertEqual(len(graph.storages().freed()), 1)
        graph.replay()
        self.assertTrue(result.isnan().all())

    def test_a_backward_is_captured_and_its_gradients_lie_still(self):
        w = torch.ones(2, requires_grad=True)
        x = torch.ones(2)
        w.grad = torch.zeros(2)
        address = w.grad.data_ptr()

        def work():
            w.grad.zero_()
            (w * x).sum().backward()

        graph, _ = captured(work)
        for value in (2.0, 3.0):
            x.fill_(value)
            graph.replay()
            self.assertEqual(w.grad.tolist(), [value, value])
        self.assertEqual(w.grad.data_ptr(), address)

    def test_a_graph_may_be_collected_while_the_bytes_of_pools_are_added(self):
        graphs = [captured(lambda: torch.ones(8) * 2)[0] for _ in range(2)]
        graphs[0].itself = graphs[0]  # only the garbage collector ends it
        total, counted = stand_in.pool_bytes(), stand_in.Pool.bytes

        def collected_meanwhile(pool):
            nonlocal graphs
            graphs = None
            gc.collect()
            return counted(pool)

        with mock.patch.object(stand_in.Pool, "bytes", collected_meanwhile):
            self.assertEqual(stand_in.pool_bytes(), total)

    def test_graphs_of_one_pool_share_it_until_the_last_is_reset(self):
        x = torch.ones(8)
        first, _ = captured(lambda: x * 2)
        before = stand_in.pool_bytes()
        second, _ = captured(lambda: x * 3, pool=first.pool())
        self.assertEqual(first.pool(), second.pool())
        self.assertGreater(stand_in.pool_bytes(), before)
        first.reset()
        self.assertGreater(stand_in.pool_bytes(), 0)
        second.reset()
        self.assertEqual(stand_in.pool_bytes(), 0)
        with self.assertRaisesRegex(RuntimeError, "without a capture"):
            second.replay()

    def test_pytorchs_own_graphed_callables_run_over_it(self):
        torch.manual_seed(0)
        eager, graphed = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        graphed.load_state_dict(eager.state_dict())
        torch.cuda.make_graphed_callables(graphed, (torch.randn(2, 4, requires_grad=True),))
        for _ in range(3):
            x = torch.randn(2, 4)
            losses = []
            for module in (eager, graphed):
                module.zero_grad()
                losses.append(module(x).square().sum())
                losses[-1].backward()
            self.assertTrue(torch.equal(*losses))
            self.assertTrue(torch.equal(eager.weight.grad, graphed.weight.grad))


class Collectives(unittest.TestCase):
    """Of a single rank, whose gloo has buffers of its own between input and output too."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        store = dist.FileStore(os.path.join(folder.name, "store"), 1)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)

    def rows(self):
        def scattered(out, x, **how):
            return dist.reduce_scatter_tensor(out, x, **how)

        def gathered(out, x, **how):
            return dist.all_gather_into_tensor(out, x, **how)

        def reduced(out, x, **how):
            out.copy_(x)
            return dist.all_reduce(out, **how)

        def at_once(collective):
            return collective

        def late(collective):
            return lambda out, x: collective(out, x, async_op=True).wait()

        def coalesced(collective):
            def run(out, x):
                with _coalescing_manager(dist.group.WORLD, async_ops=True) as work:
                    collective(out, x, async_op=True)
                work.wait()
            return run

        for collective in (scattered, gathered, reduced):
            for how in (at_once, late, coalesced):
                yield f"{collective.__name__} {how.__name__}", how(collective)

    def test_a_capture_leaves_no_result_and_every_replay_has_one(self):
        for name, collective in self.rows():
            with self.subTest(name):
                x, out = torch.ones(4), torch.zeros(4)
                graph, _ = captured(lambda: collective(out, x * 2))
                self.assertEqual(out.tolist(), [0] * 4)
                for value in (2.0, 3.0):
                    x.fill_(value)
                    graph.replay()
                    self.assertEqual(out.tolist(), [2 * value] * 4)


class Memory(unittest.TestCase):
    def test_a_tensor_that_goes_a_moment_later_is_not_counted_and_one_that_is_kept_is(self):
        for counts, grouped, counted in (([4, 4, 0], True, 0), ([4] * 9, True, 4),
                                         ([4, 0], False, 4)):
            with self.subTest(counts=counts, grouped=grouped), \
                    mock.patch.object(cpu, "_tensor_bytes", mock.Mock(side_effect=counts)), \
                    mock.patch.object(cpu.dist, "is_initialized", lambda: grouped):
                self.assertEqual(cpu.CpuDevice().memory()["allocated"], counted)

    def test_what_stays_for_a_moment_of_a_model_that_has_gone_is_not_counted(self):
        counts = [4, 4, 4, 4, 4, 4, 90, 90, 90, 90, 90, 90, 6, 6, 4]
        with mock.patch.object(cpu, "_tensor_bytes", mock.Mock(side_effect=counts)), \
                mock.patch.object(cpu.dist, "is_initialized", lambda: True):
            device = cpu.CpuDevice()
            device.empty_cache()
            self.assertEqual(device.memory()["allocated"], 4)
            self.assertEqual(device.memory()["allocated"], 90)
            device.empty_cache()
            self.assertEqual(device.memory()["allocated"], 4)


class Nodes(unittest.TestCase):
    def test_a_graph_without_nodes_is_read_with_one_call(self):
        from graphproof.device import cuda_nodes

        class Driver:
            @staticmethod
            def cuGraphGetNodes(handle, nodes, count):
                # The driver takes an array of no nodes for an invalid argument.
                count._obj.value = 0
                return 0 if nodes is None else 1

        class Graph:
            @staticmethod
            def raw_cuda_graph():
                return 0

        with mock.patch.object(cuda_nodes.ctypes, "CDLL", lambda name: Driver):
            self.assertEqual(cuda_nodes.census_of(Graph)[:2], (0, {}))

    def test_the_measured_grid_of_a_triton_kernel_is_left_out(self):
        from graphproof.device import cuda_nodes

        def signature(kernel: bytes, blocks: int) -> str:
            class Driver:
                @staticmethod
                def cuGraphGetNodes(handle, nodes, count):
                    count._obj.value = 1
                    return 0

                @staticmethod
                def cuGraphNodeGetType(node, kind):
                    kind._obj.value = 0
                    return 0

                @staticmethod
                def cuGraphKernelNodeGetParams_v2(node, params):
                    params._obj.func = 1
                    params._obj.grid[0] = blocks
                    return 0

                @staticmethod
                def cuFuncGetName(name, function):
                    name._obj.value = kernel
                    return 0

            class Graph:
                @staticmethod
                def raw_cuda_graph():
                    return 0

            with mock.patch.object(cuda_nodes.ctypes, "CDLL", lambda name: Driver):
                return cuda_nodes.census_of(Graph)[2]

        tuned, other = b"triton_poi_fused_add_0", b"vectorized_elementwise_kernel"
        self.assertEqual(signature(tuned, 64), signature(tuned, 32))
        self.assertNotEqual(signature(other, 64), signature(other, 32))
        self.assertNotEqual(signature(tuned, 64), signature(b"triton_poi_fused_mul_0", 64))


if __name__ == "__main__":
    unittest.main()
