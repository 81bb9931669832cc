#include "matrix/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class PlanTest : public testing::Test {
 protected:
  Plan shipped(const char* profile, const Machine& machine, const std::string& where = "",
               bool explain = false) const {
    const MatrixFile file = shipped_matrix_file(profile, catalogue_);
    std::optional<Expression> filter;
    if (!where.empty())
      filter = Expression::condition(where, file.scope, Origin::option("--where", where));
    return make_plan(file, catalogue_, profile, machine, filter, {.explain = explain});
  }
  Plan own(const std::string& members, const char* profile = "p") const {
    const MatrixFile file = parse_matrix_file(
        "{\"schema\": \"graphproof-matrix/1\",\n" + members + "}", "m.json", catalogue_, {});
    return make_plan(file, catalogue_, profile, sim_, std::nullopt);
  }
  static const record::PlanLine& line(const Plan& plan, const std::string& name) {
    const auto found = std::find_if(plan.lines.begin(), plan.lines.end(),
                                    [&](const record::PlanLine& one) { return one.name == name; });
    EXPECT_NE(found, plan.lines.end()) << name;
    return *found;
  }
  static void expect_skipped(const record::PlanLine& line, const std::string& verdict,
                             const std::string& why) {
    ASSERT_TRUE(line.skip) << line.name;
    EXPECT_EQ(line.skip->verdict.text(), verdict) << line.name;
    EXPECT_EQ(line.skip->why, why);
  }

  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
  const Machine sim_{
      .device = "sim", .slots = 4, .stack = {{"torch_version", "2.11.0"}, {"sm", "0"}}};
  const Machine cuda_{
      .device = "cuda",
      .slots = 4,
      .stack = {{"torch_version", "2.11.0"}, {"sm", "90"}, {"compute_sanitizer", "2026.4.0.0"}}};
};

TEST_F(PlanTest, WhatTheGpusCannotDoIsSkippedAsTheirArchitectureWhateverElseIsMissing) {
  const auto skip_of = [&](const char* name, const Machine& machine) {
    return plan_case(catalogue_, case_from_name(catalogue_.axes, name, ""), machine, "").skip;
  };
  for (const char* name : {"precision=mxfp8", "precision=nvfp4,schedule=decode"}) {
    const auto skip = skip_of(name, cuda_);
    ASSERT_TRUE(skip) << name;
    EXPECT_EQ(skip->verdict.text(), "skipped.arch") << name;
    EXPECT_NE(skip->why.find("need a GPU of architecture 100 or newer"), std::string::npos);
  }
  EXPECT_FALSE(skip_of("precision=mxfp8", sim_));
  EXPECT_EQ(skip_of("precision=nvfp4,schedule=decode", sim_)->verdict.text(), "skipped.capability")
      << "what is not built is another reason";
  Machine other = cuda_;
  other.stack["sm"] = "100";
  EXPECT_FALSE(skip_of("precision=mxfp8", other));
  EXPECT_FALSE(skip_of("precision=fp8_current", cuda_));
  other.stack["sm"] = "80";
  EXPECT_EQ(skip_of("precision=fp8_current", other)->verdict.text(), "skipped.arch");
}

TEST_F(PlanTest, SmokeHasItsProductAndEachFeatureUnderEachEngine) {
  const Plan plan = shipped("smoke", sim_);
  EXPECT_EQ(plan.raw.rows, 24);
  EXPECT_TRUE(plan.skipped.empty());
  std::set<std::string> ids;
  std::int64_t product = 0;
  std::set<std::pair<std::string, std::string>> features;  // each with its engine
  for (const record::PlanLine& one : plan.lines) {
    const nlohmann::json& axes = one.axes;
    ids.insert(one.id);
    EXPECT_EQ(one.expect.kind, "pass");
    EXPECT_FALSE(one.skip);
    EXPECT_EQ(one.ranks,
              axes.at("tp").get<int>() * axes.at("dp").get<int>() * axes.at("pp").get<int>());
    product += one.why != "included by the matrix file" ? 1 : 0;
    for (const char* axis : {"optimizer", "precision", "recompute", "model", "normalization",
                             "activation", "position_embedding"})
      features.insert({axes.at(axis).get<std::string>(), axes.at("impl")});
    features.insert(
        {"microbatches " + std::to_string(axes.at("microbatches").get<int>()), axes.at("impl")});
    features.insert({"ep " + std::to_string(axes.at("ep").get<int>()), "any"});
  }
  EXPECT_EQ(ids.size(), plan.lines.size());
  EXPECT_EQ(product, 24);
  for (const char* impl : {"manual", "full_iteration"})
    for (const char* feature : {"adam", "bf16", "selective(core_attn)", "moe", "microbatches 4"})
      EXPECT_TRUE(features.contains({feature, impl})) << feature << " under " << impl;
  EXPECT_TRUE(features.contains({"ep 2", "any"}));
  EXPECT_TRUE(features.contains({"LayerNorm", "manual"}) &&
              features.contains({"learned_absolute", "manual"}));
  EXPECT_TRUE(features.contains({"swiglu", "full_iteration"}));
}

