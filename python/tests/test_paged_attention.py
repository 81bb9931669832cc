"""Attention over blocks of a cache gives what attention over whole sequences gives."""

import math
import unittest

import torch

from graphproof.device.stand_in import StandInGraph
from graphproof.subjects import paged_attention

HEADS, OF_KEYS, WIDTH, BLOCK = 4, 2, 8, 4
LENGTHS = (6, 1, 9)


def whole(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The last tokens q [Q, H, D] of a sequence k, v [L, K, D]."""
    k, v = (one.repeat_interleave(HEADS // OF_KEYS, 1) for one in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(WIDTH)
    later = torch.ones(len(q), len(k), dtype=torch.bool).triu(1 + len(k) - len(q))
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(later, float("-inf")).softmax(-1), v)


class Cache:
    """Sequences of LENGTHS in blocks that are in no order, with NaN where nothing was kept."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.k, self.v = (torch.full((12, BLOCK, OF_KEYS, WIDTH), float("nan")) for _ in "kv")
        self.table = torch.full((len(LENGTHS), 3), -1, dtype=torch.int32)
        self.sequences, blocks = [], iter((7, 3, 11, 0, 5, 2))
        for place, length in enumerate(LENGTHS):
            k, v = torch.randn((2, length, OF_KEYS, WIDTH), generator=generator)
            self.sequences.append((k, v))
            for block in range(-(-length // BLOCK)):
                self.table[place, block] = taken = next(blocks)
                part = slice(block * BLOCK, (block + 1) * BLOCK)
                self.k[taken, :len(k[part])], self.v[taken, :len(v[part])] = k[part], v[part]
        self.q = torch.randn((sum(LENGTHS), HEADS, WIDTH), generator=generator)


class PagedAttention(unittest.TestCase):
    def decode(self, cache: Cache, table: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return paged_attention.flash_attn_with_kvcache(
            q=cache.q[:len(lengths), None], k_cache=cache.k, v_cache=cache.v,
            cache_seqlens=lengths, softmax_scale=1 / math.sqrt(WIDTH), block_table=table)

    def test_a_decoded_token_sees_its_whole_sequence(self):
        cache = Cache()
        found = self.decode(cache, cache.table, torch.tensor(LENGTHS, dtype=torch.int32))
        for place, (k, v) in enumerate(cache.sequences):
            torch.testing.assert_close(found[place], whole(cache.q[place:place + 1], k, v))

    def test_padding_gets_zeros_and_changes_nothing(self):
        cache = Cache()
        table = torch.cat([cache.table, torch.full((1, 3), -1, dtype=torch.int32)])
        found = self.decode(cache, table, torch.tensor((*LENGTHS, 0), dtype=torch.int32))
        alone = self.decode(cache, cache.table, torch.tensor(LENGTHS, dtype=torch.int32))
        self.assertTrue(torch.equal(found[:3], alone))
        self.assertEqual(found[3].abs().max(), 0)

    def test_a_prompt_sees_what_was_before_each_of_its_tokens(self):
        cache, limits = Cache(), [0]
        for length in LENGTHS:
            limits.append(limits[-1] + length)
        q = torch.cat([cache.q, torch.ones(2, HEADS, WIDTH)])  # with padding
        limits = torch.tensor(limits, dtype=torch.int32)
        found = paged_attention.flash_attn_varlen_func(
            q, cache.k, cache.v, limits, limits, 9, 9, softmax_scale=1 / math.sqrt(WIDTH),
            block_table=cache.table)
        for begin, length, (k, v) in zip(limits.tolist(), LENGTHS, cache.sequences):
            part = slice(begin, begin + length)
            torch.testing.assert_close(found[part], whole(cache.q[part], k, v))
        self.assertEqual(found[sum(LENGTHS):].abs().max(), 0)

    def test_a_graph_reads_lengths_and_blocks_anew(self):
        cache = Cache()
        lengths, table = torch.tensor(LENGTHS, dtype=torch.int32), cache.table.clone()
        graph = StandInGraph()
        graph.capture_begin()
        found = self.decode(cache, table, lengths)
        graph.capture_end()
        lengths.copy_(torch.tensor((2, 1, 5)))
        table[0, 1] = -1
        graph.replay()
        self.assertTrue(torch.equal(found, self.decode(cache, table, lengths)))

    def test_windows_are_refused(self):
        with self.assertRaisesRegex(NotImplementedError, r"window \(8, 0\)"):
            paged_attention.require_whole_windows(True, (8, 0))


if __name__ == "__main__":
    unittest.main()
