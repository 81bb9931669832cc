// The covering generator compared with the best published sizes and with PICT, on models that lie
// outside the repository: a folder with casa/*.json, cudagraph/* and results/*.json (reports in the
// form that the option --models expects). One thread; seconds are CPU seconds of that thread, which
// a busy machine does not change. Every answer is verified.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/cost.h"
#include "matrix/cover/cover.h"
#include "matrix/cover/files/model_file.h"
#include "matrix/cover/verify.h"
#include "reports/record/text/file.h"

namespace {

namespace fs = std::filesystem;
using namespace graphproof;
using bench::cpu_seconds;
using bench::peak_mb;

struct Arguments {
  fs::path models;
  int strength = 2;
  double seconds = 10;  // 0: first answers only
  std::uint64_t seed = 1;
  bool verify = true;
  std::vector<std::string> files;  // relative to the folder; all of casa/ where none is named
};

struct Reference {
  nlohmann::json published, pict;
  int strength = 2;

  /// The smallest size that any tool found, however long it ran.
  std::optional<int> best(const std::string& model) const {
    std::optional<int> best;
    if (!published.contains("models") || !published["models"].contains(model)) return best;
    const nlohmann::json& strengths = published["models"][model];
    const std::string key = std::to_string(strength);
    if (!strengths.contains(key)) return best;
    for (const auto& [tool, figures] : strengths[key].items())
      if (figures.contains("min") && figures["min"].is_number() &&
          (!best || figures["min"] < *best))
        best = figures["min"].get<int>();
    return best;
  }