// The profile claims to have everything that rules allow on up to four ranks, except what can't run
// for one of the reasons below.
TEST_F(PlanTest, LayoutsHasEveryEngineAndEveryRecomputeOnEveryLayoutOfUpToFourRanks) {
  const Plan plan = shipped("layouts", sim_, "", /*explain=*/true);
  ASSERT_TRUE(plan.covering);
  EXPECT_TRUE(plan.skipped.empty());
  std::map<std::string, std::set<std::string>> layouts;  // of each engine and each recompute
  for (const record::PlanLine& one : plan.lines) {
    const nlohmann::json& axes = one.axes;
    std::string layout;
    for (const char* axis : {"tp", "pp", "vpp", "dp", "cp"}) layout += axes.at(axis).dump() + " ";
    for (const char* axis : {"impl", "recompute"}) layouts[axes.at(axis)].insert(layout);
    EXPECT_LE(one.ranks, 4);
  }
  // One layout of one rank, four of two ranks and ten of four; layouts with two or four stages
  // exist also with two chunks in each stage.
  constexpr std::size_t kLayouts = 1 + 4 + 10 + 5, kOfPipelines = 2 * 5;
  for (const auto& [value, seen] : layouts)
    EXPECT_EQ(seen.size(), value == "callables" ? kLayouts - kOfPipelines : kLayouts) << value;
  EXPECT_EQ(layouts.size(), 6u + 8u - 1u) << "engines and recomputes; both have a none";

  const std::set<std::string> known = {
      "torch.cuda.make_graphed_callables does not support the schedule of a pipeline stage",
      "in the middle of a layer the host reads how many tokens an expert has, which no graph can "
      "contain",
      "the allgather dispatcher has no capacity and no separate preprocessing",
      "the flex dispatcher sends every token to its experts and pads none to a capacity",
      "only the flex dispatcher counts on the device what arrives in buffers of a fixed size",
      "a step that lacked room runs again as a whole, after its graph and ahead of the optimizer, "
      "as upstream does it around full_iteration",
      "the load of experts is nearly even then, so no buffer of 1.25 times an even share overflows",
      "only the ranks of a stage tell each other that a step lacked room",
      "a run that is discarded has already moved the corrections of routers and the scales of "
      "delayed fp8",
      "this model has no such module, so nothing would be recomputed"};
  EXPECT_EQ(plan.covering->not_covered_left_out, 0);
  for (const NotCovered& one : plan.covering->not_covered) {
    if (!one.lost) continue;
    const bool explained = std::any_of(one.reason.begin(), one.reason.end(),
                                       [&](const std::string& id) { return known.contains(id); });
    EXPECT_TRUE(explained) << to_json(one).dump();
  }
}

TEST_F(PlanTest, LineHoldsEverythingThatTheLauncherNeeds) {
  const Plan plan = shipped("smoke", sim_);
  const record::PlanLine& one = line(plan, "impl=manual,tp=2,microbatches=2,dropout=true");
  EXPECT_EQ(one.isolation, "batch");
  EXPECT_EQ(one.limits_ms.at(record::Phase::replay), 10000);
  EXPECT_EQ(one.limits_ms.size(), record::kPhaseCount);
  EXPECT_TRUE(one.environment.empty());
  for (const char* check :
       {"D01.lockstep", "D08.masks", "D53.layout_reference", "D21.evidence_complete"})
    EXPECT_EQ(std::ranges::count(one.required_checks, check), 1) << check;
  EXPECT_EQ(std::ranges::count(one.required_checks, "D28.one_libnccl"), 0);
}

TEST_F(PlanTest, ACaseUnderComputeSanitizerHasTimeAndABatchOfItsOwn) {
  const auto line_of = [&](const std::string& name) {
    return plan_case(catalogue_, case_from_name(catalogue_.axes, name, "test"), cuda_, "test");
  };
  const record::PlanLine plain = line_of("impl=manual"),
                         checked = line_of("impl=manual,sanitizer=memcheck");
  EXPECT_EQ(plain.id, "b7a2583e71f93276") << "the axis changes no id of a case without it";
  EXPECT_EQ(checked.isolation, "process");
  for (const auto& [phase, limit_ms] : plain.limits_ms)
    EXPECT_EQ(checked.limits_ms.at(phase), limit_ms * kSlowerUnderATool);
  EXPECT_GT(checked.expected_seconds, 60);
  record::PlanLine forced = checked;
  forced.isolation = "batch";
  EXPECT_NE(batch_key(forced, "cuda"), batch_key(line_of("impl=none,sanitizer=memcheck"), "cuda"));
  const auto demands = [](const record::PlanLine& line, const char* check) {
    return std::ranges::count(line.required_checks, check) > 0;
  };
  EXPECT_TRUE(demands(checked, "D45.sanitizer"));
  EXPECT_TRUE(demands(checked, "D01.lockstep"));
  EXPECT_FALSE(demands(checked, "D31.device_trend")) << "the tool's memory is in it";
  EXPECT_FALSE(demands(plain, "D45.sanitizer"));
  EXPECT_TRUE(demands(plain, "D31.device_trend"));
}

