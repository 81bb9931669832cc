#include "reports/record/evidence/former_names.h"

#include <gtest/gtest.h>

#include <set>

#include "reports/record/evidence/evidence.h"
#include "reports/record/evidence/line_description.h"

namespace graphproof::record {
namespace {

using nlohmann::json;

std::string described(const json& schema) { return schema.dump(); }

TEST(FormerNames, LeadToKindsAndFieldsOfToday) {
  for (const FormerKind& former : former_kinds()) {
    const auto kind = std::ranges::find(kind_descriptions(), former.is, &KindDescription::kind);
    ASSERT_NE(kind, kind_descriptions().end()) << former.is;
    std::set<std::string_view> names;
    for (const FieldDescription& field : kind->fields) names.insert(field.name);
    for (const auto& [was, is] : former.fields) {
      EXPECT_TRUE(names.contains(is)) << former.is << "." << is;
      EXPECT_FALSE(names.contains(was)) << former.is << "." << was << " would be lost";
    }
    if (former.was != former.is) {
      EXPECT_EQ(std::ranges::find(kind_descriptions(), former.was, &KindDescription::kind),
                kind_descriptions().end())
          << former.was << " would be read as another kind";
    }
  }
}

TEST(FormerNames, OfAnOlderLineBecomeTodays) {
  std::string kind = "late";
  json fields = {{"kind", "late"}, {"arm", "free_graph"}, {"steps", {2, 3}},
                 {"ms", 6.0},      {"streams", 31},       {"ways", 12}};
  use_todays_names(kind, fields);
  EXPECT_EQ(kind, "delayed_steps");
  EXPECT_EQ(described(fields), described({{"kind", "delayed_steps"},
                                          {"arm", "free_graph"},
                                          {"steps", {2, 3}},
                                          {"ms", 6.0},
                                          {"streams", 31},
                                          {"branches", 12}}));
  const json before = fields;
  use_todays_names(kind, fields);
  EXPECT_EQ(fields, before) << "twice is once";
}

// `operands` is a field of the former kind and the name of the present one.
TEST(FormerNames, OnlyOlderRevisionsAreReadByThem) {
  Evidence evidence;
  const auto add = [&](json fields) {
    std::string kind = fields.at("kind");
    evidence.lines.push_back({.kind = std::move(kind), .fields = std::move(fields), .line = 1});
  };
  add(line_json(StartLine{.revision = 9, .device = "sim"}));
  add({{"kind", "freed"},
       {"arm", "lockstep_graph"},
       {"step", 3},
       {"operands", 120},
       {"freed", json::array()}});
  type_lines(evidence);
  ASSERT_EQ(evidence.of<OperandsLine>().size(), 1u);
  EXPECT_EQ(evidence.of<OperandsLine>()[0].blocks, 120);
  EXPECT_TRUE(evidence.damaged.empty());

  evidence.lines.pop_back();
  evidence.lines[0].fields["revision"] = kEvidenceRevision;
  add({{"kind", "freed"},
       {"arm", "lockstep_graph"},
       {"step", 3},
       {"operands", 120},
       {"freed", json::array()}});
  type_lines(evidence);
  EXPECT_EQ(evidence.damaged.size(), 1u);
}

}  // namespace
}  // namespace graphproof::record
