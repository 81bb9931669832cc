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

constexpr std::string_view kNames[] = {"megatron-lm", "megatron-bridge", "legacy"};
constexpr std::string_view kNewest = "2026.8.22";
// The day before upstream removed the rule of local graphs on NCCL_GRAPH_REGISTER.
constexpr std::string_view kLegacy = "2026.7.1";
constexpr std::string_view kMegatronLm = "NVIDIA Megatron-LM d98e8a64 (2026-08-22)";
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
  if (!matrix::parse_version(dotted) || dotted.find('.') == std::string::npos)
    throw matrix::InputError(
        {.what = "a version that can't be read",
         .got = given,
         .want = "a day of upstream's main branch, such as 2026-08-22",
         .why = "upstream's graph rules changed between releases; the rules here name days",
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
  const bool bridge = name == "megatron-bridge";
  std::vector<matrix::Document> options, rules;
  append(options, "options/megatron-lm/");
  append(rules, "rules/megatron-lm/");
  if (bridge) {
    append(options, "options/megatron-bridge/");
    append(rules, "rules/megatron-bridge/");
  }
  Dialect dialect{.name = name,
                  .version = version_of(version, name == "legacy" ? kLegacy : kNewest),
                  .upstream = std::string(bridge ? kMegatronBridge : kMegatronLm),
                  .options = OptionTable::parse(options),
                  .rules = {}};
  dialect.rules = UpstreamRules::parse(rules, dialect.options);
  return dialect;
}

}  // namespace graphproof::dialect