TEST_F(PlanTest, EveryCaseOfTheProfileSanitizerNeedsOnlyAGpu) {
  const Plan on_gpu = shipped("sanitizer", cuda_), on_sim = shipped("sanitizer", sim_);
  EXPECT_EQ(on_gpu.skipped, (std::map<std::string, std::int64_t>{}));
  EXPECT_EQ(on_sim.skipped,
            (std::map<std::string, std::int64_t>{
                {"skipped.capability", static_cast<std::int64_t>(on_gpu.lines.size())}}));
}

TEST_F(PlanTest, ACaseWhoseRanksForkHasABatchOfItsOwn) {
  const Plan plan = shipped("subjects", cuda_);
  std::int64_t forking = 0;
  for (const record::PlanLine& one : plan.lines) {
    if (one.axes.at("resume_in") != "new_process") continue;
    EXPECT_EQ(one.isolation, "process") << one.name;
    ++forking;
  }
  EXPECT_GT(forking, 0);
  // A rank of graphproof's own models executes its program again, at any time.
  std::int64_t batched = 0;
  for (const record::PlanLine& one : shipped("layouts", cuda_).lines)
    if (one.axes.at("resume_in") == "new_process" && one.isolation == "batch") ++batched;
  EXPECT_GT(batched, 0);
}

// The reader checks ids, words and verdicts, which the types of a line do not.
TEST_F(PlanTest, LinesOfEveryKindAreReadAsTheyWereWritten) {
  for (const char* profile : {"smoke", "faults", "constraints", "hazards"}) {
    std::string text;
    const Plan plan = shipped(profile, cuda_);
    for (const record::PlanLine& one : plan.lines) text += record::to_line(one);
    EXPECT_EQ(record::plan_from(text, "plan.jsonl"), plan.lines) << profile;
  }
}

TEST_F(PlanTest, FaultsComeWithTheirCleanTwinsOnce) {
  const Plan plan = shipped("faults", cuda_);
  EXPECT_EQ(plan.faults, static_cast<std::int64_t>(catalogue_.faults.faults().size()));
  std::set<std::string> ids;
  for (const record::PlanLine& one : plan.lines) ids.insert(one.id);
  EXPECT_EQ(ids.size(), plan.lines.size());
  for (const record::PlanLine& one : plan.lines) {
    if (one.expect.kind != "fault") continue;
    EXPECT_EQ(ids.count(one.expect.clean_twin), 1u) << one.name;
    if (one.skip) continue;  // another device's fault
    ASSERT_FALSE(one.required_checks.empty()) << one.name;
    for (const std::string& check : one.required_checks)
      EXPECT_TRUE(check.starts_with(one.expect.detector + ".")) << check;
  }
  const record::PlanLine& hang = line(plan, "impl=full_iteration,tp=2,microbatches=2,fault=M61");
  EXPECT_EQ(hang.isolation, "process");
  EXPECT_EQ(hang.limits_ms.at(record::Phase::replay), 5000);
  const auto unshown = std::ranges::count_if(
      catalogue_.faults.faults(), [](const FaultEntry& entry) { return !entry.shown_on("cuda"); });
  // These GPUs have no products with a scale for each block: M405, M406 and their twins.
  EXPECT_EQ(plan.skipped,
            (std::map<std::string, std::int64_t>{{"skipped.arch", 4}, {"unexercised", unshown}}));
}

TEST_F(PlanTest, FaultThatTheDeviceCannotShowIsUnexercisedAndItsTwinRuns) {
  const Plan plan = shipped("faults", sim_);
  const record::PlanLine& fault = line(plan, "impl=full_iteration,microbatches=2,fault=M19");
  expect_skipped(fault, "unexercised", "the fault M19 can't be shown on sim");
  EXPECT_FALSE(line(plan, "impl=full_iteration,microbatches=2").skip);
  // A fault of one architecture of GPUs is skipped by that, as its twin is.
  const auto unshown = std::ranges::count_if(catalogue_.faults.faults(), [](const FaultEntry& one) {
    return !one.shown_on("sim") && subject_of(one.twin) == kReference &&
           !one.twin.values.contains("arch");
  });
  EXPECT_EQ(plan.skipped.at("unexercised"), unshown);
}

