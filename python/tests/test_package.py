"""The package's own rules: what imports what, without cycles; every module says what it is for."""

import ast
import os
import unittest

from judged_batch import ROOT

PACKAGE = os.path.join(ROOT, "python", "graphproof")

# folder -> the folders of the package that its modules may import, besides their own. "" is the
# top: its small modules, which import no folder except where listed in TOP.
FOLDERS = {
    "arms": {"", "device"},
    "device": {""},
    "planted": {"", "arms", "device"},
    "subjects": {""},
}
# Modules of the top that put the folders together.
TOP = {"case_run", "rank"}
# Packages that a module may import: the standard library and these.
PACKAGES = {"torch", "graphproof"}
SUBJECT_PACKAGES = {"apex", "megatron", "transformer_engine"}


def modules() -> list:
    return sorted(os.path.relpath(os.path.join(folder, name), PACKAGE)
                  for folder, _, names in os.walk(PACKAGE) for name in names
                  if name.endswith(".py"))


def imported(file: str) -> set:
    with open(os.path.join(PACKAGE, file), encoding="utf-8") as stream:
        tree = ast.parse(stream.read())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
            if node.module == "graphproof" or node.module in (f"graphproof.{f}" for f in FOLDERS):
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


class Package(unittest.TestCase):
    def test_every_module_says_what_it_is_for(self):
        for file in modules():
            with open(os.path.join(PACKAGE, file), encoding="utf-8") as stream:
                text = ast.get_docstring(ast.parse(stream.read()))
            self.assertTrue(text and text.rstrip().split("\n")[0], file)

    def test_a_folder_imports_only_what_its_row_allows(self):
        self.assertGreater(len(modules()), 20)
        for file in modules():
            folder = os.path.dirname(file)
            allowed = {folder, *FOLDERS.get(folder, {""})}
            if folder == "" and file.removesuffix(".py") in TOP:
                allowed |= set(FOLDERS)
            for name in imported(file):
                parts = name.split(".")
                if parts[0] == "graphproof" and len(parts) > 1:
                    other = parts[1] if parts[1] in FOLDERS else ""
                    self.assertIn(other, allowed, f"{file} imports {name}")

    def test_no_dependency_but_torch_and_what_a_subject_is(self):
        import sys
        for file in modules():
            allowed = PACKAGES | (SUBJECT_PACKAGES if file.startswith("subjects/") else set())
            for name in imported(file):
                first = name.split(".")[0]
                self.assertTrue(first in allowed or first in sys.stdlib_module_names,
                                f"{file} imports {name}")


if __name__ == "__main__":
    unittest.main()
