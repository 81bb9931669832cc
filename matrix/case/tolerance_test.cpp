#include "matrix/case/tolerance.h"

#include <gtest/gtest.h>

#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

Tolerances parse(const std::string& text) {
  return parse_tolerances(text, Origin::option("tolerance", text));
}

TEST(Tolerance, ATextComesBackFromWhatItSays) {
  const Tolerances both = {{"losses", {1e-5, 1e-8}}, {"gradients", {1e-4, 0}}};
  EXPECT_EQ(tolerances_text(both),
            "losses: rtol 1e-05 atol 1e-08; gradients: rtol 0.0001 atol 0.0");
  EXPECT_EQ(parse(tolerances_text(both)), both);
  EXPECT_EQ(tolerances_text({}), "none");
  EXPECT_TRUE(parse("none").empty());
}

TEST(Tolerance, EveryTensorOfTheEvidenceHasAClassOrIsBitwise) {
  EXPECT_EQ(class_of_tensor("losses"), "losses");
  EXPECT_EQ(class_of_tensor("grad:embedding.weight"), "gradients");
  EXPECT_EQ(class_of_tensor("param:layers.0.mlp.up.weight"), "parameters");
  EXPECT_EQ(class_of_tensor("state:clip.norm"), "optimizer_state");
  EXPECT_EQ(class_of_tensor("mask:0.0.core_attention"), "");
}

TEST(Tolerance, EveryMistakeIsRefusedAtItsPlace) {
  const struct {
    const char *text, *what;
    int column;
  } rows[] = {
      {"", "a tolerance that can't be read", 1},
      {"losses", "a tolerance that can't be read", 1},
      {"losses: rtol 1e-5", "a tolerance that can't be read", 1},
      {"losses: rtol 1e-5 atol -1", "a tolerance that can't be read", 1},
      {"losses: rtol 2 atol 0", "a tolerance that can't be read", 1},
      {"losses: rtol nan atol 0", "a tolerance that can't be read", 1},
      {"losses: rtol 0 atol 0 ulp 1", "a tolerance that can't be read", 1},
      {"losses: rtol 0 atol 0; gradient: rtol 0 atol 0", "there is no class of tensors `gradient`",
       23},
      {"losses: rtol 0 atol 0; losses: rtol 0 atol 0", "two tolerances for `losses`", 23},
  };
  for (const auto& row : rows) {
    const Problem problem = thrown([&] { parse(row.text); });
    EXPECT_EQ(problem.what, row.what) << row.text;
    EXPECT_EQ(problem.place.column, row.column) << row.text;
  }
}

}  // namespace
}  // namespace graphproof::matrix