TEST_F(PlanTest, FaultsOfPackagesAreTheSameCasesWhateverIsInstalled) {
  const auto ids = [&](const Machine& machine) {
    std::vector<std::string> result;
    for (const record::PlanLine& one : shipped("faults", machine).lines) result.push_back(one.id);
    return result;
  };
  Machine bare = cuda_;
  bare.unavailable = {{"torch", "torch is not installed"},
                      {"megatron_core", "megatron-core is not installed"},
                      {"transformer_engine", "transformer-engine is not installed"}};
  EXPECT_EQ(ids(bare), ids(cuda_));
  EXPECT_EQ(ids(sim_), ids(cuda_));
  const std::string name =
      "subject=megatron_core,impl=full_iteration,microbatches=2,precision=bf16,fault=M290";
  EXPECT_FALSE(line(shipped("faults", cuda_), name).skip);
  EXPECT_EQ(line(shipped("faults", cuda_), name).isolation, "process");
  expect_skipped(line(shipped("faults", bare), name), "skipped.capability",
                 "subject=megatron_core: megatron-core is not installed");
  expect_skipped(line(shipped("faults", sim_), name), "skipped.capability",
                 "device=sim: CUDA graphs of PyTorch need a GPU");
}

TEST_F(PlanTest, FilterOnAFaultKeepsItsTwin) {
  const Plan plan = shipped("faults", sim_, "fault == M23");
  ASSERT_EQ(plan.lines.size(), 2u);
  EXPECT_EQ(plan.lines[0].expect.clean_twin, plan.lines[1].id);
}

TEST_F(PlanTest, ConstraintsHoldNegativeCasesThatRunOnAnyDevice) {
  for (const Machine* machine : {&sim_, &cuda_}) {
    const Plan plan = shipped("constraints", *machine);
    const std::pair<const char*, const char*> rows[] = {
        {"impl=full_iteration,nan_check_loss=true", "R035"},
        {"impl=transformer_engine,modules=[moe,moe_router],model=moe,experts=4,topk=2,dispatch="
         "drop_and_pad,dispatcher=alltoall",
         "R071"},
        {"impl=transformer_engine,modules=[moe_preprocess],model=moe,experts=4,topk=2,dispatch="
         "drop_and_pad,dispatcher=alltoall",
         "R072"},
        {"impl=full_iteration,rng_tracker=plain", "B08"},
        {"tp=2,hidden=48,heads=3", "G001"}};
    for (const auto& [name, rule] : rows) {
      const record::PlanLine& one = line(plan, name);
      EXPECT_EQ(one.expect, (record::Expect{.kind = "rejected", .rule = rule}));
      EXPECT_FALSE(one.skip);
      EXPECT_TRUE(one.required_checks.empty());
    }
    EXPECT_EQ(plan.negative, static_cast<std::int64_t>(plan.lines.size()));
    EXPECT_TRUE(plan.skipped.empty());
    EXPECT_EQ(plan.not_isolated, std::vector<std::string>{"R092: no negative case"});
  }
}

TEST_F(PlanTest, WhatTheMachineLacksIsSkippedAndCounted) {
  const Plan plan = own(
      R"("axes": {"comm": ["nccl", "c10d"], "tp": [1, 4], "dp": [1, 2], "arch": ["any", "sm_100"]},
         "profiles": {"p": {}})");
  expect_skipped(line(plan, "tp=4,dp=2"), "skipped.gpus",
                 "needs 8 ranks, this machine has room for 4");
  expect_skipped(line(plan, "arch=sm_100"), "skipped.arch",
                 "needs sm_100, this machine has no known architecture");
  expect_skipped(line(plan, "comm=c10d"), "skipped.capability",
                 "device=sim, comm=c10d: the simulated device has no NCCL, and so no PyTorch "
                 "process group over it");
  EXPECT_EQ(plan.skipped,
            (std::map<std::string, std::int64_t>{
                {"skipped.arch", 6}, {"skipped.capability", 3}, {"skipped.gpus", 4}}));
  EXPECT_EQ(plan.summary().at("to_run"), 3);
}

TEST_F(PlanTest, MatchingArchitectureRuns) {
  const Case test_case = case_from_name(catalogue_.axes, "arch=sm_90", "");
  EXPECT_FALSE(plan_case(catalogue_, test_case, cuda_, "").skip);
}

TEST_F(PlanTest, OneCaseIsPlannedAsItsProfileWouldPlanIt) {
  const record::PlanLine fault = plan_case(
      catalogue_, case_from_name(catalogue_.axes, "impl=manual,microbatches=2,fault=M23", ""), sim_,
      "repro");
  EXPECT_EQ(fault.expect.detector, "D04");
  const record::PlanLine refused =
      plan_case(catalogue_, case_from_name(catalogue_.axes, "impl=local,tp=3", ""), sim_, "repro");
  EXPECT_EQ(refused.expect.rule, "G001");
  EXPECT_FALSE(refused.skip);
}

TEST_F(PlanTest, IncludedRowsThatTheProductHasAreNotPlannedTwice) {
  const Plan plan = own(
      R"("axes": {"tp": [1, 2]}, "include": [{"tp": 2}, {"tp": 4}, {"tp": 3}],
         "profiles": {"p": {}})");
  ASSERT_EQ(plan.lines.size(), 4u);
  EXPECT_EQ(plan.lines[2].why, "included by the matrix file");
  EXPECT_EQ(plan.lines[3].expect, (record::Expect{.kind = "rejected", .rule = "G001"}));
}

