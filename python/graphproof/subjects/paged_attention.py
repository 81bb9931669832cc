"""Attention over a cache of keys and values in blocks, with the arguments of flash-attn's.

Megatron-Core's engine of dynamic batches calls flash-attn for attention and has no other kernel.
Where no version of it is installed, these stand in for it: products of PyTorch, whose shapes do
not depend on what the cache holds, so that a graph can hold them. What they compute is compared
with nothing but themselves; the engine around them is what is tested.

Letters: B requests, T tokens of all of them, P blocks of a request at most, S tokens of a block,
H and K heads of queries and of keys, D elements of a head.
"""

import torch


def attend(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, blocks: torch.Tensor,
           positions: torch.Tensor, scale: float) -> torch.Tensor:
    """queries [B, Q, H, D], keys and values [all blocks, S, K, D], blocks [B, P] int32 with -1 for
    none, positions [B, Q], up to which each query sees keys, or -1 for padding, whose result is 0.
    Returns [B, Q, H, D]."""
    chosen = blocks.clamp(min=0).long()
    heads = queries.shape[2] // keys.shape[2]

    def of_requests(cache: torch.Tensor) -> torch.Tensor:
        rows = cache[chosen].flatten(1, 2).float()  # [B, P * S, K, D]
        return rows.repeat_interleave(heads, 2).permute(0, 2, 1, 3)  # [B, H, P * S, D]

    scores = queries.float().permute(0, 2, 1, 3) @ of_requests(keys).transpose(-1, -2) * scale
    slots = torch.arange(scores.shape[-1], device=scores.device)
    unseen = slots[None, None] > positions[:, :, None]  # [B, Q, P * S]
    shares = scores.masked_fill(unseen[:, None], float("-inf")).softmax(-1)
    # A query without any key has shares that are no numbers. So may have memory that is unseen.
    shares = shares.masked_fill(unseen[:, None], 0.0)
    rows = of_requests(values)
    seen = (slots[None] <= positions.amax(1)[:, None])[:, None, :, None]
    result = shares @ rows.masked_fill(~seen, 0.0)
    return result.permute(0, 2, 1, 3).to(queries.dtype)


def flash_attn_with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor,
                            cache_seqlens: torch.Tensor, softmax_scale: float,
                            block_table: torch.Tensor, causal: bool = True,
                            window_size: tuple = (-1, -1), num_splits: int = 0) -> torch.Tensor:
    """q [B, Q, H, D], the last tokens of requests with cache_seqlens [B] tokens, 0 for padding."""
    require_whole_windows(causal, window_size)
    count = q.shape[1]
    offsets = torch.arange(1 - count, 1, device=q.device)
    positions = cache_seqlens.long()[:, None] - 1 + offsets[None]
    return attend(q, k_cache, v_cache, block_table, positions, softmax_scale)


def flash_attn_varlen_func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                           cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor,
                           max_seqlen_q: int, max_seqlen_k: int, softmax_scale: float,
                           block_table: torch.Tensor, causal: bool = True,
                           window_size: tuple = (-1, -1),
                           return_attn_probs: bool = False) -> torch.Tensor:
    """q [T, H, D], the last tokens of each request, of which cu_seqlens_q [B + 1] has the limits.
    Padding after them gets 0."""
    require_whole_windows(causal, window_size)
    tokens = torch.arange(q.shape[0], device=q.device)
    request = torch.searchsorted(cu_seqlens_q[1:].contiguous(), tokens.to(torch.int32),
                                 right=True)
    real = request < block_table.shape[0]
    request = request.clamp(max=block_table.shape[0] - 1)
    behind = cu_seqlens_q[1:].long()[request] - tokens  # tokens from this one to the last, with it
    lengths = (cu_seqlens_k[1:] - cu_seqlens_k[:-1]).long()[request]
    positions = torch.where(real, lengths - behind, -1)
    return attend(q[:, None], k, v, block_table[request], positions[:, None],
                  softmax_scale)[:, 0]


def require_whole_windows(causal: bool, window_size: tuple) -> None:
    """Error for attention of another kind, which nothing here computes."""
    if not causal or tuple(window_size) != (-1, -1):
        raise NotImplementedError(f"attention with causal {causal} and window {window_size}")
