"""What translations share: which axes a subject has, and how it refuses the others."""

from graphproof.case import Case
from graphproof.message import Error


def require(case: Case, subject: str, **wanted) -> None:
    """Error if an axis has a value that the subject has no counterpart for. `wanted`: axis -> the
    value, or a tuple of values, that it can have. An axis that this graphproof lacks passes."""
    for axis, allowed in wanted.items():
        values = allowed if isinstance(allowed, tuple) else (allowed,)
        if axis in case.axes and case.axes[axis] not in values:
            raise Error(f"axis {axis} of a case with subject {subject}", str(case.axes[axis]),
                        " or ".join(str(value) for value in values),
                        f"{subject} has no counterpart of that value",
                        "see docs/reference/subjects.md for what each subject can do")
