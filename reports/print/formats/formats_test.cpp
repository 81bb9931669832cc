#include "reports/print/formats/formats.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "reports/print/junit.h"
#include "reports/record/schema/violations.h"
#include "reports/record/testing/scratch_folder.h"
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

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
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
  for (const std::string& line : lines_of(github_annotations(hostile_run()))) {
    EXPECT_TRUE(std::regex_match(line, std::regex("::(error|notice) title=[^:,]*::.*"))) << line;
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
    EXPECT_EQ(line.find("a%0A"), std::string::npos) << "a per cent sign is escaped: " << line;
  }
}

TEST(GithubAnnotations, AreNoMoreThanGithubShows) {
  std::vector<CaseResult> cases(30, ended('1', "a", "fail.numerics"_verdict, 60));
  const auto lines = lines_of(github_annotations(run_of(cases)));
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_TRUE(lines[10].ends_with("; 20 more in summary.md")) << lines[10];
}

TEST(GitlabCodeQuality, FollowsItsSchemaAndHasStableFingerprints) {
  for (const RunResult& run : {mixed_run(), hostile_run()}) {
    const json value = json::parse(gitlab_code_quality(run));
    EXPECT_EQ(record::violations("code-quality", value), std::vector<std::string>{});
    EXPECT_EQ(value.size(), 3u);
  }
  RunResult later = mixed_run();
  later.run.run_id = later.run_name = "20261122-101500-ffff";
  later.cases[2].record.failing[0].message.what = "step 4 differs";
  const json before = json::parse(gitlab_code_quality(mixed_run())),
             now = json::parse(gitlab_code_quality(later));
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i].at("fingerprint"), now[i].at("fingerprint"))
        << "the same failure in another run";
  EXPECT_EQ(json::parse(gitlab_code_quality(run_of({}))), json::array());
}

TEST(Ctrf, FollowsItsSchemaAndItsCountsAddUp) {
  for (const RunResult& run : {mixed_run(), hostile_run(), run_of({})}) {
    const json value = json::parse(ctrf(run));
    EXPECT_EQ(record::violations("ctrf", value), std::vector<std::string>{});
    const json& total = value.at("results").at("summary");
    int sum = 0;
    for (const char* status : {"passed", "failed", "pending", "skipped", "other"})
      sum += total.at(status).get<int>();
    EXPECT_EQ(sum, total.at("tests"));
  }
  const json total = json::parse(ctrf(mixed_run())).at("results").at("summary");
  EXPECT_EQ(total.at("failed"), 2);
  EXPECT_EQ(total.at("passed"), 2) << "a pass, and a fault that was killed";
  EXPECT_EQ(total.at("other"), 1) << "unexercised is no pass";
  EXPECT_EQ(total.at("start"), 1795256100000);
}

/// The exposition format line by line (prometheus.io/docs/instrumenting/exposition_formats), and
/// what the textfile collector asks in addition: no time stamps.
std::vector<std::string> prometheus_mistakes(const std::string& text) {
  static const std::regex comment(R"(# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+)");
  static const std::string label = R"re([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*")re";
  static const std::regex sample(R"(([a-zA-Z_:][a-zA-Z0-9_:]*)\{()" + label +
                                 R"(,?)*\} -?[0-9.e+-]+)");
  std::vector<std::string> mistakes;
  if (!text.ends_with('\n')) mistakes.push_back("no newline at the end");
  std::string typed;
  std::vector<std::string> seen;
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    if (line.starts_with("# TYPE ")) typed = line.substr(7, line.find(' ', 7) - 7);
    if (line.starts_with("#")) {
      if (!std::regex_match(line, comment)) mistakes.push_back(line);
    } else if (!std::regex_match(line, match, sample) || match[1] != typed) {
      mistakes.push_back(line);
    } else if (std::string series = line.substr(0, line.rfind(' '));
               std::find(seen.begin(), seen.end(), series) != seen.end()) {
      mistakes.push_back("twice: " + line);
    } else {
      seen.push_back(std::move(series));
    }
  }
  return mistakes;
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
  const json value = json::parse(chrome_trace(run, scratch.path()));
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
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  const std::string schema =
      std::string(source ? source : ".") + "/reports/print/formats/junit-10.xsd";
  const auto valid = [&](const RunResult& run) {
    Junit(run).write(scratch.path() / "junit.xml");
    const std::string command = "xmllint --noout --schema " + schema + " " +
                                (scratch.path() / "junit.xml").string() + " > /dev/null 2> " +
                                (scratch.path() / "errors").string();
    return std::system(command.c_str()) == 0;
  };
  EXPECT_TRUE(valid(mixed_run()));
  EXPECT_TRUE(valid(hostile_run()));
  EXPECT_TRUE(valid(run_of({skipped('1'), ended('2', "b", "infra.node"_verdict, 20)})));
  // What no schema allows is refused, so the validator is at work.
  std::ofstream(scratch.path() / "junit.xml") << "<testsuites skipped=\"1\"/>";
  EXPECT_NE(std::system(("xmllint --noout --schema " + schema + " " +
                         (scratch.path() / "junit.xml").string() + " 2> /dev/null")
                            .c_str()),
            0);
}

}  // namespace
}  // namespace graphproof::reports
