#include "reports/print/html.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <map>
#include <mutex>

#include "reports/print/packing.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

const matrix::Catalogue& catalogue() {
  static const matrix::Catalogue loaded = matrix::load_catalogue();
  return loaded;
}

PageFacts no_facts(const RunResult& run) {
  const CrossRunFacts known{.unknown = "There is no history."};
  return {.catalogue = &catalogue(),
          .hazards = {},
          .overview = overview(
              run, {.catalogue = catalogue(),
                    .hazards = std::nullopt,
                    .cross_run = known,
                    .errors_of = [](const record::Record&) { return std::vector<ErrorFact>(); }}),
          .detail_of = [](const record::Record&) { return CaseDetail{}; },
          .span_of = [](const record::Record&) { return std::nullopt; },
          .cross_run = known};
}

std::string unpacked(const std::string& text) {
  std::string bytes(text.size(), '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  EXPECT_GT(size, 0);
  return gunzip({bytes.data(), static_cast<std::size_t>(size)});
}

std::string between(const std::string& page, const std::string& open, const std::string& close) {
  const std::size_t begin = page.find(open);
  EXPECT_NE(begin, std::string::npos) << open;
  const std::size_t from = begin + open.size();
  return page.substr(from, page.find(close, from) - from);
}

nlohmann::json data_of(const std::string& page) {
  return nlohmann::json::parse(
      unpacked(between(page, "<script type=\"text/plain\" id=\"data\">", "</script>")));
}
nlohmann::json first_chunk(const std::string& page) {
  return nlohmann::json::parse(
      unpacked(between(page, "<script type=\"text/plain\" class=\"chunk\">", "</script>")));
}

TEST(Html, HoldsEveryCaseAndLoadsNothing) {
  const std::string page = html(mixed_run(), no_facts(mixed_run()));
  const nlohmann::json data = data_of(page);
  EXPECT_EQ(data["cases"]["id"].size(), 5u);
  EXPECT_EQ(first_chunk(page)[2]["failing"][0]["check"], "D01.lockstep");
  EXPECT_EQ(data["faults"][0]["status"], "killed");
  EXPECT_EQ(data["faults"][0]["case"], 3);
  EXPECT_EQ(data["groups"].size(), 3u);
  const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'sha256-")) << policy;
  EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
  const std::string markup = page.substr(0, page.find("id=\"data\""));
  EXPECT_EQ(markup.find("src=\""), std::string::npos);
  EXPECT_EQ(markup.find("<link"), std::string::npos);
  for (const char* place : {"/*page.js*/", "/*echarts*/", "/*run.json*/", "<!--chunks-->"})
    EXPECT_EQ(page.find(place), std::string::npos) << place << " is filled";
}

TEST(Html, ThePolicyNamesTheDigestsOfTheScriptAndTheStyleSheet) {
  const std::string page = html(mixed_run(), no_facts(mixed_run()));
  const auto source = [](const std::string& text) {
    unsigned char digest[32];
    EVP_Digest(text.data(), text.size(), digest, nullptr, EVP_sha256(), nullptr);
    std::string encoded(45, '\0');
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()), digest, sizeof digest);
    encoded.resize(44);
    return "'sha256-" + encoded + "'";
  };
  const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_NE(policy.find(source(between(page, "<style>", "</style>"))), std::string::npos);
  EXPECT_NE(policy.find(source(between(page, "<script>", "</script>"))), std::string::npos);
  const std::string echarts =
      unpacked(between(page, "<script type=\"text/plain\" id=\"plot-library\">", "</script>"));
  EXPECT_NE(policy.find(source(echarts)), std::string::npos);
  EXPECT_NE(echarts.find("Licensed to the Apache Software Foundation"), std::string::npos);
}

TEST(Html, TextOfARankCannotEndTheDataNorTakeAPlace) {
  RunResult run = mixed_run();
  const std::string hostile = "</script><script>alert(1)</script><!-- /*echarts*/ \xff";
  run.cases[2].record.failing[0].message.what = hostile;
  const std::string page = html(run, no_facts(run));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  const std::string got = first_chunk(page)[2]["failing"][0]["what"];
  EXPECT_TRUE(got.starts_with("</script><script>alert(1)</script><!-- /*echarts*/ ")) << got;
}

