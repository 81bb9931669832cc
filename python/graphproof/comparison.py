"""Comparison of two lists of named host tensors, byte for byte, as fixtures/inspect does it, and
their distance."""

import math

import torch

_LARGEST = (1 << 63) - 1
_BITS = {8: torch.int64, 4: torch.int32, 2: torch.int16}


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _places(tensor: torch.Tensor) -> torch.Tensor:
    """The position of each value among the values of its type: neighbours are one apart."""
    if not tensor.is_floating_point() or tensor.element_size() == 1:
        return (tensor if tensor.element_size() > 1 or not tensor.is_floating_point()
                else tensor.view(torch.uint8)).to(torch.int64)
    kind = _BITS[tensor.element_size()]
    bits = tensor.view(kind)
    # -0 and 0 share one place.
    return torch.where(bits >= 0, bits, torch.iinfo(kind).min - bits).to(torch.int64)


def _mismatch(name: str, left: torch.Tensor, right: torch.Tensor) -> dict:
    left, right = left.contiguous().reshape(-1), right.contiguous().reshape(-1)
    size = left.element_size()
    other = (_bytes(left).view(-1, size) != _bytes(right).view(-1, size)).any(dim=1)
    first = int(other.nonzero()[0])
    a, b = left.to(torch.float64), right.to(torch.float64)
    both = other & ~a.isnan() & ~b.isnan()  # NaN has no distance
    apart = (a - b).abs()[both]
    larger = torch.maximum(a.abs(), b.abs())[both]
    share = torch.where((larger > 0) & larger.isfinite(), apart / larger, 0.0)
    places = _places(left)[both] - _places(right)[both]
    apart_in_places = places.abs()
    # A difference that does not fit wraps around; a[i] and b[i] have opposite signs then.
    wrapped = (a[both] < b[both]) != (places < 0)
    far = (wrapped & (places != 0) & (a[both] != b[both])).any() if left.is_floating_point() else \
        torch.tensor(False)
    return {
        "tensor": name, "element": first, "left": float(a[first]), "right": float(b[first]),
        "max_abs": float(apart.max()) if len(apart) else 0.0,
        "max_rel": float(share.max()) if len(share) else 0.0,
        "max_ulp": _LARGEST if bool(far) else
        int(apart_in_places.max()) if len(apart_in_places) else 0,
        "elements": left.numel(), "differing": int(other.sum()),
    }


def compare(left: list, right: list) -> dict:
    """The fields tensors, bytes, equal and mismatch of a `compare` line. -0 and 0 differ, and so do
    two NaNs with different payloads. ValueError if the lists differ in names, types or shapes, or
    are empty, because a comparison of nothing would always agree."""
    shape = [(name, str(tensor.dtype), tuple(tensor.shape)) for name, tensor in left]
    other = [(name, str(tensor.dtype), tuple(tensor.shape)) for name, tensor in right]
    if not shape or shape != other:
        differing = [pair for pair in zip(shape, other) if pair[0] != pair[1]]
        raise ValueError(f"compare: {len(shape)} and {len(other)} tensors; the first that differ: "
                         f"{differing[:1]}; want the same names, types and shapes, at least one")
    result = {"tensors": len(left), "bytes": 0, "equal": True, "mismatch": None}
    for (name, a), (_, b) in zip(left, right):
        result["bytes"] += a.numel() * a.element_size()
        if result["equal"] and not torch.equal(_bytes(a), _bytes(b)):
            result["equal"] = False
            result["mismatch"] = _mismatch(name, a, b)
    return result


def distance(measured: list, reference: list, relative: float, why: str) -> dict:
    """The fields of a distance: the pair of tensors that is nearest to its bound or exceeds it
    most. A bound is `relative` to the largest element of the reference. A NaN is within none."""
    worst, worst_share = {}, -1.0
    for (name, left), (_, right) in zip(measured, reference, strict=True):
        left, right = left.double(), right.double()
        apart, scale = float((left - right).abs().max()), float(right.abs().max())
        bound = relative * scale
        share = 0.0 if apart == 0 else apart / bound if bound > 0 else math.inf
        share = math.inf if math.isnan(share) or math.isnan(scale) else share
        if share > worst_share:
            worst_share = share
            worst = {"max_abs": apart, "bound": bound, "worst": name,
                     "max_rel": 0.0 if apart == 0 else apart / scale if scale > 0 else math.inf}
    return {"tensors": len(measured), **worst, "why": why}
