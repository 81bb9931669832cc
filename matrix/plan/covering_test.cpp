#include "matrix/plan/covering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "matrix/cover/cover.h"
#include "matrix/plan/plan.h"
#include "matrix/testing/loaded_catalogue.h"

namespace graphproof::matrix {
namespace {

MatrixFile file_of(const std::string& body) {
  return parse_matrix_file("{\"schema\": \"graphproof-matrix/1\"," + body + "}", "test.json",
                           catalogue(), [](const std::string&) { return std::string(); });
}

/// A matrix with rules on several axes, an axis that can be off, and a constraint of its own.
MatrixFile rich() {
  return file_of(
      R"J("axes": {"impl": ["none", "local", "transformer_engine", "full_iteration", "manual"],
      "modules": {"subset_of": ["attn", "mlp", "moe_router"],
                  "when": "impl in {local, transformer_engine}"},
      "tp": [1, 2], "cp": [1, 2], "dp": [1, 2], "comm": ["nccl", "c10d"], "model": ["gpt", "moe"],
      "nan_check_loss": [false, true],
      "recompute": ["none", "selective(core_attn)", "full(uniform,1)"],
      "precision": ["fp32", "bf16"]},
    "require": [{"id": "X1", "expr": "cp == 1 or tp == 1", "why": "a test"},
                {"id": "fits", "expr": "tp * cp * dp <= slots", "why": "the machine has no more",
                 "as": "skipped.gpus"}],
    "profiles": {"pairs": {"cover": 2}})J");
}

bool satisfies(const cover::Model& model, const cover::Row& row) {
  return std::all_of(
      model.constraints.begin(), model.constraints.end(), [&](const cover::Constraint& constraint) {
        return std::all_of(
            constraint.clauses.begin(), constraint.clauses.end(), [&](const cover::Clause& clause) {
              return std::any_of(clause.begin(), clause.end(), [&](const cover::Literal& literal) {
                return (row[static_cast<std::size_t>(literal.parameter)] == literal.value) ==
                       literal.equal;
              });
            });
      });
}

/// Calls `visit(row)` for every row of the model's product.
template <class Visit>
void for_each_row(const cover::Model& model, const Visit& visit) {
  cover::Row row(model.parameters.size(), 0);
  while (true) {
    visit(row);
    std::size_t at = row.size();
    while (at > 0 && ++row[at - 1] == static_cast<int>(model.parameters[at - 1].values.size()))
      row[--at] = 0;
    if (at == 0) return;
  }
}

Case case_of_row(const MatrixFile& file, const cover::Row& row) {
  Case made;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (static_cast<std::size_t>(row[i]) < file.axes[i].values.size())
      set_value(catalogue().axes, made, file.axes[i].name,
                file.axes[i].values[static_cast<std::size_t>(row[i])]);
  return made;
}

TEST(Covering, TheModelAllowsExactlyTheRowsOfTheExpansion) {
  const MatrixFile file = rich();
  const Machine machine{.device = "sim", .slots = 4};
  std::multiset<std::string> expanded, modelled;
  Expansion(file, catalogue(), machine, std::nullopt).for_each([&](ExpandedRow&& row) {
    expanded.insert(case_name(catalogue().axes, row.test_case));
  });
  const cover::Model model = cover_model(file, catalogue(), machine, std::nullopt, false);
  for_each_row(model, [&](const cover::Row& row) {
    if (satisfies(model, row)) modelled.insert(case_name(catalogue().axes, case_of_row(file, row)));
  });
  EXPECT_GT(expanded.size(), 100u);
  EXPECT_EQ(modelled, expanded);
}

TEST(Covering, EveryPairThatCanRunIsInSomeRow) {
  const MatrixFile file = rich();
  const Machine machine{.device = "sim", .slots = 4};
  const cover::Model model = cover_model(file, catalogue(), machine, std::nullopt, true);
  std::set<std::pair<std::pair<std::size_t, int>, std::pair<std::size_t, int>>> wanted, found;
  const auto add = [](auto& pairs, const cover::Row& row) {
    for (std::size_t i = 0; i < row.size(); ++i)
      for (std::size_t j = i + 1; j < row.size(); ++j) pairs.insert({{i, row[i]}, {j, row[j]}});
  };
  std::map<std::string, cover::Row> row_of;
  for_each_row(model, [&](const cover::Row& row) {
    if (!satisfies(model, row)) return;
    add(wanted, row);
    row_of[case_id(case_of_row(file, row))] = row;
  });
  const Covering covering = cover_rows(file, catalogue(), machine, std::nullopt, {.groups = {}}, 1);
  for (const ExpandedRow& row : covering.rows) {
    ASSERT_TRUE(row_of.contains(case_id(row.test_case)))
        << case_name(catalogue().axes, row.test_case);
    add(found, row_of[case_id(row.test_case)]);
  }
  EXPECT_EQ(found, wanted);
  EXPECT_LT(covering.rows.size(), row_of.size() / 2);
  const CoverCount& count = covering.counts.front();
  EXPECT_EQ(count.covered, static_cast<double>(wanted.size()));
  EXPECT_EQ(count.raw, count.covered + count.unreachable + count.lost);
  EXPECT_GT(count.lost, 0) << "c10d is not on sim";
}

TEST(Covering, NamesWhatIsLostAndWhatIsForbiddenAndWhy) {
  const Covering covering = cover_rows(rich(), catalogue(), {.device = "sim", .slots = 4},
                                       std::nullopt, {.groups = {}}, 1);
  const auto find = [&](std::vector<std::pair<std::string, std::string>> values) {
    return std::find_if(covering.not_covered.begin(), covering.not_covered.end(),
                        [&](const NotCovered& one) { return one.values == values; });
  };
  const auto context = find({{"comm", "c10d"}});
  ASSERT_NE(context, covering.not_covered.end());
  EXPECT_TRUE(context->lost);
  EXPECT_EQ(context->reason,
            std::vector<std::string>{
                "the simulated device has no NCCL, and so no PyTorch process group over it"});
  const auto check = find({{"impl", "full_iteration"}, {"nan_check_loss", "true"}});
  const auto forbidden =
      check != covering.not_covered.end() ? check : find({{"nan_check_loss", "true"}});
  ASSERT_NE(forbidden, covering.not_covered.end());
  if (forbidden->values.size() == 2) {
    EXPECT_FALSE(forbidden->lost);
    EXPECT_EQ(forbidden->reason, std::vector<std::string>{"R035"});
  } else {
    EXPECT_TRUE(forbidden->lost) << "no engine has the check";
  }
}

TEST(Covering, AGroupHasAStrengthOfItsOwn) {
  const MatrixFile file = file_of(
      R"("axes": {"tp": [1, 2], "dp": [1, 2], "microbatches": [1, 2, 4], "dropout": [false, true],
                  "qkv_bias": [false, true]},
    "profiles": {"p": {"cover": 1,
                       "groups": [{"axes": ["microbatches", "dropout", "qkv_bias"],
                                   "cover": 3}]}})");
  const Plan plan = make_plan(file, catalogue(), "p", {.device = "sim", .slots = 4}, std::nullopt);
  std::set<std::string> triples;
  for (const auto& line : plan.lines)
    triples.insert(
        nlohmann::json({line.axes["microbatches"], line.axes["dropout"], line.axes["qkv_bias"]})
            .dump());
  EXPECT_EQ(triples.size(), 12u);
  EXPECT_EQ(plan.lines.size(), 12u);
  EXPECT_EQ(plan.summary()["cover"]["counts"][1]["axes"].size(), 3u);
}