TEST(Html, ACaseHasTheCurvesAndTheDivergentTensorThatAreFound) {
  PageFacts facts = no_facts(mixed_run());
  facts.detail_of = [](const record::Record& record) {
    CaseDetail detail;
    if (record.case_id != std::string(16, '3')) return detail;
    detail.series.loss["eager_a"] = {{0, 1}, {2.5, 2.25}};
    detail.divergence = "rank 1, step 3, </script>";
    detail.gain = Interval{1.5, 2.5};
    return detail;
  };
  const std::string page = html(mixed_run(), facts);
  const nlohmann::json cases = first_chunk(page);
  EXPECT_EQ(cases[2]["series"]["loss"]["eager_a"]["values"], nlohmann::json({2.5, 2.25}));
  EXPECT_FALSE(cases[0].contains("series"));
  EXPECT_EQ(cases[2]["symptoms"][0]["symptom"], "numbers that differ from eager");
  EXPECT_TRUE(cases[0]["symptoms"].empty());
  EXPECT_EQ(cases[2]["divergence"], "rank 1, step 3, </script>");
  EXPECT_EQ(data_of(page)["gains"]["2"], nlohmann::json({1.5, 2.5}));
}

TEST(Html, EvidenceThatIsLostIsSaidAndIsNoSuccess) {
  RunResult run = run_of({ended('1', "tp=2", "pass"_verdict, 90)});
  run.cases[0].record.checks.pass = 3;
  EXPECT_EQ(data_of(html(run, no_facts(run)))["exit_code"], 0);
  run.cases[0].checks.clear();
  const nlohmann::json data = data_of(html(run, no_facts(run)));
  EXPECT_EQ(data["overview"]["word"], "Not shown");
  EXPECT_EQ(data["exit_code"], 4);
}

TEST(Html, WhatAHistoryKnowsIsPassedOnAndWrittenOnce) {
  PageFacts facts = no_facts(mixed_run());
  facts.cross_run = CrossRunFacts{.unknown = "",
                                  .last_run = "r1",
                                  .broke = {2},
                                  .healed = {},
                                  .stack_changes = {{"NCCL", "2.28.9", "2.29.2"}},
                                  .runs = {{"r1", "2026-11-20T10:15:00Z", "0123456789abcdef"}},
                                  .verdicts = {5, {"pass"_verdict}},
                                  .failing = {},
                                  .flaky = {}};
  facts.cross_run.verdicts[4] = {std::nullopt};
  const nlohmann::json known = data_of(html(mixed_run(), facts))["cross_run"];
  EXPECT_EQ(known["broke"], nlohmann::json({2}));
  EXPECT_EQ(known["stack_changes"][0], "NCCL 2.28.9 -> 2.29.2");
  EXPECT_EQ(known["sequences"], nlohmann::json::parse(R"([["pass"],[null]])"));
  EXPECT_EQ(known["of"], nlohmann::json({0, 0, 0, 0, 1}));
  EXPECT_EQ(data_of(html(mixed_run(), no_facts(mixed_run())))["cross_run"]["unknown"],
            "There is no history.");
}

/// `count` cases over four axes of which some fail.
RunResult large_run(int count) {
  RunResult run = run_of({});
  for (int i = 0; i < count; ++i) {
    const bool fails = i % 40 == 7;
    CaseResult one = ended('1', "case " + std::to_string(i),
                           fails ? "fail.numerics"_verdict : "pass"_verdict, fails ? 60 : 90);
    char id[17];
    std::snprintf(id, sizeof id, "%016x", static_cast<unsigned>(i));
    one.plan.id = one.record.case_id = id;
    one.plan.axes = {{"impl", i % 40 == 7 ? "manual" : "local"},
                     {"tp", 1 << (i % 4)},
                     {"seq_length", 16 * (1 + i % 50)},
                     {"dropout", i % 3 == 0}};
    run.cases.push_back(one);
  }
  return run;
}

TEST(Html, OfALargeRunTheFailuresAreReadAndThenTheFirstOthers) {
  const RunResult run = large_run(3000);
  PageFacts facts = no_facts(run);
  std::map<std::string, int> asked;
  std::mutex several;
  facts.detail_of = [&](const record::Record& record) {
    const std::lock_guard lock(several);
    ++asked[record.case_id];
    return CaseDetail{};
  };
  const std::string page = html(run, facts);
  EXPECT_EQ(asked.size(), 75 + kDetailedOthers) << "75 cases fail";
  for (const CaseResult& one : run.cases)
    EXPECT_TRUE(!one.record.verdict.in("fail") || asked[one.plan.id] == 1) << one.plan.id;
  EXPECT_LT(page.size(), 1500u * 1024) << "what cases have in common is written once";
  const nlohmann::json groups = data_of(page)["groups"];
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0]["expression"], "impl == manual");
  EXPECT_EQ(groups[0]["outside"], 0);
}

}  // namespace
}  // namespace graphproof::reports
