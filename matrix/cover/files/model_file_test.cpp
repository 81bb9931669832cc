#include "matrix/cover/files/model_file.h"

#include <gtest/gtest.h>

#include <functional>

#include "matrix/cover/files/pict_model.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

/// The valid rows as texts of value indices.
std::string valid_rows(const Model& model) {
  Oracle oracle(model);
  std::string rows;
  Row row(static_cast<std::size_t>(model.visible_count()), 0);
  for (bool more = true; more;) {
    Cells cells;
    std::string text;
    for (std::size_t at = 0; at < row.size(); ++at) {
      cells.push_back({static_cast<int>(at), row[at]});
      text += std::to_string(row[at]);
    }
    if (oracle.solve(cells)) rows += (rows.empty() ? "" : " ") + text;
    more = false;
    for (std::size_t at = row.size(); at-- > 0 && !more;) {
      more = ++row[at] < static_cast<int>(model.parameters[at].values.size());
      if (!more) row[at] = 0;
    }
  }
  return rows;
}

struct Meaning {
  const char* constraints;
  const char* rows;
};

TEST(PictTest, ConstraintsMeanWhatPictSays) {
  // a: 1, 2, 10   b: red, Blue
  const Meaning meanings[] = {
      {"[a] = 2;", "10 11"},
      {"[a] <> 2;", "00 01 20 21"},
      {"[a] > 2;", "20 21"},                        // compared as numbers; as texts "10" < "2"
      {"[a] >= 2 AND [b] = \"BLUE\";", "11 21"},    // without regard to case
      {"NOT [a] = 2 AND [b] = \"red\";", "00 20"},  // NOT applies to the comparison
      {"NOT ([a] = 2 AND [b] = \"red\");", "00 01 11 20 21"},
      {"[a] = 1 OR [a] = 2 AND [b] = \"red\";", "00 01 10"},  // AND before OR
      {"([a] = 1 OR [a] = 2) AND [b] = \"red\";", "00 10"},
      {"[a] IN {1, 10};", "00 01 20 21"},
      {"[a] NOT IN {1, 10};", "10 11"},
      {"[b] LIKE \"*u*\";", "01 11 21"},
      {"[b] LIKE \"?ed\";", "00 10 20"},
      {"[b] NOT LIKE \"b*\";", "00 10 20"},
      {"IF [a] = 1 THEN [b] = \"red\";", "00 10 11 20 21"},
      {"IF [a] = 1 THEN [b] = \"red\" ELSE [b] <> \"red\";", "00 11 21"},
      {"IF [a] = 1 THEN [b] = \"red\";\n# a comment\nif [a] = 10\n  then [b] = \"red\" ;",
       "00 10 11 20"},
  };
  for (const Meaning& meaning : meanings)
    EXPECT_EQ(
        valid_rows(pict(std::string("a: 1, 2, 10\nb: red, Blue\n\n") + meaning.constraints + "\n")),
        meaning.rows)
        << meaning.constraints;
}

TEST(PictTest, ParametersAreComparedWithEachOther) {
  EXPECT_EQ(valid_rows(pict("a: 1, 2, 10\nb: 1, 2, 10\n[a] < [b];\n")), "01 02 12");
  EXPECT_EQ(valid_rows(pict("a: x, y\nb: Y, z\n[a] = [b];\n")), "10");
}

