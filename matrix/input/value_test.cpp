#include "matrix/input/value.h"

#include <gtest/gtest.h>

namespace graphproof::matrix {
namespace {

TEST(ValueTest, EachKindHasOneTextAndOneJson) {
  const struct {
    Value value;
    const char* text;
    const char* json;
  } rows[] = {{true, "true", "true"},
              {std::int64_t{-4}, "-4", "-4"},
              {std::string("full_iteration"), "full_iteration", "\"full_iteration\""},
              {std::string("full(block,2)"), "full(block,2)", "\"full(block,2)\""},
              {std::string("a,b"), "\"a,b\"", "\"a,b\""},
              {std::string("x=y"), "\"x=y\"", "\"x=y\""},
              {std::string(""), "\"\"", "\"\""},
              {std::string("f(a"), "\"f(a\"", "\"f(a\""},
              {std::string(")("), "\")(\"", "\")(\""},
              {std::vector<std::string>{}, "[]", "[]"},
              {std::vector<std::string>{"attn", "mlp"}, "[attn,mlp]", "[\"attn\",\"mlp\"]"},
              {Absent{}, "absent", "null"}};
  for (const auto& row : rows) {
    EXPECT_EQ(value_text(row.value), row.text);
    EXPECT_EQ(value_json(row.value).dump(), row.json);
  }
  EXPECT_EQ(value_text(Unknown{}), "unknown");
}

}  // namespace
}  // namespace graphproof::matrix
