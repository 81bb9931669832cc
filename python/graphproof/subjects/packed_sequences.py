"""Packed sequences for Megatron-Core: documents of other lengths in each microbatch, one after
another in one row of fixed length, and padding after the last one.

Letters: S tokens of the row, D segments, which are the documents and the padding.
"""

import torch

DOCUMENTS = 3  # of a row; a graph keeps the number of segments, and reads their lengths


def packed(drawn: torch.Tensor, generator: torch.Generator) -> dict:
    """The inputs of a microbatch, from `drawn` tokens [1, S + 1] int64 on the CPU, whose segments
    `generator` chooses: tokens, labels and position_ids [1, S], loss_mask [1, S] fp32, and
    cu_seqlens [D + 1] int32, the places where segments begin, and S. Positions begin anew in each.
    Padding has no loss, and no document has the first token of the next one as a label."""
    length = drawn.shape[1] - 1
    inner = torch.randperm(length - 1, generator=generator)[:DOCUMENTS].sort().values + 1
    begins = torch.cat((torch.zeros(1, dtype=torch.int64), inner))
    places = torch.arange(length)
    segment = torch.searchsorted(inner, places, right=True)
    mask = (segment < DOCUMENTS).float()
    mask[inner - 1] = 0
    return {"tokens": drawn[:, :-1].contiguous(), "labels": drawn[:, 1:].contiguous(),
            "position_ids": (places - begins[segment]).unsqueeze(0), "loss_mask": mask.unsqueeze(0),
            "cu_seqlens": torch.cat((begins, torch.tensor([length]))).int()}


def parameters_of(one: dict):
    """What Megatron-Core's layers are told of the segments of a microbatch. Nothing in it is read
    on the host but the length of the row, so that a graph reads the segments of each replay."""
    from megatron.core.packed_seq_params import PackedSeqParams
    begins, length = one["cu_seqlens"], one["tokens"].shape[1]
    return PackedSeqParams(qkv_format="thd", cu_seqlens_q=begins, cu_seqlens_kv=begins,
                           max_seqlen_q=length, max_seqlen_kv=length)
