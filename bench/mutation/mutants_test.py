"""bench/mutation/mutants.py: what it changes, that every change does what it says when it is active
and nothing when it is not, and that survivors.json speaks of changes of today's sources.

GRAPHPROOF_PARSER is the folder of tree-sitter and its grammar, GRAPHPROOF_CXX a compiler.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), os.environ["GRAPHPROOF_PARSER"]]
import mutants  # noqa: E402

SOURCE = rb"""#include <cstdio>
#include <vector>
template <int kWidth = 2>
int widened(int value) { return kWidth * value; }
constexpr int while_compiling(int value) { return value; }
int first(int only_early) { return only_early * 2; }
const int early = widened(first(3));
constexpr int kFixed = 3 + 4;
int twice(bool negative) {
  int result = 0;
  for (int i = 0; i < 3; ++i)
    result += 2;
  if (negative)
    result = -result;
  else
    result *= 10;
  switch (result) {
    case 6: return 1;
    default: break;
  }
  if constexpr (kFixed == 7) result += widened<1>(1);
  if (result > 100) throw 5 + 6;
  const auto in_a_lambda = [](int of) { return of && true; };
  return in_a_lambda(result) ? result : 0;
}
int main(int argc, char** argv) {
  std::printf("%d %d\n", twice(false), twice(true));
}
"""

# As the bench builds the source of the program.
MARKED = mutants.marked(SOURCE).split(b"#line 1\n", 1)[1]


def changed(source):
    """The changed source with all mutants, which have the first numbers, and all blocks."""
    _, found, blocks = mutants.mutate("source.cpp", source, lambda what: None)
    numbers = {what: number for number, (_, what) in enumerate(found + blocks)}
    return mutants.mutate("source.cpp", source, numbers.get)


class Mutants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        text, cls.found, cls.blocks = changed(MARKED)
        (folder / "source.cpp").write_bytes(text)
        cls.program = folder / "program"
        subprocess.run([os.environ["GRAPHPROOF_CXX"], "-std=c++20", "-w", f"-I{ROOT}",
                        folder / "source.cpp", "-o", cls.program], check=True)

    def run_with(self, number, **settings):
        return subprocess.run([self.program], text=True, capture_output=True, timeout=10,
                              env=dict(os.environ, GRAPHPROOF_MUTANT=str(number)) | settings)

    def number_of(self, kind, before):
        numbers = [n for n, m in self.found if (m.kind, m.before) == (kind, before)]
        self.assertEqual(len(numbers), 1, (kind, before, self.found))
        return numbers[0]

    def test_without_an_active_change_the_program_is_the_original(self):
        self.assertEqual(self.run_with(-1).stdout, "61 -5\n")

    def test_an_active_change_does_what_it_says(self):
        for kind, before, after, printed in (
                ("operator", "i < 3", "i <= 3", "81 -7\n"),
                ("condition", "negative", "!(negative)", "-5 61\n"),
                ("statement", "result += 2;", "", "1 1\n"),
                ("constant", "10", "11", "67 -5\n"),
                ("operator", "result > 100", "result >= 100", "61 -5\n"),
                ("operator", "kWidth * value", "kWidth + value", "62 -4\n")):
            with self.subTest(before):
                number = self.number_of(kind, before)
                self.assertEqual(self.found[number][1].after, after)
                self.assertEqual(self.run_with(number).stdout, printed)

    def test_what_is_decided_while_compiling_and_what_words_an_error_stays(self):
        texts = {(m.line, m.before) for _, m in self.found}
        self.assertFalse({line for line, _ in texts} & {3, 8}, texts)
        self.assertNotIn((18, "6"), texts)
        self.assertNotIn((21, "kFixed == 7"), texts)
        self.assertNotIn((22, "5 + 6"), texts)

    def test_lines_stay_where_they_were(self):
        text, _, _ = changed(MARKED)
        body = text.split(b"#line 1\n", 1)[1].split(b"\n")
        self.assertEqual(len(body), len(SOURCE.split(b"\n")))
        for written, original in zip(body, MARKED.split(b"\n")):
            if b"mutant(" not in written:
                self.assertEqual(written, original)

    def test_a_file_says_which_changes_were_reached(self):
        seen = self.reached()
        self.assertTrue(seen[self.number_of("operator", "i < 3")])
        # The program neither returns from `case 6` nor has a result that is false.
        self.assertEqual([m.before for n, m in self.found if not seen[n]], ["1", "0"])

    def reached(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(len(self.found) + len(self.blocks)))
            file.flush()
            self.run_with(-1, GRAPHPROOF_MUTANTS_REACHED=file.name)
            return pathlib.Path(file.name).read_bytes()

    def test_what_runs_before_main_is_told_apart(self):
        seen = self.reached()
        self.assertEqual(seen[self.number_of("operator", "kWidth * value")], 1 | 2)
        self.assertEqual(seen[self.number_of("operator", "i < 3")], 2)
        early = [n for n, m in self.found if m.before == "only_early * 2"]
        self.assertEqual([seen[n] for n in early], [1])

    def test_blocks_say_that_they_are_entered_and_whose_body_they_are(self):
        seen = self.reached()
        self.assertEqual([(block.function, seen[n]) for n, block in self.blocks],
                         [("widened", 3), ("first", 1), ("", 2), ("twice", 2), ("main", 1)])

    def test_a_change_that_is_not_asked_for_is_not_built(self):
        text, found, blocks = mutants.mutate("source.cpp", MARKED, lambda what: None)
        self.assertEqual(text.split(b"#line 1\n", 1)[1], MARKED)
        self.assertEqual([m for _, m in found], [m for _, m in self.found])
        self.assertEqual([b.line for _, b in blocks], [b.line for _, b in self.blocks])


class Survivors(unittest.TestCase):
    def test_every_row_means_changes_of_the_tree_and_says_why_no_case_shows_them(self):
        rows = json.loads((HERE / "survivors.json").read_text())["survivors"]
        self.assertTrue(rows)
        found = []
        for file in sorted({row["file"] for row in rows}):
            found += [m for _, m in mutants.mutate(file, (ROOT / file).read_bytes(),
                                                   lambda m: None)[1]]
        for row in rows:
            with self.subTest(row=row):
                self.assertTrue(any(mutants.is_row(m, row) for m in found))
                self.assertGreater(len(row["why"]), 20)

    def test_tests_and_planted_faults_are_not_changed(self):
        files = mutants.sources(ROOT, ["workloads", "fixtures/comm"])
        self.assertIn("workloads/training/optimizer.cpp", files)
        self.assertFalse([f for f in files if "_test" in f or "/faults/" in f or "/testing/" in f])


if __name__ == "__main__":
    unittest.main()
