// verify: tests whether rows cover all combinations of a model. The code is independent of the
// generator's.
#include "matrix/cover/verify.h"

#include <fmt/format.h>

#include <memory>

#include "launcher/cli/cover_model_file.h"
#include "launcher/cli/input_file.h"
#include "launcher/cli/verb.h"
#include "matrix/cover/files/row_file.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

constexpr std::size_t kShown = 10;  // mistakes printed as text; --json has more

struct VerifyOptions {
  ModelOptions model;
  std::string rows;
  int strength = 2;
  bool json = false;
};

record::ExitCode execute_verify(const VerifyOptions& options, Surroundings& surroundings) {
  const cover::ModelFile file = read_model_file(options.model, surroundings);
  const std::vector<cover::Row> rows =
      cover::read_rows(read_input(options.rows), options.rows, file.model, cover::Unknown::refuse);
  const cover::Verification found = cover::verify(file.model, rows, options.strength);
  const record::ExitCode code = found.complete() ? record::ExitCode::ok : record::ExitCode::product;
  if (options.json) {
    nlohmann::json invalid = nlohmann::json::array(), missing = nlohmann::json::array();
    for (const cover::InvalidRow& row : found.invalid)
      invalid.push_back({{"row", row.index + 1}, {"breaks", row.broken}});
    for (const cover::Cells& cells : found.missing)
      missing.push_back(cells_json(file.model, cells));
    surroundings.out << nlohmann::json{{"rows", rows.size()},
                                       {"strength", options.strength},
                                       {"complete", found.complete()},
                                       {"raw", found.raw},
                                       {"reachable", found.reachable},
                                       {"invalid_count", found.invalid_count},
                                       {"missing_count", found.missing_count},
                                       {"invalid", invalid},
                                       {"missing", missing}}
                            .dump(2)
                     << "\n";
    return code;
  }
  surroundings.out << fmt::format(
      "{} rows: {}; {:.0f} of {:.0f} reachable combinations covered, {:.0f} unreachable, {} rows "
      "invalid\n",
      rows.size(), found.complete() ? "complete" : "NOT complete",
      found.reachable - static_cast<double>(found.missing_count), found.reachable,
      found.raw - found.reachable, found.invalid_count);
  for (std::size_t at = 0; at < std::min(kShown, found.invalid.size()); ++at)
    surroundings.out << fmt::format(
        "  row {} breaks {}\n", found.invalid[at].index + 1,
        found.invalid[at].broken.empty()
            ? "the rule that a row has at most one negative value"
            : record::printable(matrix::listed(found.invalid[at].broken)));
  for (std::size_t at = 0; at < std::min(kShown, found.missing.size()); ++at) {
    std::string text;
    const nlohmann::json cells = cells_json(file.model, found.missing[at]);
    for (const auto& [name, value] : cells.items())
      text += (text.empty() ? "" : ", ") + name + "=" + value.get<std::string>();
    surroundings.out << "  no row has " << record::printable(text) << "\n";
  }
  return code;
}

}  // namespace

Action declare_verify(CLI::App& app) {
  const auto options = std::make_shared<VerifyOptions>();
  declare(app, options->model);
  app.add_option("FILE", options->rows,
                 "the rows: CSV whose first line has the parameter names, or JSON lines")
      ->required()
      ->type_name("FILE");
  app.add_option("--strength", options->strength,
                 "how many parameters are combined, 1 to 6 (default: 2)")
      ->type_name("T");
  app.add_flag("--json", options->json, "print a JSON report");
  return [options](Surroundings& surroundings) { return execute_verify(*options, surroundings); };
}

}  // namespace graphproof::cli