  /// PICT in its default order.
  std::optional<std::pair<int, double>> measured(const std::string& model) const {
    if (!pict.contains("runs")) return {};
    for (const nlohmann::json& run : pict["runs"])
      if (run["model"] == model && run["t"] == strength && run["seed"].is_null() &&
          run["status"] == "ok")
        return std::pair{run["size"].get<int>(), run["cpu_s"].get<double>()};
    return {};
  }
};

nlohmann::json json_or_empty(const fs::path& file) {
  return fs::exists(file) ? nlohmann::json::parse(record::read_text(file))
                          : nlohmann::json::object();
}

struct Measured {
  std::size_t first_rows = 0, rows = 0;
  double first_seconds = 0, best_seconds = 0, total_seconds = 0;
  std::int64_t steps = 0, at_least = 0;
  std::string verdict;
};

Measured measure(const cover::Model& model, const Arguments& arguments) {
  Measured measured;
  const double began = cpu_seconds();
  cover::Options options{.strength = arguments.strength,
                         .seed = arguments.seed,
                         .steps = arguments.seconds > 0 ? std::int64_t{1} << 60 : 0};
  if (arguments.seconds > 0)
    options.stop = [&] { return cpu_seconds() - began >= arguments.seconds; };
  options.progress = [&](const cover::Progress& progress) {
    const double now = cpu_seconds() - began;
    if (measured.first_rows == 0) {
      measured.first_rows = progress.rows;
      measured.first_seconds = now;
    }
    measured.best_seconds = now;
  };
  const cover::Result result = cover::cover(model, options);
  measured.total_seconds = cpu_seconds() - began;
  measured.rows = result.rows.size();
  measured.steps = result.steps;
  measured.at_least = result.at_least;
  if (arguments.verify) {
    std::vector<cover::Row> rows;
    for (const cover::PlannedRow& row : result.rows) rows.push_back(row.cells);
    const cover::Verification found = cover::verify(model, rows, arguments.strength);
    measured.verdict = found.complete() ? "ok"
                                        : fmt::format("WRONG: {} invalid, {} missing",
                                                      found.invalid_count, found.missing_count);
  }
  return measured;
}

int run(const Arguments& arguments) {
  const Reference reference{json_or_empty(arguments.models / "results/published_casa_ibm.json"),
                            json_or_empty(arguments.models / "results/pict_3.7.4_measured.json"),
                            arguments.strength};
  std::vector<std::string> files = arguments.files;
  if (files.empty())
    for (const fs::directory_entry& entry : fs::directory_iterator(arguments.models / "casa"))
      if (entry.path().extension() == ".json")
        files.push_back("casa/" + entry.path().filename().string());
  std::sort(files.begin(), files.end());

  fmt::print(
      "strength {}, {} CPU s a model, seed {}, one thread; PICT and published figures are from "
      "{}\n",
      arguments.strength, arguments.seconds, arguments.seed,
      (arguments.models / "results").string());
  fmt::print("{:<22}{:>7}{:>7}{:>9}{:>8}{:>9}{:>8}{:>9}{:>7}{:>10}{:>9}{:>9}  {}\n", "model",
             "best", "PICT", "PICT s", "first", "first s", "rows", "at s", "ratio", "steps",
             "at least", "total s", "verified");
  double ratios = 0, pict_ratios = 0, first_seconds = 0, total_seconds = 0, worst_first = 0;
  int compared = 0, pict_compared = 0, equal = 0, wrong = 0;
  for (const std::string& file : files) {
    const std::string name = fs::path(file).stem().stem().string();
    const cover::ModelFile model = cover::read_model(record::read_text(arguments.models / file),
                                                     file, cover::Format::automatic);
    const Measured measured = measure(model.model, arguments);
    const auto best = reference.best(name);
    const auto pict = reference.measured(name);
    const auto rows = static_cast<double>(measured.rows);
    fmt::print("{:<22}{:>7}{:>7}{:>9}{:>8}{:>9.3f}{:>8}{:>9.2f}{:>7}{:>10}{:>9}{:>9.2f}  {}\n",
               name, best ? std::to_string(*best) : "-", pict ? std::to_string(pict->first) : "-",
               pict ? fmt::format("{:.2f}", pict->second) : "-", measured.first_rows,
               measured.first_seconds, measured.rows, measured.best_seconds,
               best ? fmt::format("{:.3f}", rows / *best) : "-", measured.steps, measured.at_least,
               measured.total_seconds, measured.verdict);
    std::fflush(stdout);
    first_seconds += measured.first_seconds;
    total_seconds += measured.total_seconds;
    worst_first = std::max(worst_first, measured.first_seconds);
    wrong += measured.verdict.starts_with("WRONG") ? 1 : 0;
    if (!best) continue;
    ++compared;
    ratios += rows / *best;
    equal += static_cast<int>(measured.rows) <= *best ? 1 : 0;
    if (!pict) continue;
    ++pict_compared;
    pict_ratios += pict->first / static_cast<double>(*best);
  }
  if (compared > 0)
    fmt::print("mean rows / best {:.4f} on {} models, equal or fewer on {}; ", ratios / compared,
               compared, equal);
  if (pict_compared > 0)
    fmt::print("PICT {:.4f} on {}; ", pict_ratios / pict_compared, pict_compared);
  fmt::print(
      "first answers {:.2f} s in all, worst {:.2f} s; {:.1f} s in all; peak {:.0f} MB; {} wrong\n",
      first_seconds, worst_first, total_seconds, peak_mb(), wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  CLI::App app("the covering generator compared with the best published sizes and PICT's");
  app.add_option(
         "--models", arguments.models,
         "has casa/*.json, results/published_casa_ibm.json and results/pict_3.7.4_measured.json")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--strength", arguments.strength);
  app.add_option("--seconds", arguments.seconds, "CPU seconds a model; 0: first answers alone");
  app.add_option("--seed", arguments.seed);
  app.add_flag("!--no-verify", arguments.verify);
  app.add_option("FILE", arguments.files,
                 "below the folder, such as cudagraph/cudagraph_na.pict; none: all of casa/");
  CLI11_PARSE(app, count, words);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "graphproof-bench-covering: " << error.what() << "\n";
    return 2;
  }
}
