#include "reports/analysis/causes.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "matrix/catalogue/catalogue.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

record::Record of(record::Verdict verdict, const std::string& what = "step 3 differs") {
  record::Record record = ended('1', "case", verdict, 60).record;
  if (!record.failing.empty()) record.failing[0].message.what = what;
  return record;
}

std::vector<std::string> names(const std::vector<Symptom>& symptoms) {
  std::vector<std::string> names;
  for (const Symptom& one : symptoms)
    names.push_back(one.symptom.substr(0, one.symptom.find_first_of(" :")));
  return names;
}

TEST(Causes, EveryCaptureErrorHasOne) {
  for (const int code : {900, 901, 902, 903, 904, 905, 906, 907, 908, 910}) {
    const auto found = symptoms(of("fail.capture"_verdict),
                                {{.type = "cuda", .call = "c", .message = "m", .code = code}});
    ASSERT_EQ(found.size(), 2u) << code;
    EXPECT_EQ(names(found)[0], std::to_string(code));
    for (const Cause& cause : found[0].likely) {
      EXPECT_FALSE(cause.cause.empty());
      EXPECT_FALSE(cause.fix.empty());
      EXPECT_FALSE(cause.confirm.empty());
    }
  }
}

TEST(Causes, AHangIsNamedByItsPhaseAndAnyOtherByItsFamily) {
  EXPECT_EQ(symptoms(of("fail.hang.replay"_verdict), {})[0].symptom, "a hang in replay");
  EXPECT_EQ(symptoms(of("fail.hang.teardown_comm"_verdict), {})[0].symptom,
            "a communicator that does not end");
  EXPECT_EQ(symptoms(of("fail.hang.build"_verdict), {})[0].symptom, "a hang");
}

TEST(Causes, IllegalAccessAndOutOfMemoryAreFoundInMessages) {
  EXPECT_EQ(symptoms(of("fail.crash.cuda"_verdict,
                        "CUDA error: an Illegal Memory Access was encountered"),
                     {})[0]
                .symptom,
            "an illegal memory access");
  EXPECT_EQ(
      symptoms(of("fail.crash.exception"_verdict),
               {{.type = "exception", .call = "", .message = "CUDA out of memory.", .code = 0}})[0]
          .symptom,
      "out of memory");
}

TEST(Causes, APassHasNone) { EXPECT_TRUE(symptoms(of("pass"_verdict), {}).empty()); }

TEST(Causes, WhatAnExpectationChangedIsStillExplained) {
  record::Record killed = of("fail.numerics"_verdict);
  killed.verdict = "pass.killed"_verdict;
  EXPECT_EQ(symptoms(killed, {})[0].symptom, "numbers that differ from eager");
}

TEST(Causes, AnEagerStepThatIsWrongIsNoDefectOfGraphs) {
  record::Record eager = of("fail.eager"_verdict);
  eager.observed = "fail.numerics"_verdict;
  EXPECT_EQ(symptoms(eager, {})[0].symptom,
            "an eager step that is wrong already, without any graph");
  record::Record isolation = of("fail.isolation"_verdict);
  isolation.observed = "fail.numerics"_verdict;
  EXPECT_EQ(symptoms(isolation, {})[0].symptom, "numbers that differ from eager")
      << "of a verdict that the table does not know the observed one counts";
}

TEST(Causes, ThoseWhoseChecksFiredComeFirst) {
  record::Record moved = of("fail.numerics"_verdict);
  moved.failing.push_back({.check = "D07.static_addresses", .rank = 0, .message = {}});
  const Cause first = symptoms(moved, {})[0].likely[0];
  EXPECT_TRUE(first.cause.starts_with("an input was replaced")) << first.cause;
  EXPECT_EQ(first.fired, std::vector<std::string>{"D07.static_addresses"});
  record::Record frozen = of("fail.capture"_verdict);
  frozen.failing.push_back({.check = "D84.second_capture", .rank = 0, .message = {}});
  const Cause kept = symptoms(frozen, {})[0].likely[0];
  EXPECT_TRUE(kept.cause.starts_with("the graph keeps what the host computed")) << kept.cause;
  const Symptom unranked = symptoms(of("fail.numerics"_verdict), {})[0];
  EXPECT_TRUE(unranked.likely[0].fired.empty()) << "D01 confirms no single cause";
  EXPECT_TRUE(unranked.likely[0].cause.starts_with("a value was frozen")) << "the most common";
}

TEST(Causes, ChecksThatAreNamedInFullExist) {
  std::set<std::string> known;
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  for (const auto& check : catalogue.checks.checks()) known.insert(check.check);
  const std::regex check("D[0-9]{2}\\.[a-z_]+");
  int named = 0;
  for (const char* verdict :
       {"fail.capture", "fail.hang.replay", "fail.hang.teardown_comm", "fail.numerics",
        "fail.not_replayed", "fail.memory.growth", "fail.perf"})
    for (const Symptom& symptom : symptoms(of(*record::Verdict::from(verdict)), {}))
      for (const Cause& cause : symptom.likely)
        for (std::sregex_iterator at(cause.confirm.begin(), cause.confirm.end(), check), end;
             at != end; ++at, ++named)
          EXPECT_TRUE(known.contains(at->str())) << at->str();
  EXPECT_GT(named, 8);
}

TEST(Causes, ErrorsOfAllRanksAreRead) {
  const record::ScratchFolder folder;
  for (int rank = 0; rank < 2; ++rank)
    record::EvidenceWriter(folder.path() / record::evidence_file_name(rank))
        .write(record::ErrorLine{.phase = record::Phase::capture,
                                 .type = "cuda",
                                 .code = 900 + rank,
                                 .call = "aten::item",
                                 .message = "m"});
  const auto errors = errors_of(record::read_evidence_of_attempt(folder.path()));
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[1].code, 901);
  EXPECT_TRUE(errors_of(record::read_evidence_of_attempt(folder.path() / "absent")).empty());
}

}  // namespace
}  // namespace graphproof::reports
