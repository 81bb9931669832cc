#include "reports/record/evidence/line_description.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "reports/record/evidence/evidence.h"

namespace graphproof::record {
namespace {

TEST(LineDescription, EachKindHasItsOwnNameAndSaysWhatItIs) {
  std::set<std::string> names;
  for (const KindDescription& kind : kind_descriptions()) {
    EXPECT_TRUE(names.insert(kind.kind).second) << kind.kind;
    EXPECT_TRUE(kind.doc.ends_with('.')) << kind.kind;
    for (const FieldDescription& field : kind.fields)
      EXPECT_FALSE(field.doc.empty()) << kind.kind << "." << field.name;
  }
}

TEST(LineDescription, TheExampleOfEachKindIsReadAndWrittenUnchanged) {
  std::istringstream examples(evidence_examples());
  std::size_t lines = 0;
  for (std::string text; std::getline(examples, text); ++lines) {
    EvidenceLine line{.fields = nlohmann::json::parse(text)};
    line.kind = line.fields.at("kind");
    std::string written;
    with_typed(line, [&](const auto& typed) { written = line_json(typed).dump(); });
    EXPECT_EQ(nlohmann::json::parse(written.empty() ? "null" : written), line.fields) << text;
  }
  EXPECT_EQ(lines, kind_descriptions().size());
}

}  // namespace
}  // namespace graphproof::record
