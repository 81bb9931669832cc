"""Two libraries of cuDNN in a process are seen, and packages are told to take PyTorch's. The
libraries are stood in for by ones that say a version and nothing else."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from graphproof.device import cudnn

SEE = """
import ctypes, sys
from graphproof.device import cudnn
for file in sys.argv[1:]:
    ctypes.CDLL(file, mode=ctypes.RTLD_GLOBAL)
print(cudnn.setting())
"""


class Libraries(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="graphproof-cudnn-")
        self.addCleanup(shutil.rmtree, self.folder)

    def library(self, place: str, version: int) -> str:
        """A libcudnn.so.9 in a folder of its own, whose path the loader has not seen."""
        file = os.path.join(self.folder, place, "libcudnn.so.9")
        os.makedirs(os.path.dirname(file))
        source = f"unsigned long cudnnGetVersion(void) {{ return {version}; }}"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-Wl,-soname,libcudnn.so.9",
                        "-xc", "-", "-o", file], input=source, text=True, check=True)
        return file

    def seen(self, *files: str) -> str:
        """What a process reports that has loaded these libraries one after the other."""
        root = os.path.dirname(os.path.dirname(os.path.abspath(cudnn.__file__)))
        done = subprocess.run([sys.executable, "-c", SEE, *files], capture_output=True, text=True,
                              check=True,
                              env={**os.environ, "PYTHONPATH": os.path.dirname(root)})
        return done.stdout.strip()

    @unittest.skipIf(shutil.which(os.environ.get("CC", "cc")) is None, "no compiler of C")
    def test_one_and_two_are_reported_with_versions_and_files(self):
        of_torch = self.library("packages/nvidia/cudnn/lib", 91900)
        of_system = self.library("usr/local/cuda/lib64", 91400)
        self.assertEqual(self.seen(of_torch, of_torch), f"9.19.0 of {of_torch}")
        self.assertEqual(self.seen(of_torch, of_system),
                         f"9.19.0 of {of_torch} and 9.14.0 of {of_system}")
        self.assertEqual(self.seen(), "none")

    def test_parts_of_a_library_are_no_second_one(self):
        maps = os.path.join(self.folder, "maps")
        with open(maps, "w", encoding="utf-8") as file:
            file.write("7f00-7f01 r-xp 0 00:01 5 /p/lib/libcudnn_graph.so.9\n"
                       "7f01-7f02 r-xp 0 00:01 6 /p/lib/libcudnn.so.9\n"
                       "7f02-7f03 rw-p 0 00:01 6 /p/lib/libcudnn.so.9\n")
        self.assertEqual(cudnn.mapped(maps), ["/p/lib/libcudnn.so.9"])

    def test_packages_are_told_of_that_of_torch_unless_the_user_chose(self):
        torch = os.path.join(self.folder, "site", "torch", "__init__.py")
        home = os.path.join(self.folder, "site", "nvidia", "cudnn")
        with mock.patch("importlib.util.find_spec", return_value=mock.Mock(origin=torch)):
            environment = {}
            cudnn.choose_that_of_torch(environment)
            self.assertEqual(environment, {})  # PyTorch has none of its own here
            os.makedirs(os.path.join(home, "lib"))
            open(os.path.join(home, "lib", "libcudnn.so.9"), "wb").close()
            for chosen, wanted in (({}, {"CUDNN_HOME": home}),
                                   ({"CUDNN_HOME": "/mine"}, {"CUDNN_HOME": "/mine"}),
                                   ({"CUDNN_PATH": "/mine"}, {"CUDNN_PATH": "/mine"})):
                cudnn.choose_that_of_torch(chosen)
                self.assertEqual(chosen, wanted)


if __name__ == "__main__":
    unittest.main()
