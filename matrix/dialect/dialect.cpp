#include "matrix/dialect/dialect.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "matrix/input/input_error.h"
#include "matrix/input/version.h"

namespace graphproof::dialect {

// Generated from the files that CMakeLists.txt embeds, in its order.
std::string_view embedded(std::string_view name);
std::vector<std::string_view> embedded_names();

namespace {

constexpr std::string_view kNames[] = {"megatron-lm", "megatron-bridge", "legacy", "pytorch"};
constexpr std::string_view kNewest = "2026.8.22";
// The day before upstream removed the rule of local graphs on NCCL_GRAPH_REGISTER.
constexpr std::string_view kLegacy = "2026.7.1";
constexpr std::string_view kMegatronLm = "NVIDIA Megatron-LM d98e8a64 (2026-08-22)";
constexpr std::int64_t kFirstYear = 2019;  // the first year of upstream; releases count from 0
constexpr std::string_view kTorchVersion = "2.11.0";
constexpr std::string_view kPyTorch = "PyTorch 2.11.0 and Transformer Engine 2.14.0";
constexpr std::string_view kMegatronBridge = "NVIDIA-NeMo Megatron-Bridge (2026-08)";

/// Appends the embedded files of `folder`, such as "rules/megatron-lm/".
void append(std::vector<matrix::Document>& documents, std::string_view folder) {
  for (const std::string_view path : embedded_names())
    if (path.starts_with(folder))
      documents.push_back(matrix::parse_document(embedded(path), "matrix/" + std::string(path)));
}

std::string version_of(const std::string& given, std::string_view otherwise) {
  if (given.empty() || given == "newest" || given == "head") return std::string(otherwise);
  std::string dotted = given;
  if (dotted.find('.') == std::string::npos) std::replace(dotted.begin(), dotted.end(), '-', '.');
  const std::vector<std::string> releases = release_names();
  const auto version = matrix::parse_version(dotted);
  const bool day = version && version->numbers.size() > 1 && version->numbers[0] >= kFirstYear;
  if (!day && std::find(releases.begin(), releases.end(), dotted) == releases.end())
    throw matrix::InputError(
        {.what = "a version that can't be read",
         .got = given,
         .want = "a day of upstream's main branch, such as 2026-08-22, or the release " +
                 matrix::listed(releases),
         .why = "upstream's graph rules change with time",
         .next = "leave it out for the newest",
         .place = {}});
  return dotted;
}

}  // namespace

const Rule& Dialect::rule(std::string_view id) const {
  const Rule* found = rules.find(id);
  assert(found != nullptr);
  return *found;
}

std::span<const std::string_view> dialect_names() { return kNames; }

Dialect load_dialect(const std::string& name, const std::string& version) {
  if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) {
    const std::vector<std::string> names(std::begin(kNames), std::end(kNames));
    throw matrix::InputError({.what = "no dialect `" + name + "`",
                              .got = name,
                              .want = "one of " + matrix::listed(names),
                              .why = "",
                              .next = matrix::suggestion(name, names, "choose one of them"),
                              .place = {}});
  }
  const bool bridge = name == "megatron-bridge", torch = name == "pytorch";
  const std::string folder = torch ? "pytorch/" : "megatron-lm/";
  std::vector<matrix::Document> options, rules;
  append(options, "options/" + folder);
  append(rules, "rules/" + folder);
  if (bridge) {
    append(options, "options/megatron-bridge/");
    append(rules, "rules/megatron-bridge/");
  }
  Dialect dialect{.name = name,
                  .version = torch ? std::string(kTorchVersion)
                                   : version_of(version, name == "legacy" ? kLegacy : kNewest),
                  .upstream = std::string(torch    ? kPyTorch
                                          : bridge ? kMegatronBridge
                                                   : kMegatronLm),
                  .options = {},
                  .rules = {}};
  dialect.options = OptionTable::parse(options, dialect.version);
  dialect.rules = UpstreamRules::parse(rules, dialect.options, dialect.version);
  return dialect;
}

}  // namespace graphproof::dialect