TEST(Covering, AnIncludedRowIsCompletedAndKeepsWhatItNames) {
  const MatrixFile file = file_of(
      R"("axes": {"impl": ["none", "manual"], "tp": [1, 2], "dropout": [false, true],
                  "linear_bias": [false, true]},
    "include": [{"impl": "manual", "tp": 2, "dropout": false}], "profiles": {"p": {"cover": 1}})");
  const Plan plan = make_plan(file, catalogue(), "p", {.device = "sim", .slots = 4}, std::nullopt);
  const auto has = [](const record::PlanLine& line) {
    return line.axes["impl"] == "manual" && line.axes["tp"] == 2 && line.axes["dropout"] == false;
  };
  EXPECT_TRUE(std::any_of(plan.lines.begin(), plan.lines.end(), has));
  EXPECT_LE(plan.lines.size(), 3u) << "its open axis was used to cover";
}

TEST(Covering, CheapRowsArePreferredWhereTheFileSaysWhatARowCosts) {
  const std::string axes =
      R"("axes": {"tp": [1, 2], "dp": [1, 2], "microbatches": [1, 2, 4], "dropout": [false, true]},
         "define": {"world": "tp * dp"},)";
  const auto ranks = [&](const std::string& cost) {
    const Plan plan = make_plan(file_of(axes + R"("profiles": {"p": {"cover": 2)" + cost + "}}"),
                                catalogue(), "p", {.device = "sim", .slots = 4}, std::nullopt);
    std::int64_t sum = 0;
    for (const auto& line : plan.lines) sum += line.ranks;
    return sum;
  };
  EXPECT_LE(ranks(R"(, "cost": "world * minutes")"), ranks(""));
}

TEST(Covering, ACostOfZeroIsRefused) {
  const MatrixFile file = file_of(
      R"("axes": {"tp": [1, 2], "dp": [1, 2]}, "profiles": {"p": {"cover": 2, "cost": "tp - 1"}})");
  EXPECT_THROW(
      {
        try {
          make_plan(file, catalogue(), "p", {.device = "sim", .slots = 4}, std::nullopt);
        } catch (const InputError& error) {
          EXPECT_EQ(error.problem().what, "`cost` is not a positive number for some row");
          throw;
        }
      },
      InputError);
}

