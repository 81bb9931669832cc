#include "matrix/catalogue/hazards.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <set>

#include "matrix/catalogue/catalogue.h"
#include "matrix/plan/plan.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class HazardsTest : public testing::Test {
 protected:
  static Machine gpus(std::int64_t slots, const char* nccl = "2.28.9") {
    return {.device = "cuda",
            .slots = slots,
            .stack = {{"torch_version", "2.11.0"}, {"sm", "90"}, {"nccl_version", nccl}}};
  }
  static const Machine& sim() {
    static const Machine machine{
        .device = "sim",
        .slots = 4,
        .stack = {{"torch_version", "2.11.0"}, {"sm", "0"}, {"nccl_version", "none"}}};
    return machine;
  }
  Plan shipped(const Machine& machine) const {
    return make_plan(shipped_matrix_file("hazards", catalogue_), catalogue_, "hazards", machine,
                     std::nullopt);
  }
  /// The size of the profile's product, in which the machine determines two of the axes.
  std::int64_t cells() const {
    std::int64_t product = 1;
    for (const VaryingAxis& axis : shipped_matrix_file("hazards", catalogue_).axes)
      if (axis.name != "dp" && axis.name != "collective_bytes")
        product *= static_cast<std::int64_t>(axis.values.size());
    return product;
  }
  std::string expected(const std::string& name, const Machine& machine) const {
    const Hazard* hazard =
        catalogue_.hazards.of(case_from_name(catalogue_.axes, name, ""), machine);
    return hazard == nullptr ? "none" : hazard->id + " " + hazard->expect;
  }
  Problem refused(const std::string& changes) const {
    nlohmann::json table = {
        {"schema", "graphproof-hazard-table/1"},
        {"cases", "true"},
        {"disposable", {{"when", "true"}, {"why", "w"}, {"limits", nlohmann::json::object()}}},
        {"hazards", nlohmann::json::array({{{"hazard", "H0"},
                                            {"title", "t"},
                                            {"when", "true"},
                                            {"expect", "pass"},
                                            {"basis", "seen"},
                                            {"why", "w"},
                                            {"source", "s"}}})},
        {"predictions", nlohmann::json::array()}};
    table.merge_patch(nlohmann::json::parse(changes));
    const Document document = parse_document(table.dump(), "h.json");
    return thrown([&] { HazardTable::parse(document, catalogue_.axes); });
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(HazardsTest, ProfileHasEveryCellOnTwoAndOnFourGpus) {
  for (const std::int64_t slots : {2, 4, 8}) {
    const Plan plan = shipped(gpus(slots));
    EXPECT_EQ(std::ssize(plan.lines), cells()) << slots;
    EXPECT_TRUE(plan.skipped.empty()) << plan.summary().dump();
    std::set<std::string> rules, shared;
    std::set<std::map<std::string, std::string>> environments;
    for (const record::PlanLine& line : plan.lines) {
      EXPECT_EQ(line.ranks, slots >= 4 ? 4 : 2);
      EXPECT_EQ(line.axes.at("collective_bytes"), 16777216);
      EXPECT_EQ(line.expect.kind, "hazard");
      EXPECT_EQ(line.environment.at("NCCL_DEBUG"), "INFO");
      rules.insert(line.expect.rule);
      const Case cell = case_from_json(catalogue_.axes, line.axes, "");
      const bool disposable = catalogue_.hazards.disposable(cell, gpus(slots));
      EXPECT_EQ(line.isolation, disposable ? "process" : "batch") << line.name;
      if (disposable) continue;
      shared.insert(batch_key(line, "cuda"));
      environments.insert(line.environment);
    }
    for (const Hazard& hazard : catalogue_.hazards.hazards())
      EXPECT_TRUE(rules.contains(hazard.id)) << "no cell expects " << hazard.id;
    EXPECT_EQ(shared.size(), environments.size()) << "one batch key for each environment";
  }
}

TEST_F(HazardsTest, OneGpuSkipsEveryCell) {
  const Plan plan = shipped(gpus(1));
  EXPECT_EQ(plan.skipped, (std::map<std::string, std::int64_t>{{"skipped.gpus", cells()}}));
}

TEST_F(HazardsTest, SimulatedDeviceRunsWhatItCanShowAndSkipsTheRest) {
  const Plan plan = shipped(sim());
  ASSERT_EQ(std::ssize(plan.lines), cells());
  std::int64_t skipped = 0;
  for (const record::PlanLine& line : plan.lines) {
    EXPECT_EQ(line.axes.at("collective_bytes"), 65536);
    const bool shown =
        line.axes.at("allocator") == "default" && line.axes.at("nccl_graph_register") == "unset";
    EXPECT_EQ(!line.skip, shown) << line.name;
    skipped += shown ? 0 : 1;
    if (shown) {
      EXPECT_EQ(line.expect, (record::Expect{.kind = "hazard", .rule = "H00", .verdict = "pass"}));
    }
  }
  EXPECT_EQ(plan.skipped, (std::map<std::string, std::int64_t>{{"skipped.capability", skipped}}));
}

TEST_F(HazardsTest, AHangIsExpectedOfTheHangingSettingsOnly) {
  const std::string base =
      "impl=manual,dp=4,model=collective,allocator=expandable,placement=per_rank,collective_bytes="
      "16777216,collective=";
  struct Row {
    const char* collective;
    const char* more;
    const char* nccl;
    const char* want;
  };
  const Row rows[] = {
      {"all_gather", "", "2.28.9", "H01 fail.hang"},
      {"all_reduce", "", "2.28.3", "H01 fail.hang"},
      {"all_gather", ",nccl_graph_register=\"1\"", "2.28.9", "H01 fail.hang"},
      {"send_recv", "", "2.28.9", "H02 fail.hang"},
      {"all_gather", ",nccl_graph_register=\"0\"", "2.28.9", "H00 pass"},
      {"all_reduce_in_place", "", "2.28.9", "H00 pass"},
      {"reduce_scatter", "", "2.28.9", "H00 pass"},
      {"all_gather", "", "2.29.2", "H00 pass"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(expected(base + row.collective + row.more, gpus(4, row.nccl)), row.want)
        << row.collective << row.more << " " << row.nccl;
  EXPECT_EQ(expected("impl=manual,dp=4,model=collective,allocator=expandable,collective_bytes="
                     "16777216,collective=all_gather",
                     gpus(4)),
            "H00 pass");
  EXPECT_EQ(expected("impl=manual,dp=4,model=collective,placement=per_rank,collective_bytes="
                     "16777216,collective=all_gather",
                     gpus(4)),
            "H00 pass");
  EXPECT_EQ(expected("dp=4,model=collective,allocator=expandable,placement=per_rank,collective_"
                     "bytes=16777216,collective=all_gather",
                     gpus(4)),
            "H00 pass");
  EXPECT_EQ(expected("impl=manual,tp=2", gpus(4)), "none");
}

TEST_F(HazardsTest, DisposableCellsHaveTheirOwnLimits) {
  const record::PlanLine line =
      plan_case(catalogue_,
                case_from_name(catalogue_.axes,
                               "impl=manual,dp=2,model=collective,allocator=expandable,collective="
                               "all_gather,collective_bytes=1024",
                               ""),
                gpus(2), "");
  EXPECT_EQ(line.isolation, "process");
  EXPECT_EQ(line.limits_ms.at(record::Phase::replay), 10'000);
  EXPECT_EQ(line.limits_ms.at(record::Phase::capture), 10'000);
}

TEST_F(HazardsTest, CuredCaseExpectsAPass) {
  const Hazard& hazard = *catalogue_.hazards.find("H01");
  const Case hung = case_from_name(catalogue_.axes,
                                   "impl=manual,dp=2,model=collective,allocator=expandable,"
                                   "placement=per_rank,collective=all_gather,collective_bytes=1024",
                                   "");
  const Case cured = HazardTable::cured(catalogue_.axes, hazard, hung);
  EXPECT_EQ(text_of(catalogue_.axes, cured, "nccl_graph_register"), "0");
  EXPECT_EQ(catalogue_.hazards.of(hung, gpus(2))->id, "H01");
  EXPECT_EQ(catalogue_.hazards.of(cured, gpus(2))->id, "H00");
  EXPECT_EQ(HazardTable::cured(catalogue_.axes, *catalogue_.hazards.find("H00"), hung), hung);
}

TEST_F(HazardsTest, PredictionsCoverTheDialectsAndDisagreeWithEachOther) {
  std::set<std::string> dialects;
  const Case captured = case_from_name(catalogue_.axes,
                                       "impl=manual,dp=2,model=collective,allocator=expandable,"
                                       "collective=all_gather,collective_bytes=1024",
                                       "");
  std::map<std::string, Truth> refuses;
  for (const Prediction& prediction : catalogue_.hazards.predictions()) {
    dialects.insert(prediction.dialect);
    refuses[prediction.rule] = prediction.refuses.holds(captured, gpus(2));
  }
  EXPECT_EQ(dialects, (std::set<std::string>{"legacy", "megatron-bridge", "megatron-lm"}));
  EXPECT_EQ(refuses, (std::map<std::string, Truth>{{"R059", Truth::yes},
                                                   {"R060, removed", Truth::no},
                                                   {"B35", Truth::yes},
                                                   {"R060", Truth::yes}}));
  Machine blackwell = gpus(2);
  blackwell.stack["sm"] = "100";
  for (const Prediction& prediction : catalogue_.hazards.predictions())
    if (prediction.rule == "R060") {
      EXPECT_EQ(prediction.refuses.holds(captured, blackwell), Truth::no);
    }
}

TEST_F(HazardsTest, BrokenTablesAreRefusedWithTheirPlace) {
  const char* row =
      R"({"hazard": "H1", "title": "t", "when": "true", "expect": "fail.hang", "basis": "seen",
          "why": "w", "source": "s", "cure": {"nccl_graph_register": "0"}})";
  const auto rows = [&](const std::string& list) { return "{\"hazards\": [" + list + "]}"; };
  const auto with = [&](const std::string& key, const std::string& value) {
    nlohmann::json one = nlohmann::json::parse(row);
    one[key] = nlohmann::json::parse(value);
    return rows(one.dump());
  };
  EXPECT_EQ(refused(rows("")).what, "the last hazard does not always hold");
  EXPECT_EQ(refused(with("when", "\"tp == 2\"")).what, "the last hazard does not always hold");
  EXPECT_EQ(refused(with("expect", "\"xfail\"")).what,
            "an expectation that is neither pass nor a failure");
  EXPECT_EQ(refused(with("basis", "\"guessed\"")).place.source, "h.json");
  EXPECT_EQ(refused(with("expect", "\"pass\"")).what,
            "a `cure` without an expected failure, or the reverse");
  EXPECT_EQ(refused(rows(std::string(row) + "," + row)).what, "the hazard H1 appears twice");
  EXPECT_EQ(refused(with("cure", "{\"nccl_graph_registers\": \"0\"}")).next,
            "did you mean `nccl_graph_register`?");
}

}  // namespace
}  // namespace graphproof::matrix