TEST_F(PlanTest, KnownIssueBecomesTheExpectation) {
  const Plan plan = own(
      R"("axes": {"tp": [1, 2]},
         "known_issues": [{"id": "K", "expr": "tp == 2", "expect": "fail.numerics", "owner": "o",
                           "until": "2027-03-01"}], "profiles": {"p": {}})");
  EXPECT_EQ(plan.lines[0].expect.kind, "pass");
  EXPECT_EQ(plan.lines[1].expect, (record::Expect{.kind = "known_issue",
                                                  .issue = "K",
                                                  .verdict = "fail.numerics",
                                                  .owner = "o",
                                                  .until = "2027-03-01"}));
}

TEST_F(PlanTest, TolerancesBecomeAnAxisOfTheCasesOfTheirRules) {
  const Plan plan = own(
      R"("axes": {"tp": [1, 2, 4]},
         "oracle": {"rules": [
           {"when": "tp > 1", "rtol": 1e-5, "atol": 1e-8, "classes": ["losses"], "why": "w"},
           {"when": "tp == 4", "rtol": 0.01, "classes": ["parameters", "gradients"],
            "why": "w"}]},
         "profiles": {"p": {}})");
  EXPECT_EQ(plan.lines[0].axes.at("tolerance"), "none");
  EXPECT_EQ(plan.lines[1].axes.at("tolerance"), "losses: rtol 1e-05 atol 1e-08");
  EXPECT_EQ(plan.lines[2].axes.at("tolerance"),
            "losses: rtol 1e-05 atol 1e-08; gradients: rtol 0.01 atol 0.0; parameters: rtol 0.01 "
            "atol 0.0");
  for (const record::PlanLine& line : plan.lines) EXPECT_FALSE(line.skip) << line.name;
}

TEST_F(PlanTest, ARuleThatMayHoldGivesNoTolerance) {
  const auto tolerance = [&](const std::string& condition) {
    return own(R"("include": [{"impl": "manual"}], "oracle": {"rules": [{"when": ")" + condition +
               R"(", "rtol": 1e-5, "classes": ["losses"], "why": "w"}]}, "profiles": {"p": {}})")
        .lines[0]
        .axes.at("tolerance");
  };
  ASSERT_FALSE(sim_.stack.contains("nccl_version"));
  EXPECT_EQ(tolerance("nccl_version >= 2.20"), "none") << "the version is not known";
  EXPECT_EQ(tolerance("torch_version >= 2.10"), "losses: rtol 1e-05 atol 0.0");
}

// torch.allclose(eager, graphed, rtol=1e-5), whose atol is 1e-8.
TEST_F(PlanTest, ARuleWithoutClassesIsForAllOfThem) {
  const Plan plan = own(R"("include": [{"impl": "manual"}],
             "oracle": {"rules": [{"when": "impl != none", "rtol": 1e-5, "atol": 1e-8,
                                   "why": "accepted by the team of the model"}]},
             "profiles": {"p": {}})");
  EXPECT_EQ(plan.lines[0].name,
            "impl=manual,tolerance=\"losses: rtol 1e-05 atol 1e-08; gradients: rtol 1e-05 atol "
            "1e-08; parameters: rtol 1e-05 atol 1e-08; optimizer_state: rtol 1e-05 atol 1e-08\"");
}

TEST_F(PlanTest, TolerancesThatContradictEachOtherAreRefused) {
  const Problem problem = thrown([&] {
    own(R"("axes": {"tp": [1, 2], "dp": [1, 2]},
           "oracle": {"rules": [{"when": "tp == 2", "rtol": 0.1, "why": "w"},
                                {"when": "dp == 2", "rtol": 0.2, "classes": ["losses"],
                                 "why": "w"}]},
           "profiles": {"p": {}})");
  });
  EXPECT_EQ(problem.what, "two oracle rules contradict each other");
  EXPECT_EQ(problem.got,
            "losses: rtol 0.1 atol 0.0 for `tp == 2`; losses: rtol 0.2 atol 0.0 for `dp == 2`");
  EXPECT_EQ(problem.want, "one tolerance of losses for tp=2,dp=2");
  EXPECT_EQ(problem.next, "narrow `when` of one of them, so that no case meets both");
  EXPECT_GT(problem.place.line, 0);
  for (const char* other : {R"("when": "dp == 2 and tp == 1", "rtol": 0.2)",
                            R"("when": "dp == 2", "rtol": 0.2, "classes": ["gradients"])"}) {
    const std::string oracle = std::string(R"("oracle": {"rules": [{"when": "tp == 2",)") +
                               R"( "rtol": 0.1, "classes": ["losses"], "why": "w"}, {)" + other +
                               R"(, "why": "w"}]},)";
    EXPECT_NO_THROW(
        own(R"("axes": {"tp": [1, 2], "dp": [1, 2]}, )" + oracle + R"("profiles": {"p": {}})"))
        << other;
  }
}

