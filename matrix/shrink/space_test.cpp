#include "matrix/shrink/space.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"
#include "matrix/cover/model/oracle.h"

namespace graphproof::shrink {
namespace {

const matrix::Catalogue& catalogue() {
  static const matrix::Catalogue kCatalogue = matrix::load_catalogue();
  return kCatalogue;
}
matrix::Case case_named(const std::string& name) {
  return matrix::case_from_name(catalogue().axes, name, "test");
}
const matrix::Machine kMachine{.device = "sim", .slots = 4, .stack = {}};

int parameter(const Space& space, const std::string& axis) {
  for (std::size_t i = 0; i < space.axes().size(); ++i)
    if (space.axes()[i].name == axis) return static_cast<int>(i);
  return -1;
}

TEST(SpaceTest, ACaseAloneIsVariedAgainstTheDefaults) {
  const Space space(case_named("impl=manual,tp=2,dropout=true"), {}, nullptr, catalogue(),
                    kMachine);
  ASSERT_EQ(space.axes().size(), 3u);
  for (const matrix::VaryingAxis& axis : space.axes())
    EXPECT_EQ(axis.values.size(), 2u) << axis.name;
  EXPECT_EQ(space.failing(), (cover::Row{0, 0, 0}));
  EXPECT_EQ(matrix::case_name(catalogue().axes, space.case_of({1, 0, 1})), "tp=2");
}

TEST(SpaceTest, ValuesOfOtherCasesAreVariedTooAndRowsGiveTheirCasesBack) {
  const matrix::Case others[] = {case_named("impl=local,modules=[attn],tp=4"),
                                 case_named("impl=full_iteration,microbatches=2")};
  const Space space(case_named("impl=manual,tp=2"), others, nullptr, catalogue(), kMachine);
  EXPECT_EQ(space.axes()[static_cast<std::size_t>(parameter(space, "tp"))].values.size(), 3u);
  for (const matrix::Case& one : others) EXPECT_EQ(space.case_of(space.row_of(one)), one);
  const cover::Row foreign = space.row_of(case_named("impl=callables"));
  EXPECT_EQ(foreign[static_cast<std::size_t>(parameter(space, "impl"))], cover::kAny);
}

TEST(SpaceTest, RulesAndTheMachineBoundTheRows) {
  const matrix::Case others[] = {case_named("impl=local,tp=4"), case_named("dp=4"),
                                 case_named("comm=c10d")};
  const Space space(case_named("impl=manual,tp=2"), others, nullptr, catalogue(), kMachine);
  cover::Oracle oracle(space.model());
  const auto cell = [&](const std::string& axis, const char* value) {
    const int at = parameter(space, axis);
    const auto& values = space.model().parameters[static_cast<std::size_t>(at)].values;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i].names.front() == value) return cover::Cell{at, static_cast<int>(i)};
    ADD_FAILURE() << axis << " has no " << value;
    return cover::Cell{};
  };
  EXPECT_TRUE(oracle.solve(cover::Cells{cell("tp", "4"), cell("dp", "1")}));
  EXPECT_FALSE(oracle.solve(cover::Cells{cell("tp", "4"), cell("dp", "4")}))
      << "more ranks than slots";
  EXPECT_FALSE(oracle.solve(cover::Cells{cell("comm", "c10d")}))
      << "a process group that sim does not have";
}

TEST(SpaceTest, TheMatrixFilesOwnAxesAndConstraintsHold) {
  const matrix::MatrixFile file = matrix::parse_matrix_file(
      R"J({"schema": "graphproof-matrix/1",
           "axes": {"impl": ["none", "local", "manual"],
                    "modules": {"values": [[], ["attn"]], "when": "impl == local"}, "tp": [1, 2],
                    "dropout": [false, true]},
          "require": [{"id": "X1", "expr": "not (tp == 2 and dropout)", "why": "a test"},
                      {"id": "X2", "expr": "impl != manual or tp == 1", "why": "a test"}]})J",
      "test.json", catalogue(), [](const std::string&) { return std::string(); });
  // The failing case breaks X2, and ran nevertheless.
  const Space space(case_named("impl=manual,tp=2"), {}, &file, catalogue(), kMachine);
  const auto names = [&] {
    std::vector<std::string> ids;
    for (const cover::Constraint& constraint : space.model().constraints)
      ids.push_back(constraint.id);
    return ids;
  }();
  EXPECT_NE(std::find(names.begin(), names.end(), "X1"), names.end());
  EXPECT_EQ(std::find(names.begin(), names.end(), "X2"), names.end());
  EXPECT_EQ(space.failing()[static_cast<std::size_t>(parameter(space, "modules"))], 2)
      << "switched off together with manual";
  EXPECT_EQ(
      space.row_of(case_named(
          "impl=local,modules=[attn]"))[static_cast<std::size_t>(parameter(space, "modules"))],
      1);
}

TEST(SpaceTest, APlantedFaultIsInEveryRow) {
  const Space space(case_named("fault=M23,impl=manual,tp=2"), {}, nullptr, catalogue(), kMachine);
  EXPECT_EQ(parameter(space, "fault"), -1);
  EXPECT_EQ(matrix::case_name(catalogue().axes, space.case_of(cover::Row(space.axes().size(), 1))),
            "fault=M23");
}

TEST(SpaceTest, ACombinationIsSpelledAsMatrixFilesAndNamesAre) {
  const Space space(
      case_named("impl=local,modules=[attn,mlp],tp=2,dropout=true,recompute=selective(core_attn)"),
      {}, nullptr, catalogue(), kMachine);
  const std::vector<int> all = {parameter(space, "impl"), parameter(space, "modules"),
                                parameter(space, "tp"), parameter(space, "dropout"),
                                parameter(space, "recompute")};
  const std::string text = space.expression(all);
  const matrix::Expression read = matrix::Expression::condition(
      text, {.axes = &catalogue().axes, .defines = {}}, matrix::Origin::option("test", text));
  EXPECT_EQ(
      read.holds(
          case_named(
              "impl=local,modules=[attn,mlp],tp=2,dropout=true,recompute=selective(core_attn)"),
          kMachine),
      matrix::Truth::yes)
      << text;
  EXPECT_EQ(
      read.holds(
          case_named("impl=local,modules=[attn],tp=2,dropout=true,recompute=selective(core_attn)"),
          kMachine),
      matrix::Truth::no)
      << text;
  EXPECT_EQ(space.expression(std::vector<int>{}), "true");
  EXPECT_EQ(space.name(std::vector<int>{parameter(space, "tp")}), "tp=2");
}

}  // namespace
}  // namespace graphproof::shrink