TEST(Covering, AHugeProductIsCoveredQuickly) {
  std::string axes;
  for (int i = 0; i < 60; ++i)
    axes += (i ? ", " : "") + std::string("\"env.GP_TEST_") + std::to_string(i) +
            "\": [\"unset\", \"0\", \"1\", \"2\"]";
  const MatrixFile file =
      file_of("\"axes\": {" + axes + R"(}, "profiles": {"p": {"cover": 2, "steps": 0}})");
  const Plan plan = make_plan(file, catalogue(), "p", {.device = "sim", .slots = 4}, std::nullopt);
  EXPECT_GE(plan.lines.size(), 16u);
  EXPECT_LE(plan.lines.size(), 60u);
  EXPECT_EQ(plan.covering->counts.front().raw, 60 * 59 / 2 * 16);
}

TEST(Covering, AContradictionNamesTheFewestConstraints) {
  const MatrixFile file = file_of(R"("axes": {"tp": [1, 2], "dp": [1, 2], "dropout": [false, true]},
    "require": [{"id": "A", "expr": "tp == 1", "why": "w"},
                {"id": "B", "expr": "dropout", "why": "w"},
                {"id": "C", "expr": "tp == 2", "why": "w"}],
    "profiles": {"p": {"cover": 2}})");
  try {
    make_plan(file, catalogue(), "p", {.device = "sim", .slots = 4}, std::nullopt);
    FAIL() << "a plan of a contradiction";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("A"), std::string::npos) << text;
    EXPECT_NE(text.find("C"), std::string::npos) << text;
    EXPECT_EQ(text.find(" B"), std::string::npos) << text;
  }
}

TEST(Covering, OneSeedGivesOnePlanAndASampleIsOfTheProduct) {
  const MatrixFile file = file_of(
      R"("axes": {"impl": ["none", "manual", "full_iteration"], "tp": [1, 2], "dp": [1, 2],
                  "microbatches": [1, 2, 4], "dropout": [false, true]},
    "profiles": {"pairs": {"cover": 2, "steps": 2000}})");
  const Machine machine{.device = "sim", .slots = 4};
  EXPECT_EQ(make_plan(file, catalogue(), "pairs", machine, std::nullopt).lines,
            make_plan(file, catalogue(), "pairs", machine, std::nullopt).lines);

  const MatrixFile sampled = file_of(
      R"("axes": {"tp": [1, 2], "dp": [1, 2], "microbatches": [1, 2, 4], "dropout": [false, true]},
    "profiles": {"s": {"sample": 7, "seed": 3}, "t": {"sample": 7, "seed": 4},
                 "all": {"sample": 1000}})");
  const Plan first = make_plan(sampled, catalogue(), "s", machine, std::nullopt);
  EXPECT_EQ(first.lines.size(), 7u);
  EXPECT_EQ(first.lines, make_plan(sampled, catalogue(), "s", machine, std::nullopt).lines);
  EXPECT_NE(first.lines, make_plan(sampled, catalogue(), "t", machine, std::nullopt).lines);
  EXPECT_EQ(make_plan(sampled, catalogue(), "all", machine, std::nullopt).lines.size(), 24u);
}

TEST(Covering, AnEarlierPlanIsKeptRepairedAndCompleted) {
  const Machine machine{.device = "sim", .slots = 4};
  const char* axes =
      R"("axes": {"impl": ["none", "manual", "full_iteration"], "tp": [1, 2], "dp": [1, 2],
                  "microbatches": [1, 2], "dropout": [false, true]%}, )";
  const auto file = [&](const std::string& more, const std::string& rest) {
    std::string text = axes;
    text.replace(text.find('%'), 1, more);
    return file_of(text + rest + R"("profiles": {"p": {"cover": 2, "steps": 2000}})");
  };
  const Plan before = make_plan(file("", ""), catalogue(), "p", machine, std::nullopt);
  EXPECT_FALSE(before.extended);
  PlanChoices choices{.previous = std::vector<Case>()};
  for (const auto& line : before.lines)
    choices.previous->push_back(case_from_json(catalogue().axes, line.axes, ""));

  const Plan same = make_plan(file("", ""), catalogue(), "p", machine, std::nullopt, choices);
  EXPECT_EQ(same.extended->kept, static_cast<std::int64_t>(before.lines.size()));
  EXPECT_EQ(same.extended->fresh + same.extended->repaired + same.extended->dropped, 0);
  EXPECT_EQ(same.lines[0].why, "kept from the earlier plan");

  const std::string rule =
      R"("require": [{"id": "A", "why": "w", "expr": "impl != manual or tp == 1"}], )";
  const Plan ruled = make_plan(file("", rule), catalogue(), "p", machine, std::nullopt, choices);
  const Plan fresh = make_plan(file("", rule), catalogue(), "p", machine, std::nullopt);
  EXPECT_LE(ruled.lines.size(), fresh.lines.size() + 1);
  EXPECT_GT(ruled.extended->kept, 0);
  EXPECT_EQ(ruled.extended->kept + ruled.extended->repaired + ruled.extended->dropped,
            static_cast<std::int64_t>(before.lines.size()));
  EXPECT_EQ(ruled.summary().at("extended").at("kept"), ruled.extended->kept);

  const MatrixFile product = file_of(R"("axes": {"tp": [1, 2]}, "profiles": {"p": {}})");
  EXPECT_THROW(make_plan(product, catalogue(), "p", machine, std::nullopt, choices), InputError);
}