TEST_F(PlanTest, AToleranceForACaseWithoutASpreadIsRefusedAtItsRule) {
  const struct {
    const char *included, *why;
  } rows[] = {
      {R"({"impl": "manual", "schedule": "resume", "steps": 8})",
       "no eager arm repeats an inference job, an evaluation, a resumed job, steps of changing "
       "lengths or a single collective, so the spread of their eager runs is unknown"},
      {R"({"impl": "manual", "optimizer": "adam"})", "Adam divides a gradient by its size"},
      {R"~({"impl": "manual", "recompute": "selective(core_attn)"})~",
       "a sum that nearly cancels has no bound relative to itself"},
      {R"({"impl": "manual", "model": "hybrid"})", "amplifies a rounding from token to token"},
      {R"({"impl": "manual", "precision": "fp16"})", "a scale that follows the largest number"},
  };
  for (const auto& row : rows) {
    const Problem problem = thrown([&] {
      own(std::string(R"("include": [)") + row.included +
          R"(], "oracle": {"rules": [{"when": "impl == manual", "rtol": 0.1, "why": "w"}]},)" +
          R"("profiles": {"p": {}})");
    });
    EXPECT_EQ(problem.what, "a tolerance for a case that cannot have one") << row.included;
    EXPECT_NE(problem.why.find(row.why), std::string::npos) << problem.why;
    EXPECT_GT(problem.place.line, 0);
  }
}

TEST_F(PlanTest, ScaleIsPlannedEverywhereAndSkippedWithoutGpus) {
  Machine two = cuda_;
  two.slots = 2;
  const Plan on_gpus = shipped("scale", two);
  EXPECT_TRUE(on_gpus.skipped.empty());
  EXPECT_GE(on_gpus.lines.size(), 8u);
  std::set<std::string> engines;
  for (const record::PlanLine& one : on_gpus.lines) {
    EXPECT_EQ(one.expect.kind, "pass") << one.name;
    EXPECT_NE(one.axes.at("perf_limit"), "none") << one.name;
    EXPECT_NE(one.axes.at("memory_limit"), "none") << one.name;
    EXPECT_GE(one.axes.at("hidden").get<int>(), 2048) << one.name;
    engines.insert(one.axes.at("impl").get<std::string>());
  }
  EXPECT_EQ(engines,
            (std::set<std::string>{"full_iteration", "local", "manual", "transformer_engine"}));
  const Plan on_sim = shipped("scale", sim_);
  EXPECT_EQ(on_sim.lines.size(), on_gpus.lines.size());
  for (const record::PlanLine& one : on_sim.lines)
    expect_skipped(one, "skipped.capability",
                   "real_sizes: the simulated device computes on the host, where a step of these "
                   "models takes minutes");
}

TEST_F(PlanTest, StatedLimitsBecomeAxesOfTheCasesThatAreMeasured) {
  const Plan plan = own(
      R"("axes": {"impl": ["none", "manual", "full_iteration"]},
         "include": [{"impl": "local", "perf_limit": "graph_step <= 3"}],
         "perf": [{"limit": "graph_step <= 1.02 * eager_step"},
                  {"limit": "graph_launch <= 0.5", "when": "impl == manual"}],
         "memory": "graph_peak <= 2.0 * eager_peak",
         "profiles": {"p": {}})");
  const auto limits_of = [&](std::size_t line) {
    return std::pair(plan.lines[line].axes.at("perf_limit").get<std::string>(),
                     plan.lines[line].axes.at("memory_limit").get<std::string>());
  };
  ASSERT_EQ(plan.lines.size(), 4u);
  EXPECT_EQ(limits_of(0), std::pair(std::string("none"), std::string("none")))
      << "a case without graphs has nothing to compare";
  EXPECT_EQ(limits_of(1),
            std::pair(std::string("graph_step <= 1.02 * eager_step and graph_launch <= 0.5"),
                      std::string("graph_peak <= 2.0 * eager_peak")));
  EXPECT_EQ(limits_of(2), std::pair(std::string("graph_step <= 1.02 * eager_step"),
                                    std::string("graph_peak <= 2.0 * eager_peak")));
  EXPECT_EQ(limits_of(3).first, "graph_step <= 3") << "its own";
  EXPECT_EQ(plan.lines[0].isolation, "batch");
  for (const std::size_t line : {1u, 2u, 3u})
    EXPECT_EQ(plan.lines[line].isolation, "process") << "times of this case alone";
  for (const std::size_t line : {1u, 2u, 3u})
    for (const char* check : {"D44.stated_times", "D31.stated_memory"})
      EXPECT_EQ(std::ranges::count(plan.lines[line].required_checks, check), 1) << check;
  EXPECT_EQ(std::ranges::count(plan.lines[0].required_checks, "D44.stated_times"), 0);
}

