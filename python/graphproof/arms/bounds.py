"""How far two orders of the same sums may be apart in the model of gpt.py. The counts are those of
suites/case/reference.cpp, for the same layers."""

import math

from graphproof.case import Case

CONFIDENCE = 4  # standard deviations; random errors exceed it less than once in a thousand sums
HALF_ULP = {"bf16": -9, "fp16": -11}  # powers of two


def reordered_bound(case: Case) -> tuple:
    """(the largest difference relative to the largest element of a tensor, why)."""
    if case.precision == "fp32":
        # A layer chains nine sums (two norms, four products of attention, its softmax, two products
        # of the MLP), the embedding and the output layer four, and a LayerNorm one more for its
        # mean; the backward pass twice as many. Errors without a common sign grow with the root of
        # a sum's length (Higham and Mary 2019, doi 10.1137/18M1226312).
        longest = max(case.hidden, case.ffn or 4 * case.hidden, case.vocab, case.seq_length,
                      case.microbatches * case.microbatch_size * case.seq_length)
        means = case.normalization == "LayerNorm"
        chained = 3 * (9 * case.layers + 4 + means * (2 * case.layers + 1))
        return (CONFIDENCE * math.sqrt(longest) * 2.0 ** -24 * chained,
                f"fp32 sums of up to {longest} products in another order: {CONFIDENCE} * "
                f"sqrt({longest}) * 2^-24 of the largest element, times {chained} chained sums")
    # A layer rounds sixteen values in a row and the embedding and the output layer four, a gate one
    # more; the backward pass twice as many. Each is off by half an ulp with a sign of its own.
    rounded = 3 * ((16 + (case.activation == "swiglu")) * case.layers + 4)
    half_ulp = HALF_ULP[case.precision]
    return (CONFIDENCE * math.sqrt(rounded) * 2.0 ** half_ulp,
            f"{case.precision} values rounded {rounded} times in a row: {CONFIDENCE} * "
            f"sqrt({rounded}) * 2^{half_ulp} of the largest element")
