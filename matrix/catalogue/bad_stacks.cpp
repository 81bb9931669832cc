#include "matrix/catalogue/bad_stacks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "matrix/input/located_json.h"

namespace graphproof::matrix {
namespace {

constexpr std::array<std::pair<StackUse, const char*>, 5> kUses = {{
    {StackUse::captured_communication, "captured_communication"},
    {StackUse::spans_nodes, "spans_nodes"},
    {StackUse::expandable_segments, "expandable_segments"},
    {StackUse::graph_registration, "graph_registration"},
    {StackUse::grouped_products, "grouped_products"},
}};

StackUse use_at(const Located& value) {
  const std::string word =
      value.word({"captured_communication", "spans_nodes", "expandable_segments",
                  "graph_registration", "grouped_products"});
  return std::ranges::find(kUses, word, &std::pair<StackUse, const char*>::second)->first;
}

std::optional<Version> version_at(const Located& row, const char* key) {
  if (!row.has(key)) return std::nullopt;
  std::optional<Version> version = parse_version(row.at(key).string());
  if (!version)
    row.at(key).fail("a version that can't be read", "such as 2.30.4", "",
                     "write numbers between dots");
  return version;
}

}  // namespace

std::string_view name(StackUse use) {
  return std::ranges::find(kUses, use, &std::pair<StackUse, const char*>::first)->second;
}

bool BadStack::covers(const Version& version) const {
  return !(from && version < *from) && !(before && version >= *before);
}

std::optional<BadStackMet> BadStack::met(const VersionOf& version_of, const UseHolds& holds) const {
  BadStackMet met{.got = component, .unknown = {}};
  if (const std::optional<Version> version = version_of(component)) {
    if (!covers(*version)) return std::nullopt;
    met.got += " " + version->text;
  } else {
    met.unknown.push_back(component);
  }
  for (const StackUse use : when) {
    const std::optional<bool> known = holds(use);
    if (known == false) return std::nullopt;
    if (!known) met.unknown.emplace_back(name(use));
  }
  return met;
}

std::string BadStack::conditions() const {
  std::string text = component;
  if (from) text += " from " + from->text;
  if (before) text += " before " + before->text;
  const char* join = " with ";
  for (const StackUse use : when) text += std::exchange(join, " and ") + std::string(name(use));
  return text;
}

BadStackTable BadStackTable::parse(const Document& document) {
  BadStackTable table;
  const Located root(document);
  root.expect_keys({"schema", "bad_stacks"}, {});
  root.at("schema").word({"graphproof-bad-stacks/1"});
  for (const Located& row : root.at("bad_stacks").items()) {
    row.expect_keys({"id", "what", "component", "when", "check", "why", "next", "source"},
                    {"from", "before"});
    BadStack bad{.id = row.at("id").string(),
                 .what = row.at("what").string(),
                 .component = row.at("component").string(),
                 .from = version_at(row, "from"),
                 .before = version_at(row, "before"),
                 .when = {},
                 .reported_by = row.at("check").string(),
                 .why = row.at("why").string(),
                 .next = row.at("next").string(),
                 .source = row.at("source").string()};
    if (!bad.from && !bad.before)
      row.fail("a bad stack without versions", "`from`, `before` or both",
               "a defect without a version that ends it belongs into a check", "add a version");
    if (!bad.source.starts_with("https://"))
      row.at("source").fail("a source that can't be opened", "a public address", "",
                            "add the address of the report, starting with https://");
    for (const Located& use : row.at("when").items()) bad.when.push_back(use_at(use));
    if (std::ranges::count(table.rows_, bad.id, &BadStack::id) > 0)
      row.at("id").fail("the row " + bad.id + " appears twice", "an id of its own", "",
                        "choose another id");
    table.rows_.push_back(std::move(bad));
  }
  return table;
}

}  // namespace graphproof::matrix
