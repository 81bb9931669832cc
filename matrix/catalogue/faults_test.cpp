#include "matrix/catalogue/faults.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class FaultsTest : public testing::Test {
 protected:
  Problem refused(const std::string& changes) const {
    nlohmann::json row = {{"fault", "M23"},
                          {"name", "a_name"},
                          {"title", "t"},
                          {"detector", "D04"},
                          {"axes", {{"impl", "manual"}}},
                          {"isolation", "batch"},
                          {"devices", {"sim"}},
                          {"limits_ms", nlohmann::json::object()},
                          {"signature", "s"}};
    row.update(nlohmann::json::parse(changes));
    const Document document = parse_document(
        nlohmann::json({{"schema", "graphproof-fault-table/1"}, {"faults", {row}}}).dump(),
        "f.json");
    return thrown([&] { FaultTable::parse(document, catalogue_.axes, catalogue_.checks); });
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(FaultsTest, ShippedFaultsAreSortedAndSayWhereEachIsShown) {
  std::vector<std::string> ids;
  for (const FaultEntry& fault : catalogue_.faults.faults()) ids.push_back(fault.fault);
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  EXPECT_EQ(catalogue_.faults.find("M61")->isolation, "process");
  EXPECT_EQ(catalogue_.faults.find("M61")->limits_ms, (Limits{{record::Phase::replay, 5000}}));
  EXPECT_TRUE(catalogue_.faults.find("M15")->shown_on("sim"));
  EXPECT_FALSE(catalogue_.faults.find("M19")->shown_on("sim"));
  EXPECT_EQ(catalogue_.faults.find("M00"), nullptr);
}

TEST_F(FaultsTest, PlantedCaseIsTheTwinWithTheFault) {
  const FaultEntry& fault = *catalogue_.faults.find("M32");
  EXPECT_EQ(case_name(catalogue_.axes, planted_case(catalogue_.axes, fault)),
            "impl=full_iteration,microbatches=2,dropout=true,fault=M32");
  EXPECT_EQ(clean_twin(planted_case(catalogue_.axes, fault)), fault.twin);
}

TEST_F(FaultsTest, PlantedCasesBreakNoRuleAndCanRun) {
  for (const FaultEntry& fault : catalogue_.faults.faults()) {
    const Case planted = planted_case(catalogue_.axes, fault);
    EXPECT_FALSE(catalogue_.rules.refusal(planted, {})) << fault.fault;
    const Machine machine{.device = fault.devices.front(),
                          .slots = 2,
                          .stack = {{"sm", "90"}, {"compute_sanitizer", "2026.4.0.0"}}};
    EXPECT_EQ(catalogue_.capabilities.missing(planted, machine), std::vector<std::string>{})
        << fault.fault;
  }
}

TEST_F(FaultsTest, ACaseHasNoFaultOfAnotherSubjectsCode) {
  const auto missing = [&](const std::string& name) {
    return catalogue_.capabilities.missing(case_from_name(catalogue_.axes, name, ""),
                                           {.device = "cuda", .stack = {{"sm", "90"}}});
  };
  using Reasons = std::vector<std::string>;
  const std::string why = ": this fault is planted in the code of another subject";
  EXPECT_EQ(missing("impl=manual,fault=M250"), Reasons{"fault=M250" + why});
  EXPECT_EQ(missing("subject=torch,impl=manual,optimizer_kernels=fused,fault=M23"),
            Reasons{"fault=M23" + why});
  EXPECT_EQ(missing("subject=torch,impl=manual,optimizer_kernels=fused,fault=M290"),
            Reasons{"fault=M290" + why});
  EXPECT_EQ(missing("subject=torch,impl=manual,optimizer_kernels=fused,fault=M259"), Reasons{});
  EXPECT_EQ(missing("subject=script,impl=manual,env.GRAPHPROOF_SCRIPT=a.py,fault=M259"),
            Reasons{"fault=M259: no faults are planted in this subject"});
}

TEST_F(FaultsTest, FaultsOfPackagesRunInProcessesOfTheirOwnOnGpus) {
  // A replaced function stays replaced, and the simulated device runs no PyTorch graph.
  int seen = 0;
  for (const FaultEntry& fault : catalogue_.faults.faults()) {
    if (subject_of(fault.twin) == kReference) continue;
    ++seen;
    EXPECT_EQ(fault.isolation, "process") << fault.fault;
    EXPECT_EQ(fault.devices, std::vector<std::string>{"cuda"}) << fault.fault;
  }
  EXPECT_GE(seen, 30);
}

TEST_F(FaultsTest, DevicesMayHaveDetectorsOfTheirOwn) {
  const FaultEntry& race = *catalogue_.faults.find("M165");
  EXPECT_EQ(race.detector("sim"), "D56");
  EXPECT_EQ(race.detector("cuda"), "D13");
  EXPECT_EQ(race.detector_text(), "D13 (cuda), D56 (sim)");
  EXPECT_EQ(catalogue_.faults.find("M32")->detector_text(), "D08");
  EXPECT_EQ(catalogue_.faults.find("M151")->detector("sim"), "D19")
      << "of the device that can show it";
}

TEST_F(FaultsTest, FaultThatNothingCouldCatchIsRefused) {
  EXPECT_EQ(
      refused(R"({"detector": {"sim": "D13", "cuda": "D04"}, "devices": ["sim", "cuda"]})").what,
      "no check of detector D13 is required on sim in this case");
  EXPECT_EQ(refused(R"({"detector": {"sim": "D04"}, "devices": ["sim", "cuda"]})").what,
            "the key `cuda` is missing");
  EXPECT_EQ(refused(R"({"detector": "D99"})").what, "no check belongs to detector D99");
  EXPECT_EQ(refused(R"({"detector": "D08"})").what,
            "no check of detector D08 is required on sim in this case");
  EXPECT_EQ(refused(R"({"detector": "D28", "axes": {}, "devices": []})").what,
            "a fault that no device can show");
}

TEST_F(FaultsTest, BrokenRowsAreRefused) {
  EXPECT_EQ(refused(R"({"axes": {"fault": "M01"}})").what, "a fault inside a fault's case");
  EXPECT_EQ(refused(R"({"isolation": "none"})").what, "unknown value `none`");
  EXPECT_EQ(refused(R"({"name": "A name"})").what, "`A name` is no name of its own");
  EXPECT_EQ(refused(R"({"limits_ms": {"replay": "soon"}})").what, "a duration that can't be read");
  EXPECT_EQ(refused(R"({"devices": ["gpu"]})").what, "unknown value `gpu`");
  const Document twice =
      parse_document(R"({"faults": [{"fault": "M01"}, {"fault": "M01"}]})", "f.json");
  EXPECT_EQ(thrown([&] { FaultTable::ids(twice); }).what, "a fault needs an id of its own");
}

}  // namespace
}  // namespace graphproof::matrix
