"""Changes a function of an installed package: the source is read, a place exchanged, and the
function compiled again in its module."""

import __future__
import importlib
import inspect
import sys
import textwrap

from graphproof.message import Error

NEXT = "find the place in this version, and correct graphproof/planted"


def changed(module: str, name: str, old: str, new: str, times: int = 1) -> None:
    """Exchanges `old` for `new` in the source of function `name` ("function" or "Class.method") of
    `module`, and puts the result wherever the package has the function under this name. Error if
    the installed version has no such function, or not that place exactly `times` times."""
    owner, function = _found(module, name)
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != times:
        raise Error(f"the place of a fault in {module}.{name}",
                    f"{source.count(old)} times `{old}`",
                    "once" if times == 1 else f"{times} times",
                    "the installed version is written otherwise, and the fault would not be there",
                    NEXT)
    # Annotations stay text, because PyTorch imports some of their names for type checkers only.
    code = compile(source.replace(old, new), inspect.getsourcefile(function), "exec",
                   __future__.annotations.compiler_flag)
    scope = {}
    exec(code, sys.modules[module].__dict__, scope)
    _replace(owner, function, scope[name.rpartition(".")[2]])


def replaced(module: str, name: str, wrapper) -> None:
    """Puts `wrapper(function)` wherever the package has function `name` of `module`. Error if the
    installed version has no such function."""
    owner, function = _found(module, name)
    _replace(owner, function, wrapper(function))


def _found(module: str, name: str) -> tuple:
    """The module or class that has the function, and the function."""
    owner = None
    try:
        owner = found = importlib.import_module(module)
        for part in name.split("."):
            owner, found = found, getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Error(f"the function of a fault, {module}.{name}", str(error), "a function",
                    "the installed version has it elsewhere, and the fault would not be there",
                    NEXT) from error
    return owner, found


def _replace(owner, old, new) -> None:
    name = old.__name__
    setattr(owner, name, new)
    if inspect.isclass(owner):
        return
    # Modules that have imported the function by its name have a reference of their own.
    package = owner.__name__.partition(".")[0]
    for other in [found for key, found in list(sys.modules.items())
                  if key.partition(".")[0] == package]:
        if vars(other).get(name) is old:
            setattr(other, name, new)
