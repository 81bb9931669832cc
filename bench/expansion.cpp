// The whole product of a model: how long counting takes, how many valid rows a second stream by,
// how many a second are drawn, how long an explanation takes, and what extending an earlier
// covering plan costs. One thread; seconds are CPU seconds of that thread.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "bench/cost.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/cover/cover.h"
#include "matrix/cover/files/model_file.h"
#include "matrix/cover/model/draw.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/product.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/covering.h"
#include "reports/record/text/file.h"

namespace {

using namespace graphproof;
using bench::cpu_seconds;
using bench::peak_mb;

constexpr double kLongestWalk_s =
    5;  // of one model; the walk over a product of billions is cut off there
constexpr std::size_t kDrawn = 2'000;
constexpr int kExplained = 300;
constexpr std::int64_t kExtensionSteps = 20'000;

struct Enough {};

/// An earlier plan's rows taken into a plan for `model`, compared with a plan made afresh with the
/// same effort.
void extend(const std::string& name, const std::string& change, const cover::Model& earlier,
            int earlier_strength, const cover::Model& model, int strength) {
  const auto plan = [](const cover::Model& of, int wanted, std::vector<cover::Row> previous) {
    return cover::cover(
        of, {.strength = wanted, .steps = kExtensionSteps, .previous = std::move(previous)});
  };
  std::vector<cover::Row> previous;
  for (const cover::PlannedRow& row : plan(earlier, earlier_strength, {}).rows)
    previous.push_back(row.cells);
  const std::size_t before = previous.size();
  const double began = cpu_seconds();
  const cover::Result extended = plan(model, strength, std::move(previous));
  const double took = cpu_seconds() - began;
  const std::size_t fresh = plan(model, strength, {}).rows.size();
  std::size_t kept = 0, repaired = 0;
  int most_changed = 0;
  for (const cover::PlannedRow& row : extended.rows) {
    if (row.origin != cover::Origin::previous) continue;
    ++(row.changed_cells == 0 ? kept : repaired);
    most_changed = std::max(most_changed, row.changed_cells);
  }
  std::cout << fmt::format(
      "{:<24} {:<14} {} rows before: {} kept, {} repaired (at most {} cells), {} dropped, {} new = "
      "{} rows in {:.1f} s; fresh {} ({:+.1f} %)\n",
      name, change, before, kept, repaired, most_changed, extended.dropped.size(),
      extended.rows.size() - kept - repaired, extended.rows.size(), took, fresh,
      100.0 * (static_cast<double>(extended.rows.size()) / static_cast<double>(fresh) - 1));
}

void extend(const std::string& name, const cover::Model& model) {
  // The earlier model lacks the last value of its widest parameter, or one of its constraints.
  const int count = model.visible_count();
  int widest = 0;
  for (int parameter = 0; parameter < count; ++parameter)
    if (model.parameters[static_cast<std::size_t>(parameter)].values.size() >
        model.parameters[static_cast<std::size_t>(widest)].values.size())
      widest = parameter;
  cover::Model fewer_values = model;
  const int last =
      static_cast<int>(model.parameters[static_cast<std::size_t>(widest)].values.size()) - 1;
  fewer_values.constraints.push_back({"not yet", {{{widest, last, false}}}});
  extend(name, "one value more", fewer_values, 2, model, 2);
  if (!model.constraints.empty()) {
    cover::Model looser = model;
    looser.constraints.erase(looser.constraints.begin() +
                             static_cast<std::ptrdiff_t>(looser.constraints.size() / 2));
    extend(name, "one rule more", looser, 2, model, 2);
  }
  if (count >= 3) extend(name, "pairs to triples", model, 2, model, 3);
}

void measure(const std::string& name, const cover::Model& model, bool rows_alone) {
  double began = cpu_seconds();
  const cover::Product product(model);
  const double counted = cpu_seconds() - began;

  // Work on each row that the compiler can't remove.
  std::uint64_t rows = 0, sum = 0;
  began = cpu_seconds();
  double walked = 0;
  try {
    product.for_each([&](const cover::Row& row) {
      sum += static_cast<std::uint64_t>(row.back());
      if ((++rows & 0xFFFFF) == 0 && cpu_seconds() - began > kLongestWalk_s) throw Enough{};
    });
  } catch (const Enough&) {
  }
  walked = cpu_seconds() - began;

  began = cpu_seconds();
  const std::vector<cover::Row> drawn = cover::draw_rows(model, kDrawn, 1);
  const double sampled = cpu_seconds() - began;

  // First values, then pairs, that no valid row has.
  cover::Oracle oracle(model);
  double longest = 0, all = 0;
  int explained = 0;
  const auto explain = [&](const cover::Cells& cells) {
    if (explained == kExplained || oracle.solve(cells)) return;
    const double start = cpu_seconds();
    oracle.reason(cells);
    const double took = cpu_seconds() - start;
    longest = std::max(longest, took);
    all += took;
    ++explained;
  };
  const int parameters = rows_alone ? 0 : model.visible_count();
  const auto size = [&](int parameter) {
    return static_cast<int>(model.parameters[static_cast<std::size_t>(parameter)].values.size());
  };
  for (int left = 0; left < parameters; ++left)
    for (int right = left + 1; right < parameters && explained < kExplained; ++right)
      for (int i = 0; i < size(left) && explained < kExplained; ++i)
        for (int j = 0; j < size(right); ++j) explain({{left, i}, {right, j}});

  std::cout << fmt::format(
      "{:<24} {:>12} raw {:>22} valid  counted in {:.3f} s  {:>7.1f} M rows/s ({} rows, check {})  "
      "{:>6.1f} k draws/s  {} explained, longest {:.2f} ms, mean {:.2f} ms  peak {:.0f} MB\n",
      name, product.raw().text(), product.valid().text(), counted,
      static_cast<double>(rows) / std::max(walked, 1e-9) / 1e6, rows, sum,
      static_cast<double>(drawn.size()) / std::max(sampled, 1e-9) / 1e3, explained, longest * 1e3,
      explained > 0 ? all / explained * 1e3 : 0.0, peak_mb());

  if (!rows_alone) extend(name, model);
}

void run(const std::vector<std::string>& models, std::vector<std::string> profiles,
         bool rows_alone) {
  std::cout << std::unitbuf;  // each figure is printed at once, whatever happens to the next
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  if (models.empty() && profiles.empty()) profiles = {"smoke", "hazards", "pairwise", "nightly"};
  for (const std::string& profile : profiles) {
    const matrix::MatrixFile file = matrix::shipped_matrix_file(profile, catalogue);
    const double began = cpu_seconds();
    const cover::Model model = matrix::cover_model(
        file, catalogue, {.device = "sim", .slots = 4, .stack = {}}, std::nullopt, false);
    std::cout << fmt::format("{:<24} rules tabled in {:.3f} s\n", profile, cpu_seconds() - began);
    measure(profile, model, rows_alone);
  }
  for (const std::string& path : models) {
    const cover::ModelFile file =
        cover::read_model(record::read_text(path), path, cover::Format::automatic);
    measure(path.substr(path.rfind('/') + 1), file.model, rows_alone);
  }
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::string> models, profiles;
  bool rows_alone = false;
  CLI::App app("the whole product of a model");
  app.add_option("--model", models, "a PICT, ACTS or clause model; may be given again")
      ->allow_extra_args(false);
  app.add_option("--profile", profiles,
                 "a shipped profile, for a simulated device of four slots; neither: all that vary")
      ->allow_extra_args(false);
  app.add_flag("--rows", rows_alone, "counting, streaming and drawing alone");
  CLI11_PARSE(app, count, words);
  try {
    run(models, profiles, rows_alone);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "graphproof-bench-expansion: " << error.what() << "\n";
    return 2;
  }
}
