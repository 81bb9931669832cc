"""Digests, comparison and poison of tensors."""

import math
import unittest

import torch

from graphproof.comparison import compare
from graphproof.digest import Hash64, digest, digest_of
from graphproof.poison import canary_words, poison


def hex_of(*texts) -> str:
    hash64 = Hash64()
    for text in texts:
        hash64.add_text(text)
    return hash64.hex()


class Digest(unittest.TestCase):
    def test_the_hash_depends_on_every_item_and_on_the_borders_between_them(self):
        # The first 8 bytes of the SHA-256 of nothing.
        self.assertEqual(hex_of(), "e3b0c44298fc1c14")
        texts = [(), ("",), ("ab", "c"), ("a", "bc"), ("abc",), ("abd",), ("c", "ab")]
        self.assertEqual(len({hex_of(*one) for one in texts}), len(texts))

    def test_the_bytes_of_a_tensor_hash_as_bytes_at_every_length(self):
        for size in (0, 1, 7, 8, 9, 31, 1024 + 3):
            tensor = torch.randint(0, 256, (size,), dtype=torch.uint8)
            by_bytes, by_tensor = Hash64(), Hash64()
            by_bytes.add_bytes(bytes(tensor.tolist()))
            by_tensor.add_tensor_bytes(tensor)
            self.assertEqual(by_tensor.hex(), by_bytes.hex(), size)

    def test_every_byte_of_a_large_tensor_counts(self):
        tensor = torch.zeros(1 << 20, dtype=torch.uint8)
        digests = {digest_of(tensor)}
        for place in (0, 12345, (1 << 20) - 1):
            changed = tensor.clone()
            changed[place] = 1
            digests.add(digest_of(changed))
        self.assertEqual(len(digests), 4)

    def test_name_type_shape_and_bytes_count_and_the_layout_in_memory_does_not(self):
        x = torch.arange(6.0).view(2, 3)
        base = digest([("x", x)])
        self.assertNotEqual(base, digest([("y", x)]))
        self.assertNotEqual(base, digest([("x", x.view(3, 2))]))
        self.assertNotEqual(base, digest([("x", x.to(torch.float64))]))
        self.assertEqual(base, digest([("x", x.t().contiguous().t())]))
        self.assertEqual(digest_of(x), digest_of(x.view(6)))

    def test_the_order_is_that_of_the_cpp_rank_program(self):
        # Name, at::toString(type), dimensions, sizes, bytes.
        hash64 = Hash64()
        for add in (lambda: hash64.add_text("x"), lambda: hash64.add_text("BFloat16"),
                    lambda: hash64.add_number(1), lambda: hash64.add_number(2),
                    lambda: hash64.add_bytes(b"\x80\x3f\x00\xc0")):
            add()
        self.assertEqual(digest([("x", torch.tensor([1.0, -2.0], dtype=torch.bfloat16))]),
                         hash64.hex())


class Comparison(unittest.TestCase):
    def test_equal_bytes_have_no_mismatch(self):
        x = torch.tensor([1.0, math.nan])
        self.assertEqual(compare([("x", x)], [("x", x.clone())]),
                         {"tensors": 1, "bytes": 8, "equal": True, "mismatch": None})

    def test_the_first_tensor_that_differs_is_measured(self):
        left = [("a", torch.zeros(2)), ("b", torch.tensor([1.0, 2.0, 4.0]))]
        right = [("a", torch.zeros(2)), ("b", torch.tensor([1.0, 2.5, 4.0000005]))]
        found = compare(left, right)["mismatch"]
        self.assertEqual((found["tensor"], found["element"], found["left"], found["right"]),
                         ("b", 1, 2.0, 2.5))
        self.assertEqual((found["elements"], found["differing"]), (3, 2))
        self.assertEqual(found["max_abs"], 0.5)
        self.assertAlmostEqual(found["max_rel"], 0.2)
        self.assertEqual(found["max_ulp"], 1 << 21)

    def test_signed_zeros_and_nans_differ_and_nan_has_no_distance(self):
        found = compare([("x", torch.tensor([0.0, 1.0]))],
                        [("x", torch.tensor([-0.0, math.nan]))])["mismatch"]
        self.assertEqual((found["differing"], found["max_abs"], found["max_ulp"]), (2, 0.0, 0))

    def test_integers_and_far_doubles(self):
        found = compare([("x", torch.tensor([5, 7]))], [("x", torch.tensor([5, 4]))])["mismatch"]
        self.assertEqual((found["element"], found["max_ulp"]), (1, 3))
        far = compare([("x", torch.tensor([-1e300], dtype=torch.float64))],
                      [("x", torch.tensor([1e300], dtype=torch.float64))])["mismatch"]
        self.assertEqual(far["max_ulp"], (1 << 63) - 1)

    def test_nothing_and_other_shapes_are_refused(self):
        for left, right in (([], []), ([("x", torch.zeros(2))], [("x", torch.zeros(3))]),
                            ([("x", torch.zeros(2))], [("y", torch.zeros(2))])):
            with self.assertRaises(ValueError):
                compare(left, right)


class Poison(unittest.TestCase):
    def test_what_was_not_written_keeps_it_in_every_type(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64,
                      torch.int32, torch.uint8, torch.bool):
            x = torch.zeros(4, dtype=dtype)
            self.assertEqual(poison([("x", x)]), x.numel() * x.element_size())
            self.assertEqual(canary_words([("x", x)]), 4, dtype)
            x[1] = 1
            self.assertEqual(canary_words([("x", x)]), 3, dtype)

    def test_neither_history_nor_version_sees_it(self):
        x = torch.zeros(3, requires_grad=True)
        version = x._version
        poison([("x", x)])
        self.assertEqual(x._version, version)
        self.assertTrue(x.isnan().all())

    def test_a_tensor_with_holes_is_refused(self):
        with self.assertRaisesRegex(ValueError, "x is not contiguous"):
            poison([("x", torch.zeros(4, 4).t())])


if __name__ == "__main__":
    unittest.main()