TEST_F(PlanTest, ALimitThatCannotBeReadIsRefusedInACaseToo) {
  const Problem problem = thrown([&] {
    plan_case(catalogue_,
              case_from_name(catalogue_.axes, "impl=local,perf_limit=\"graph_step < 3\"", ""), sim_,
              "");
  });
  EXPECT_EQ(problem.what, "a limit that is no comparison");
  EXPECT_EQ(problem.place.source, "perf_limit");
}

TEST_F(PlanTest, LaterLimitsWin) {
  const Plan plan = own(
      R"("axes": {"tp": [1]}, "limits": {"init": "1s", "replay": "2s"},
         "profiles": {"p": {"limits": {"replay": "3s"}, "isolation": "process", "seed": 7,
                            "budget": "1h"}})");
  EXPECT_EQ(plan.lines[0].limits_ms.at(record::Phase::init), 1000);
  EXPECT_EQ(plan.lines[0].limits_ms.at(record::Phase::replay), 3000);
  EXPECT_EQ(plan.lines[0].limits_ms.at(record::Phase::capture), 60000);
  EXPECT_EQ(plan.lines[0].isolation, "process");
  EXPECT_EQ(plan.seed, 7);
  EXPECT_EQ(plan.budget_ms, 3'600'000);
}

TEST_F(PlanTest, AxesSetTheEnvironmentOfTheirRanks) {
  const Case test_case = case_from_name(
      catalogue_.axes,
      "allocator=expandable,nccl_graph_register=0,nccl_algo=Ring,nccl_proto=LL,env.NCCL_DEBUG=INFO",
      "");
  EXPECT_EQ(case_environment(catalogue_.axes, test_case),
            (std::map<std::string, std::string>{
                {"NCCL_ALGO", "Ring"},
                {"NCCL_DEBUG", "INFO"},
                {"NCCL_GRAPH_REGISTER", "0"},
                {"NCCL_PROTO", "LL"},
                {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}}));
  EXPECT_TRUE(case_environment(catalogue_.axes, Case{}).empty());
}

TEST_F(PlanTest, BatchKeySeparatesWhatCannotShareProcesses) {
  const auto key = [&](const char* name, const char* device = "sim") {
    return batch_key(plan_case(catalogue_, case_from_name(catalogue_.axes, name, ""), cuda_, ""),
                     device);
  };
  EXPECT_EQ(key("tp=2"), key("dp=2,impl=manual,dropout=true"));
  EXPECT_NE(key("tp=2"), key("tp=4"));
  EXPECT_NE(key("tp=2"), key("tp=2", "cuda"));
  EXPECT_NE(key("tp=2"), key("tp=2,env.NCCL_DEBUG=INFO"));
  EXPECT_NE(key("tp=2"), key("tp=2,nccl_algo=Ring"));
  EXPECT_NE(key("tp=2", "cuda"), key("tp=2,comm=c10d", "cuda"))
      << "communicators are made once a process";
  EXPECT_NE(key("impl=manual,microbatches=2"), key("impl=manual,microbatches=2,fault=M23"));
  EXPECT_NE(key("impl=manual,microbatches=2,fault=M49"),
            key("impl=manual,microbatches=2,fault=M23"));
}

TEST_F(PlanTest, ImpossibleMatrixNamesTheFewestRulesThatMakeItSo) {
  const Problem rules = thrown([&] {
    own(R"("axes": {"impl": ["full_iteration"], "nan_check_loss": [true], "tp": [1, 3]},
           "profiles": {"p": {}})");
  });
  EXPECT_EQ(rules.what, "an impossible matrix: no row is valid");
  EXPECT_EQ(rules.got, "R035, which no row fulfils at once");
  EXPECT_EQ(at(rules), "3:25");
  const Problem own_rules = thrown([&] {
    own(R"("axes": {"tp": [1, 2], "dp": [1, 2], "dropout": [false, true]},
           "require": [{"id": "B", "expr": "dropout", "why": "w"},
                       {"id": "A", "expr": "tp == 1", "why": "w"},
                       {"id": "C", "expr": "tp * dp == 4", "why": "w"}],
           "profiles": {"p": {}})");
  });
  EXPECT_EQ(own_rules.got, "A, C, which no row fulfils at once");
  EXPECT_EQ(at(own_rules), "4:31") << "the first of them in the file";
}