TEST(Covering, AGroupThatAsksForAllHasEveryCombination) {
  const MatrixFile file = file_of(
      R"("axes": {"tp": [1, 2], "dp": [1, 2], "microbatches": [1, 2, 4], "dropout": [false, true],
                  "layers": [2, 3]},
    "profiles": {"p": {"cover": 1, "steps": 2000,
                       "groups": [{"axes": ["tp", "microbatches", "dropout"], "cover": "full"},
                                  {"axes": ["dp", "layers"], "cover": 2}]}})");
  const Plan plan = make_plan(file, catalogue(), "p", {.device = "sim", .slots = 4}, std::nullopt);
  std::set<std::string> triples;
  for (const auto& line : plan.lines)
    triples.insert(line.axes.at("tp").dump() + line.axes.at("microbatches").dump() +
                   line.axes.at("dropout").dump());
  EXPECT_EQ(triples.size(), 12u);
  EXPECT_EQ(plan.lines.size(), 12u);
}

TEST(Covering, AWeightMakesAValueMoreFrequentWhereNothingHasToBeCovered) {
  const auto times = [](const std::string& weight) {
    const MatrixFile file = file_of(
        R"("axes": {"tp": [1, 2], "dp": [1, 2], "microbatches": [1, 2, 4, 8, 16],
                    "layers": [1, 2, 3, 4, 5], "warmup_steps": {"values": [0, 1, 2])" +
        weight + R"(}},
      "profiles": {"p": {"cover": 2, "steps": 0}})");
    const Plan plan =
        make_plan(file, catalogue(), "p", {.device = "sim", .slots = 4}, std::nullopt);
    return std::count_if(plan.lines.begin(), plan.lines.end(),
                         [](const auto& line) { return line.axes.at("warmup_steps") == 2; });
  };
  EXPECT_GT(times(R"(, "weight": {"2": 50})"), times(""));
}

TEST(Covering, TheSeedOfTheCommandLineReplacesTheProfiles) {
  const MatrixFile file = file_of(
      R"("axes": {"tp": [1, 2], "dp": [1, 2], "microbatches": [1, 2, 4], "dropout": [false, true]},
         "profiles": {"s": {"sample": 5, "seed": 3}})");
  const Machine machine{.device = "sim", .slots = 4};
  const Plan own = make_plan(file, catalogue(), "s", machine, std::nullopt),
             other = make_plan(file, catalogue(), "s", machine, std::nullopt, {.seed = 4});
  EXPECT_EQ(other.seed, 4);
  EXPECT_NE(own.lines, other.lines);
}

TEST(Covering, KeysOfACoveringPlanNeedCover) {
  const auto refused = [](const std::string& profile, const std::string& what) {
    try {
      file_of(R"("axes": {"tp": [1, 2], "dp": [1, 2]}, "profiles": {"p": )" + profile + "}");
      ADD_FAILURE() << profile << " was accepted";
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().what, what) << profile;
      EXPECT_GT(error.problem().place.line, 0);
    }
  };
  refused(R"({"groups": []})", "`groups` without `cover`");
  refused(R"({"cover": 2, "sample": 3})", "`sample` and `cover` together");
  refused(R"({"cover": 2, "cases": "faults"})", "`cover` and `sample` choose rows of a product");
  refused(R"({"cover": 2, "groups": [{"axes": ["pq"], "cover": 1}]})", "unknown axis `pq`");
  refused(R"({"cover": 2, "groups": [{"axes": ["tp", "tp"], "cover": 2}]})",
          "an axis twice in a group");
  refused(R"({"cover": 2, "groups": [{"axes": ["tp"], "cover": 2}]})",
          "a strength above the number of axes");
  refused(
      R"({"cover": 2, "groups": [{"axes": ["tp", "dp", "pp", "cp", "ep", "etp", "layers"],
                                  "cover": "full"}]})",
      "`full` of too many axes");
}

}  // namespace
}  // namespace graphproof::matrix