TEST(PictTest, ValuesMayBeNegativeWeighedAliasedAndBorrowed) {
  const Model model = pict("# first\na: 1, ~-1, x | y | z, 5 (10)\n\nb : <a>, last\n");
  ASSERT_EQ(model.parameters.size(), 2u);
  const std::vector<Value>& values = model.parameters[0].values;
  EXPECT_TRUE(values[1].negative);
  EXPECT_EQ(values[1].names[0], "-1");
  EXPECT_EQ(values[2].names, (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(values[3].weight, 10);
  EXPECT_EQ(values[3].names[0], "5");
  EXPECT_EQ(model.parameters[1].name, "b");
  ASSERT_EQ(model.parameters[1].values.size(), 5u);
  EXPECT_EQ(model.parameters[1].values[4].names[0], "last");
  EXPECT_TRUE(model.parameters[1].values[1].negative);
}

TEST(PictTest, AConstraintMayBeginWithNotAndAParameterBeCalledSo) {
  EXPECT_EQ(valid_rows(pict("a: 0, 1\nNOT [a] = 1;\n")), "0");
  const Model model = pict("NOT: 0, 1\nIF : 0, 1\n[NOT] = [IF];\n");
  EXPECT_EQ(valid_rows(model), "00 11");
}

TEST(PictTest, ASubmodelIsAGroupWithItsOwnStrength) {
  const Model model = pict("a: 0, 1\nb: 0, 1\nc: 0, 1\nd: 0, 1\n{ a, C, d } @ 3\n{ a, b }\n");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].parameters, (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(model.groups[0].strength, 3);
  EXPECT_EQ(model.groups[1].strength, 2);
}

TEST(PictTest, SignTestsLookAtNegativeValues) {
  EXPECT_EQ(valid_rows(pict("a: 0, ~1\nb: 0, 1\nIF IsNegative([a]) THEN [b] = 1;\n")), "00 01 11");
  EXPECT_EQ(valid_rows(pict("a: 0, ~1\nb: 0, 1\nIsPositive([a]);\n")), "00 01");
}

TEST(PictTest, ATextThatNoValueEqualsIsAWarningWithItsPlace) {
  const ModelFile file = read_model("a: 1, 2\n[a] <> \"3\";\n", "m.pict", Format::automatic);
  EXPECT_EQ(file.format, Format::pict);
  ASSERT_EQ(file.warnings.size(), 1u);
  EXPECT_EQ(file.warnings[0], "m.pict:2:5: `a` has no value `3`; it has 1, 2");
}

TEST(PictTest, ConstraintsAreNamedByTheirLine) {
  const Model model = pict("a: 1, 2\n\n[a] = 1; [a] <> 2;\n[a] < 2;\n");
  ASSERT_EQ(model.constraints.size(), 3u);
  EXPECT_EQ(model.constraints[0].id, "line 3");
  EXPECT_EQ(model.constraints[1].id, "line 3 (2)");
  EXPECT_EQ(model.constraints[2].id, "line 4");
}

constexpr const char* kActs = R"([System]
-- a comment
Name: demo

[Parameter]
mode (enum) : fast, slow
count (int) : 1, 2, 3
on (boolean) : true, false

[Relation]
R1 : (mode, count, on, 3)

[Constraint]
)";

TEST(ActsTest, ConstraintsMeanWhatActsSays) {
  const Meaning meanings[] = {
      {"mode = \"fast\" => count > 2", "020 021 100 101 110 111 120 121"},
      {"mode == \"fast\" && on", "000 010 020"},
      {"!(mode != \"fast\" || count >= 2)", "000 001"},
      {"count + 1 = 3 and on = false", "011 111"},
      {"count * 2 - 1 > 4", "020 021 120 121"},
      {"count % 2 = 0 && mode = \"slow\"", "110 111"},
      {"count / 2 = 1 && !on && mode = 'slow'",
       "111 121"},  // the quotient of integers is an integer
      {"on => mode = \"fast\" => count = 1",
       "000 001 011 021 100 101 110 111 120 121"},  // associates to the right
      {"(mode = \"fast\") = on && count = 1", "000 101"},
  };
  for (const Meaning& meaning : meanings) {
    const ModelFile file =
        read_model(std::string(kActs) + meaning.constraints + "\n", "m.txt", Format::automatic);
    EXPECT_EQ(file.format, Format::acts);
    EXPECT_EQ(valid_rows(file.model), meaning.rows) << meaning.constraints;
    ASSERT_EQ(file.model.groups.size(), 1u);
    EXPECT_EQ(file.model.groups[0].strength, 3);
  }
}

TEST(ClausesTest, AreReadWithNamesWhereGiven) {
  const ModelFile file = read_model(
      R"({"domain_sizes": [2, 3], "clauses": [[[0, 1, false], [1, 2, true]], [[1, 0, false]]],
          "names": ["a", "b"], "ids": ["x", "x"]})",
      "m.json", Format::automatic);
  EXPECT_EQ(file.format, Format::clauses);
  EXPECT_EQ(valid_rows(file.model), "01 02 12");
  EXPECT_EQ(file.model.parameters[1].name, "b");
  ASSERT_EQ(file.model.constraints.size(), 1u);
  EXPECT_EQ(file.model.constraints[0].id, "x");
}

struct Refused {
  Format format;
  std::string text;
  const char* what;
  int line, column;
  const char* next;
};

