#include "reports/print/formats/formats.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/print/junit.h"
#include "reports/record/schema/violations.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/testing/format_mistakes.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using record::operator""_verdict;

/// Text that would end a command, a label or a value where it is not escaped.
constexpr const char* kHostile = "a%0A::error::b\n::notice::\x1b[2J \"q\\ ,:<x>&é";

RunResult hostile_run() {
  RunResult run = mixed_run();
  run.run.profile = kHostile;
  for (CaseResult& one : run.cases) {
    one.plan.name += kHostile;
    one.record.reason = kHostile;
    for (record::Failing& failing : one.record.failing) failing.message.got = kHostile;
  }
  return run;
}

/// The pieces of a format as one text.
template <typename Format, typename... Arguments>
std::string all_of(Format format, const Arguments&... arguments) {
  std::string text;
  format(arguments..., [&text](std::string_view piece) { text += piece; });
  return text;
}

TEST(GithubAnnotations, AreOneCommandALineWithTheWorstFirst) {
  const auto lines = lines_of(github_annotations(mixed_run()));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("::error title=fail.hang.replay dp=2::because of")) << lines[0];
  EXPECT_NE(lines[0].find("%0Agot: 0.25%0Awant: 0.125%0A"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("./graphproof repro 20261121-101500-3f2a/5555555555555555"),
            std::string::npos);
  EXPECT_TRUE(lines[3].starts_with("::notice title=graphproof smoke on sim::exit 1: product"))
      << lines[3];
}

TEST(GithubAnnotations, HostileTextStaysInItsLine) {
  const std::string text = github_annotations(hostile_run());
  EXPECT_EQ(github_mistakes(text), std::vector<std::string>{});
  EXPECT_EQ(text.find("a%0A"), std::string::npos) << "a per cent sign is escaped: " << text;
  for (const char* broken : {"::error title=a,b::c", "a second line", "::notice title=a::\x1b[2J"})
    EXPECT_FALSE(github_mistakes(broken).empty()) << broken;
}

TEST(GithubAnnotations, AreNoMoreThanGithubShows) {
  std::vector<CaseResult> cases(30, ended('1', "a", "fail.numerics"_verdict, 60));
  const auto lines = lines_of(github_annotations(run_of(cases)));
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_TRUE(lines[10].ends_with("; 20 more in summary.md")) << lines[10];
}

TEST(GitlabCodeQuality, FollowsItsSchemaAndHasStableFingerprints) {
  for (const RunResult& run : {mixed_run(), hostile_run()}) {
    const json value = json::parse(all_of(gitlab_code_quality, run));
    EXPECT_EQ(record::violations("code-quality", value), std::vector<std::string>{});
    EXPECT_EQ(value.size(), 3u);
  }
  RunResult later = mixed_run();
  later.run.run_id = later.run_name = "20261122-101500-ffff";
  later.cases[2].record.failing[0].message.what = "step 4 differs";
  const json before = json::parse(all_of(gitlab_code_quality, mixed_run())),
             now = json::parse(all_of(gitlab_code_quality, later));
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i].at("fingerprint"), now[i].at("fingerprint"))
        << "the same failure in another run";
  EXPECT_EQ(json::parse(all_of(gitlab_code_quality, run_of({}))), json::array());
}

TEST(Ctrf, FollowsItsSchemaAndItsCountsAddUp) {
  for (const RunResult& run : {mixed_run(), hostile_run(), run_of({})}) {
    const json value = json::parse(all_of(ctrf, run));
    EXPECT_EQ(record::violations("ctrf", value), std::vector<std::string>{});
    const json& total = value.at("results").at("summary");
    int sum = 0;
    for (const char* status : {"passed", "failed", "pending", "skipped", "other"})
      sum += total.at(status).get<int>();
    EXPECT_EQ(sum, total.at("tests"));
  }
  const json total = json::parse(all_of(ctrf, mixed_run())).at("results").at("summary");
  EXPECT_EQ(total.at("failed"), 2);
  EXPECT_EQ(total.at("passed"), 2) << "a pass, and a fault that was killed";
  EXPECT_EQ(total.at("other"), 1) << "unexercised is no pass";
  EXPECT_EQ(total.at("start"), 1795256100000);
}

TEST(Prometheus, FollowsTheTextFormat) {
  for (const RunResult& run : {mixed_run(), hostile_run()})
    EXPECT_EQ(prometheus_mistakes(prometheus(run)), std::vector<std::string>{});
  const std::string text = prometheus(mixed_run());
  EXPECT_NE(text.find("graphproof_cases{profile=\"smoke\",device=\"sim\",verdict=\"pass\"} 1\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("graphproof_exit_code{profile=\"smoke\",device=\"sim\"} 1\n"),
            std::string::npos);
  for (const char* broken : {"graphproof_x{a=\"b\"c\"} 1\n", "graphproof_x 1 1700000000\n",
                             "# TYPE graphproof_x gauge\ngraphproof_x{} 1", "graphproof_x{} 1\n"})
    EXPECT_FALSE(prometheus_mistakes(broken).empty()) << broken;
}

TEST(ChromeTrace, ShowsEachRankOfEachCaseWithItsPhases) {
  const record::ScratchFolder scratch;
  RunResult run = hostile_run();
  for (const int rank : {0, 1}) {
    const fs::path attempt = scratch.path() / run.cases[0].record.artefacts;
    fs::create_directories(attempt);
    std::ofstream out(attempt / ("rank-" + std::to_string(rank) + ".evidence.jsonl"));
    out << R"({"kind":"start","t_ms":1000})" << "\n"
        << R"({"kind":"phase","phase":"validate","arm":"","ms":1.5})" << "\n"
        << R"({"kind":"step","arm":"eager_a","ms":3})" << "\n"
        << R"({"kind":"phase","phase":"eager","arm":"eager_a","ms":500})" << "\n";
    // Rank 1 died: it has no last line.
    if (rank == 0) out << R"({"kind":"end","t_ms":1010})" << "\n";
  }
  const json value = json::parse(all_of(chrome_trace, run, scratch.path()));
  EXPECT_EQ(record::violations("trace", value), std::vector<std::string>{});
  std::map<std::pair<std::string, int>, std::pair<double, double>> slices;
  for (const json& event : value.at("traceEvents"))
    if (event.at("ph") == "X")
      slices[{event.at("cat") == "case" ? "case" : event.at("name"), event.at("tid")}] = {
          event.at("ts"), event.at("dur")};
  EXPECT_EQ(slices.size(), 6u);
  EXPECT_EQ((slices[{"case", 0}]), std::pair(0.0, 10'000.0));
  EXPECT_EQ((slices[{"validate", 0}]), std::pair(0.0, 1'500.0));
  EXPECT_EQ((slices[{"eager eager_a", 0}]), std::pair(1'500.0, 8'500.0))
      << "a phase ends with its case";
  EXPECT_EQ((slices[{"case", 1}]), std::pair(0.0, 501'500.0));
}

TEST(Junit, IsValidByTheSchemaOfJunit) {
  const record::ScratchFolder scratch;
  const fs::path file = scratch.path() / "junit.xml";
  for (const RunResult& run : {mixed_run(), hostile_run(),
                               run_of({skipped('1'), ended('2', "b", "infra.node"_verdict, 20)})}) {
    Junit(run).write(file);
    EXPECT_TRUE(is_junit(file));
  }
  // What no schema allows is refused, so the validator is at work.
  std::ofstream(file) << "<testsuites skipped=\"1\"/>";
  EXPECT_FALSE(is_junit(file));
}

}  // namespace
}  // namespace graphproof::reports
