"""Every planted fault fails its detector on the stand-in, and its clean twin does not."""

import re
import unittest

from graphproof.message import Error
from graphproof.planted import FAULTS, plant
from judged_batch import JudgedBatch


class Planted(unittest.TestCase):
    def judged(self, name: str) -> dict:
        batch = JudgedBatch([name], world_size=2 if "dp=2" in name else 1)
        self.addCleanup(batch.remove)
        batch.run()
        return {check: word for check, (word, _) in batch.judge(batch.ids[0]).items()}

    def test_each_fault_fails_its_detector(self):
        for fault in FAULTS.values():
            with self.subTest(fault=fault.id, title=fault.title):
                words = self.judged(f"{fault.case},fault={fault.id}")
                failed = [check for check, word in words.items() if word == "fail"]
                self.assertEqual(words[fault.detector], "fail", failed)

    def test_no_detector_fails_in_a_clean_twin(self):
        for case in sorted({fault.case for fault in FAULTS.values()}):
            with self.subTest(case=case):
                failed = [check for check, word in self.judged(case).items() if word == "fail"]
                self.assertEqual(failed, [])

    def test_the_table_is_in_order_and_whole(self):
        self.assertEqual(list(FAULTS), sorted(FAULTS))
        for fault in FAULTS.values():
            self.assertRegex(fault.id, "^M2[5-9][0-9]$")
            self.assertTrue(re.fullmatch(r"D\d\d\.[a-z_]+", fault.detector), fault.detector)

    def test_an_unknown_fault_and_a_place_that_has_gone_are_errors(self):
        with self.assertRaisesRegex(Error, "M999"):
            plant("M999")
        from graphproof.planted import source
        with self.assertRaisesRegex(Error, "0 times `not there`"):
            source.changed(source, "changed", "not there", "")


if __name__ == "__main__":
    unittest.main()
