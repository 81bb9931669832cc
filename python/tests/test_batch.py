"""The batch file, the place of a rank, heartbeats and evidence."""

import json
import os
import tempfile
import threading
import unittest

from graphproof.batch import Place, place_from, read_batch
from graphproof.evidence import EvidenceWriter
from graphproof.heartbeat import HeartbeatWriter
from graphproof.message import Error, UsageError
from graphproof.world import World
from judged_batch import JudgedBatch


class BatchFile(unittest.TestCase):
    def setUp(self):
        self.batch = JudgedBatch(["impl=none"])
        self.addCleanup(self.batch.remove)

    def test_it_is_read_whole(self):
        read = read_batch(self.batch.file)
        self.assertEqual((read.device, read.world_size, read.cases[0].name),
                         ("sim", 1, "impl=none"))
        self.assertEqual(len(read.digest), 64)

    def test_each_wrong_field_is_named(self):
        for change, named in (({"schema": "graphproof-batch/9"}, "schema"),
                              ({"device": "tpu"}, "device"), ({"seed": "1"}, "seed"),
                              ({"world_size": True}, "world_size"), ({"cases": None}, "cases"),
                              ({"limits_ms": {}}, "limits_ms")):
            good = dict(self.batch.batch)
            with open(self.batch.file, "w", encoding="utf-8") as file:
                json.dump({**good, **change}, file)
            with self.assertRaisesRegex(UsageError, named):
                read_batch(self.batch.file)


class PlaceOfARank(unittest.TestCase):
    def test_both_starters_and_shared_gpus(self):
        own = {"GRAPHPROOF_WORLD_SIZE": "4", "GRAPHPROOF_RANK": "3", "GRAPHPROOF_LOCAL_RANK": "3"}
        self.assertEqual(place_from(own).gpu, 3)
        self.assertEqual(place_from({**own, "GRAPHPROOF_SHARED_GPUS": "2"}).gpu, 1)
        mpi = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1",
               "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
        self.assertEqual((place_from(mpi).rank, place_from(mpi).gpu), (1, 0))
        self.assertEqual(place_from({}).world_size, 1)

    def test_half_a_place_is_refused(self):
        with self.assertRaisesRegex(UsageError, "GRAPHPROOF_RANK without"):
            place_from({"GRAPHPROOF_RANK": "1"})
        with self.assertRaisesRegex(UsageError, "GRAPHPROOF_RANK=x"):
            place_from({"GRAPHPROOF_WORLD_SIZE": "2", "GRAPHPROOF_RANK": "x",
                        "GRAPHPROOF_LOCAL_RANK": "0"})


class Votes(unittest.TestCase):
    def worlds(self) -> list:
        batch = JudgedBatch(["impl=none"], world_size=2)
        self.addCleanup(batch.remove)
        read = read_batch(batch.file)
        return [World(read, Place(rank=rank, world_size=2)) for rank in (0, 1)]

    def both(self, left, right) -> list:
        """The results of two calls at once: values or errors."""
        results = [None, None]

        def run(index, call):
            try:
                results[index] = call()
            except Error as error:
                results[index] = str(error)

        threads = [threading.Thread(target=run, args=pair) for pair in enumerate((left, right))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def test_every_rank_learns_every_code(self):
        left, right = self.worlds()
        self.assertEqual(self.both(lambda: left.vote("build", 0), lambda: right.vote("build", 7)),
                         [[0, 7], [0, 7]])

    def test_ranks_at_different_places_are_told(self):
        left, right = self.worlds()
        for result in self.both(lambda: left.vote("build", 0), lambda: right.vote("eager", 0)):
            self.assertRegex(result, "rank . is at vote after (build|eager); want vote after")

    def test_other_versions_are_told_and_a_missing_rank_has_a_deadline(self):
        left, right = self.worlds()
        for result in self.both(lambda: left.agree_on_versions("torch 2.11"),
                                lambda: right.agree_on_versions("torch 2.12")):
            self.assertIn("rank 0 torch 2.11, rank 1 torch 2.12", result)
        with self.assertRaisesRegex(Error, "nothing from rank 1 within 10 ms"):
            left.exchange("anything", "", 0.01)


class Lines(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_evidence_has_no_bare_nan_and_never_two_attempts_in_one_file(self):
        file = os.path.join(self.folder.name, "attempt", "rank-0.evidence.jsonl")
        writer = EvidenceWriter(file)
        writer.write("hyperparameter", host=float("nan"), bound=float("-inf"), left=[float("inf")],
                     absent=None)
        writer.end(True, "compare", 5)
        with open(file, encoding="utf-8") as stream:
            first, last = (json.loads(line) for line in stream)
        self.assertEqual(first, {"kind": "hyperparameter", "host": "nan", "bound": "-inf",
                                 "left": ["inf"]})
        self.assertEqual((last["complete"], last["lines"]), (True, 1))
        with self.assertRaisesRegex(Error, "evidence of two attempts must never mix"):
            EvidenceWriter(file)

    def test_heartbeats_reach_a_reader_of_the_fifo(self):
        fifo = os.path.join(self.folder.name, "fifo")
        os.mkfifo(fifo)
        read = []

        def reader():
            with open(fifo, encoding="utf-8") as stream:
                read.extend(json.loads(line) for line in stream)

        thread = threading.Thread(target=reader)
        thread.start()
        writer = HeartbeatWriter(fifo, 1)
        writer.case_begin("a" * 16, 1, 10)
        writer.phase("eager", "eager_a", 2)
        writer.case_end(20)
        writer.phase("eager", "eager_a", 3)  # outside a case: not written
        writer.bye()
        writer._close()
        thread.join()
        self.assertEqual([line["event"] for line in read],
                         ["hello", "case_begin", "phase", "case_end", "bye"])
        self.assertEqual((read[2]["phase"], read[2]["arm"], read[2]["step"]),
                         ("eager", "eager_a", 2))
        self.assertIsNone(read[2]["collective"])
        self.assertTrue(all(line["rank"] == 1 for line in read))

    def test_a_missing_fifo_loses_heartbeats_and_nothing_else(self):
        writer = HeartbeatWriter(os.path.join(self.folder.name, "none"), 0)
        writer.case_begin("a" * 16, 1, 0)
        writer.bye()


if __name__ == "__main__":
    unittest.main()
