// The live block on a terminal of one kind, and plain lines elsewhere.
#include "launcher/cli/show/show_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::cli {
namespace {

using record::operator""_verdict;

/// What a terminal shows of a text: newlines, returns, "up" and "clear below" are followed.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines = {""};
  std::size_t row = 0, column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      column = 0;
      if (++row == lines.size()) lines.emplace_back();
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text.compare(i, 2, "\x1b[") == 0) {
      std::size_t end = i + 2;
      while (std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
      if (text[end] == 'A') row -= std::stoul(text.substr(i + 2, end - i - 2));
      if (text[end] == 'J') {
        lines.resize(row + 1);
        lines[row].resize(column);
      }
      i = end;
    } else {
      lines[row].resize(std::max(lines[row].size(), column + 1), ' ');
      lines[row][column++] = text[i];
    }
  }
  return lines;
}

record::Record ended(record::Verdict verdict) {
  return {.run_id = "r",
          .case_id = std::string(16, '1'),
          .name = "tp=2",
          .verdict = verdict,
          .observed = verdict,
          .rule = 60,
          .reason = "arms differ",
          .seconds = 1.5};
}

struct Printing : testing::Test {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  std::ostringstream out, err;
  Surroundings on(bool terminal) {
    return {.catalogue = catalogue,
            .command_line = {},
            .out = out,
            .err = err,
            .terminal = terminal,
            .columns = 80};
  }
  const reports::Progress progress{.done = 1,
                                   .planned = 4,
                                   .running = 2,
                                   .elapsed_seconds = 3,
                                   .now = {"tp=2 replay", "tp=4 capture"}};
};

TEST_F(Printing, OnATerminalTheBlockIsWrittenOverAndFailuresStay) {
  Surroundings surroundings = on(true);
  ProgressPrinter printer(surroundings, false);
  const launcher::RunListener listener = printer.listener();
  ASSERT_TRUE(listener.progress);
  for (int i = 0; i < 5; ++i) listener.progress(progress);
  EXPECT_EQ(screen(out.str()),
            (std::vector<std::string>{"[#####...............] 1/4  0 failed  0:03 elapsed  ? left",
                                      "  tp=2 replay", "  tp=4 capture"}));
  listener.finished(ended("fail.numerics"_verdict), progress);
  reports::Progress fewer = progress;
  fewer.now = {"tp=4 capture"};
  listener.progress(fewer);
  listener.finished(ended("pass"_verdict), fewer);
  const auto lines = screen(out.str());
  ASSERT_EQ(lines.size(), 3u) << out.str();
  EXPECT_EQ(lines[0], "[  1/4] fail.numerics            1.50 s  tp=2  arms differ");
  EXPECT_EQ(lines[2], "  tp=4 capture");
  printer.end();
  EXPECT_EQ(screen(out.str()), (std::vector<std::string>{lines[0], ""}));
}

TEST_F(Printing, APipeGetsOneLineACaseAndNoEscapes) {
  Surroundings surroundings = on(false);
  ProgressPrinter printer(surroundings, false);
  const launcher::RunListener listener = printer.listener();
  EXPECT_FALSE(listener.progress);
  listener.finished(ended("pass"_verdict), progress);
  listener.finished(ended("fail.numerics"_verdict), progress);
  printer.end();
  EXPECT_EQ(out.str(),
            "[  1/4] pass                     1.50 s  tp=2\n"
            "[  1/4] fail.numerics            1.50 s  tp=2  arms differ\n");
}

}  // namespace
}  // namespace graphproof::cli
