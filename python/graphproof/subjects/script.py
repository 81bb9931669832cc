"""Subject `script`: a file of the user that defines build(case) -> Subject."""

import importlib.util
import os
import sys
from collections.abc import Callable

from graphproof.message import Error


def load(file: str | None) -> Callable:
    """The function `build` of a file, which is imported as a module. Error if there is none."""
    def refuse(got: str, next: str):
        raise Error("the script of subject script", got, "a Python file that defines build(case)",
                    "the model under test is built by it", next)
    if not file:
        refuse("no GRAPHPROOF_SCRIPT in the environment",
               "name the file: axis env.GRAPHPROOF_SCRIPT=FILE")
    if not os.path.isfile(file):
        refuse(f"{file}, which is no file", "give its full path, the same on every node")
    # Its neighbours can be imported, as if it were started by itself.
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location("graphproof_script", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["graphproof_script"] = module
    spec.loader.exec_module(module)
    build = getattr(module, "build", None)
    if not callable(build):
        refuse(f"{file} without a function build",
               "write one: ./graphproof new-subject FILE makes an example")
    return build