TEST(ModelFileTest, BadModelsAreRefusedWithPlaceAndHint) {
  const std::string two = "alpha: 1, 2\nbeta: x, y\n";
  const Refused refused[] = {
      {Format::pict, "", "the model has no parameter", 1, 1, "write one parameter a line"},
      {Format::pict, "alpha 1, 2\n", "this is neither a parameter nor a constraint", 1, 1, ""},
      {Format::pict, "alpha: 1,, 2\n", "a value is empty", 1, 10, ""},
      {Format::pict, "alpha: 1, 1\n", "a value of `alpha` appears twice", 1, 11, "remove one"},
      {Format::pict, "alpha: 1\nAlpha: 2\n", "parameter `Alpha` appears twice", 2, 1, ""},
      {Format::pict, "alpha: <betta>\n", "no parameter `betta` before this line", 1, 8, ""},
      {Format::pict, "alpha: 1 (0)\n", "a weight is out of range", 1, 8, ""},
      {Format::pict, two + "{ alpha, gamma } @ 2\n", "no parameter `gamma`", 3, 9, ""},
      {Format::pict, two + "{ alpha, beta } @ 3\n", "a sub-model's strength is out of range", 3, 17,
       "lower it"},
      {Format::pict, two + "[alhpa] = 1;\n", "no parameter `alhpa`", 3, 1, "did you mean `alpha`?"},
      {Format::pict, two + "[alpha] = 1\n", "a constraint does not end here", 4, 1,
       "end each constraint with `;`"},
      {Format::pict, two + "IF [alpha] = 1;\n", "THEN is missing", 3, 15, "write IF ... THEN ...;"},
      {Format::pict, two + "([alpha] = 1;\n", "a parenthesis is not closed", 3, 13, ""},
      {Format::pict, two + "[alpha] = ;\n", "a value is missing", 3, 11, ""},
      {Format::pict, two + "[beta] = x;\n", "no parameter `x`", 3, 10,
       "put a text in quotes, a parameter in brackets"},
      {Format::pict, two + "[alpha];\n", "this is a value, not a condition", 3, 1,
       "compare it with something"},
      {Format::pict, two + "[beta] = \"x;\n", "a text is not closed", 3, 10, ""},
      {Format::pict, two + "[alpha] IN {1, 2;\n", "a list is not closed", 3, 17, ""},
      {Format::pict, two + std::string(5000, '('), "a condition is nested too deep", 3, 201,
       "write several constraints"},
      {Format::pict, "alpha: 1, \xff\n", "the model is not UTF-8 text", 1, 11, "convert the file"},
      {Format::acts, "[Parameter]\na (strange) : 1\n", "no type `strange`", 2, 4, ""},
      {Format::acts, "[Parameter]\na : 1, 2\n[Relation]\n(a, b, 2)\n", "no parameter `b`", 4, 5,
       ""},
      {Format::acts, "[Parameter]\na (int) : 1, 2\n[Constraint]\na > 1 b\n",
       "a constraint does not end here", 4, 7, ""},
      {Format::acts, "a : 1\n", "a line precedes the first section", 1, 1, ""},
      {Format::clauses, "{\"domain_sizes\": [2], \"clauses\": [[[0, 2, true]]]}", nullptr, 1, 40,
       ""},
      {Format::clauses, "{\"domain_sizes\": [2], \"clauses\": [[[0, 1]]]}",
       "a literal has three parts", 1, 36, ""},
  };
  for (const Refused& row : refused) {
    try {
      read_model(row.text, "m", row.format);
      ADD_FAILURE() << row.text.substr(0, 100);
    } catch (const matrix::InputError& error) {
      if (row.what != nullptr) {
        EXPECT_EQ(error.problem().what, row.what) << row.text.substr(0, 100);
      }
      EXPECT_EQ(error.problem().place.line, row.line) << row.text.substr(0, 100);
      EXPECT_EQ(error.problem().place.column, row.column) << row.text.substr(0, 100);
      if (row.next[0] != '\0') {
        EXPECT_EQ(error.problem().next, row.next);
      }
      EXPECT_FALSE(error.problem().next.empty());
    }
  }
}

TEST(ModelFileTest, AComparisonOfTooManyValuesIsRefused) {
  std::string text = "a: 0";
  for (int value = 1; value < 2000; ++value) text += "," + std::to_string(value);
  text += "\nb: <a>\n[a] < [b];\n";
  try {
    pict(text);
    FAIL();
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().what, "a comparison has too many combinations of values");
    EXPECT_EQ(error.problem().place.line, 3);
  }
}

}  // namespace
}  // namespace graphproof::cover
