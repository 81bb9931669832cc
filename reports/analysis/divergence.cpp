#include "reports/analysis/divergence.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "reports/record/evidence/evidence.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// The line of `rank`; absent if it wrote none or its file cannot be read.
std::optional<json> line_of(const std::filesystem::path& folder, int rank) {
  try {
    const record::Evidence evidence =
        record::read_evidence(folder / record::evidence_file_name(rank));
    const auto lines = evidence.of("divergence");
    if (!lines.empty()) return lines.front()->fields;
  } catch (const record::ReadError&) {
  }
  return std::nullopt;
}

bool found(const json& line) { return line.value("found", json()) == true; }

std::int64_t agreeing(const json& line) {
  const json taps = line.value("taps", json());
  return taps.is_number_integer() ? taps.get<std::int64_t>() : 0;
}

/// Another stage computed the tensor, and the line of that stage's rank says more.
bool received(const json& line) { return text_of(line, "module") == "transfer"; }

std::string named(int rank, const json& line) {
  std::string text = "rank " + std::to_string(rank) + ", step " + text_of(line, "step");
  const auto add = [&](const char* word, const char* key) {
    const std::string value = text_of(line, key);
    if (!value.empty() && value != "-1")
      text += ", " + (*word ? std::string(word) + " " : "") + value;
  };
  add("microbatch", "microbatch");
  add("layer", "layer");
  add("", "module");
  add("", "direction");
  const std::string op = text_of(line, "operator");
  text += ", " + op;
  const json mismatch = line.value("mismatch", json());
  if (!mismatch.is_object()) return text + ": " + text_of(line, "why");
  if (const std::string tensor = text_of(mismatch, "tensor"); tensor != op)
    text += " into " + tensor;
  text += ", element " + text_of(mismatch, "element") + ": eager " + text_of(mismatch, "left") +
          ", graph " + text_of(mismatch, "right") + " (" + text_of(mismatch, "differing") + " of " +
          text_of(mismatch, "elements") + " elements differ; " +
          std::to_string(std::max<std::int64_t>(0, agreeing(line) - 1)) +
          " results before it agree)";
  return text;
}

}  // namespace

std::filesystem::path divergence_folder(const std::filesystem::path& attempt_folder) {
  return attempt_folder / "divergence";
}

std::string divergence_text(const std::filesystem::path& attempt_folder, int ranks) {
  const std::filesystem::path folder = divergence_folder(attempt_folder);
  std::error_code unreadable;
  if (!std::filesystem::is_directory(folder, unreadable)) return {};
  std::optional<std::pair<int, json>> first;
  std::string why;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto line = line_of(folder, rank);
    if (!line) continue;
    if (!found(*line))
      why = text_of(*line, "why");
    else if (!first || std::pair(received(*line), agreeing(*line)) <
                           std::pair(received(first->second), agreeing(first->second)))
      first = {rank, *line};
  }
  if (first) return record::printable(named(first->first, first->second));
  if (why.empty())
    return "not found: the run that searched for it failed; its evidence is in " + folder.string();
  return record::printable("none: " + why);
}

}  // namespace graphproof::reports