TEST_F(PlanTest, AxisOrValueThatNoValidRowHasIsRefusedAtItsPlace) {
  const struct {
    const char *members, *what, *why, *place;
  } rows[] = {
      {R"("axes": {"tp": [1, 2, 4]}, "require": [{"id": "A", "expr": "tp != 2", "why": "w"}])",
       "no valid row can have `tp == 2`", "forbidden by A", "2:20"},
      {R"("axes": {"tp": [1, 3]})", "no valid row can have `tp == 3`", "forbidden by G001", "2:20"},
      {R"("axes": {"impl": ["none"],
                   "modules": {"subset_of": ["attn", "mlp"], "when": "impl == local"}})",
       "no valid row can have axis `modules`", "forbidden by when modules", "3:45"},
  };
  for (const auto& row : rows) {
    const Problem problem =
        thrown([&] { own(std::string(row.members) + R"(, "profiles": {"p": {}})"); });
    EXPECT_EQ(problem.what, row.what) << row.members;
    EXPECT_EQ(problem.why, row.why) << row.members;
    EXPECT_EQ(at(problem), row.place) << row.members;
  }
  // None of these is a mistake: a value that only this machine forbids, a negative constraint, a
  // subset among many.
  EXPECT_NO_THROW(own(
      R"("axes": {"tp": [1, 2, 4]},
         "require": [{"id": "A", "expr": "tp < slots", "why": "w"},
                     {"id": "B", "expr": "tp != 2", "why": "w", "negative": true}],
         "profiles": {"p": {}})"));
  EXPECT_NO_THROW(own(
      R"("axes": {"impl": ["none", "local"],
                  "modules": {"subset_of": ["attn", "moe_router"], "when": "impl == local"}},
         "profiles": {"p": {}})"));
}

TEST_F(PlanTest, ExplainNamesWhatForbidsEachValueAndPairOfAWholeProduct) {
  const MatrixFile file = parse_matrix_file(
      R"({"schema": "graphproof-matrix/1",
          "axes": {"tp": [1, 3], "impl": ["none", "full_iteration"],
                   "nan_check_loss": [false, true]}, "profiles": {"p": {}}})",
      "m.json", catalogue_, {});
  const Plan plan = make_plan(file, catalogue_, "p", sim_, std::nullopt, {.explain = true});
  ASSERT_EQ(plan.unreachable.size(), 2u);
  EXPECT_EQ(to_json(plan.unreachable[0]),
            nlohmann::json::parse(R"({"values": {"tp": "3"}, "lost": false, "reason": ["G001"]})"));
  EXPECT_EQ(to_json(plan.unreachable[1]),
            nlohmann::json::parse(
                R"({"values": {"impl": "full_iteration", "nan_check_loss": "true"}, "lost": false,
              "reason": ["R035"]})"));
}

TEST_F(PlanTest, MoreCasesThanAPlanMayHaveAreRefusedBeforeTheyAreMade) {
  std::string axes;
  for (int i = 0; i < 30; ++i)
    axes += (i ? ", " : "") + std::string("\"env.GP_TEST_") + std::to_string(i) +
            "\": [\"unset\", \"0\"]";
  const Problem problem =
      thrown([&] { own("\"axes\": {" + axes + "}, \"profiles\": {\"p\": {}}"); });
  EXPECT_EQ(problem.what, "too many cases for one run");
  EXPECT_EQ(problem.got, "1073741824");
  EXPECT_EQ(own("\"axes\": {" + axes + "}, \"profiles\": {\"p\": {\"sample\": 20}}").lines.size(),
            20u);
}

TEST_F(PlanTest, FilterThatLeavesNothingIsAnEmptyPlan) {
  for (const auto& [profile, where] : {std::pair<const char*, const char*>{"smoke", "tp == 8"},
                                       {"faults", "fault == none"},
                                       {"constraints", "tp == 64"}}) {
    const Plan plan = shipped(profile, sim_, where);
    EXPECT_TRUE(plan.lines.empty()) << profile;
    EXPECT_EQ(plan.filtered.rows, plan.raw.rows) << profile;
  }
}

TEST_F(PlanTest, UnknownProfileSuggestsTheNearest) {
  const Problem problem = thrown([&] { own("\"profiles\": {\"nightly\": {}}", "nightli"); });
  EXPECT_EQ(problem.what, "no profile `nightli` in this matrix");
  EXPECT_EQ(problem.next, "did you mean `nightly`?");
}

TEST_F(PlanTest, AFileWithoutProfilesIsTheWholeProduct) {
  EXPECT_EQ(own(R"("axes": {"tp": [1, 2]}, "include": [{"tp": 4}])", "all").lines.size(), 3u);
  EXPECT_EQ(thrown([&] { own(R"("axes": {"tp": [1, 2]}, "profiles": {"p": {}})", "all"); }).what,
            "no profile `all` in this matrix");
}

TEST_F(PlanTest, AFileWithoutAxesHasOnlyWhatItIncludes) {
  const Plan plan = own(
      R"("include": [{"impl": "full_iteration", "tp": 2}, {"impl": "local"}],
         "require": [{"id": "X", "expr": "tp < 4", "why": "w"}])",
      "all");
  ASSERT_EQ(plan.lines.size(), 2u);
  EXPECT_EQ(plan.lines[0].axes.at("tp"), 2);
  EXPECT_EQ(plan.lines[1].axes.at("impl"), "local");
  EXPECT_EQ(plan.raw.rows, 0);
  EXPECT_EQ(own(R"("meaning": "an empty file")", "all").lines.size(), 1u) << "the default case";
}

TEST_F(PlanTest, SameInputsGiveTheSamePlan) {
  EXPECT_EQ(shipped("faults", sim_).lines, shipped("faults", sim_).lines);
}

}  // namespace
}  // namespace graphproof::matrix
