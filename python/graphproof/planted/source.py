"""Changes a function of an installed package: the source is read, a line exchanged, and the
function compiled again in its module."""

import __future__
import inspect
import textwrap

from graphproof.message import Error


def changed(module, name: str, old: str, new: str) -> None:
    """Exchanges the one place `old` in the source of function `name` of `module` for `new`. Error
    if the installed version does not have that place exactly once."""
    function = getattr(module, name)
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise Error(f"the place of a fault in {module.__name__}.{name}",
                    f"{source.count(old)} times `{old}`", "once",
                    "the installed version is written otherwise, and the fault would not be there",
                    "find the place in this version, and correct graphproof/planted")
    file = inspect.getsourcefile(function)
    # Annotations stay text, because PyTorch imports some of their names for type checkers only.
    code = compile(source.replace(old, new), file, "exec", __future__.annotations.compiler_flag)
    exec(code, module.__dict__)
