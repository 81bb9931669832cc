// The page of a run: how long it takes to write, how large it is, and after how long a browser has
// it ready. The cases are those of a recorded run, repeated; one of a hundred is made a failure.
// Usage: graphproof-bench-page FOLDER OF suites/recorded. Needs graphproof-judge, tar and
// chromium in PATH.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include "bench/cost.h"
#include "launcher/run/run_reports.h"
#include "reports/record/text/file.h"

namespace {

using namespace graphproof;
namespace fs = std::filesystem;

constexpr int kOpened = 5;  // times that each page is opened; the median counts

void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("this failed: " + command);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// `count` cases made of the recorded ones. Ids, names and one axis differ, as in a real run.
reports::RunResult repeated(const reports::RunResult& recorded, std::size_t count) {
  reports::RunResult run = recorded;
  run.cases.clear();
  for (std::size_t i = 0; i < count; ++i) {
    reports::CaseResult one = recorded.cases[i % recorded.cases.size()];
    const std::size_t round = i / recorded.cases.size();
    one.plan.id = one.record.case_id = fmt::format("{:016x}", 0x9e3779b97f4a7c15u * (i + 1));
    one.plan.axes["seq_length"] = 16 + round;
    if (round > 0) one.plan.name += fmt::format(",seq_length={}", 16 + round);
    one.record.name = one.plan.name;
    one.record.seconds *= 1 + 0.001 * static_cast<double>(i % 700);
    if (i % 100 == 50) {
      one.record.verdict = one.record.observed = *record::Verdict::from("fail.numerics");
      one.record.rule = 60;
      one.record.reason = fmt::format("step {} differs", i % 7);
      one.record.failing = {{.check = "D01.lockstep",
                             .rank = 0,
                             .message = {.what = fmt::format("step {} differs", i % 7),
                                         .got = "0.25",
                                         .want = "0.125, byte for byte, as lockstep_eager",
                                         .why = "the two arms start from one seed",
                                         .next = ""}}};
    }
    run.cases.push_back(std::move(one));
  }
  return run;
}

/// The time from opening until the page answers (ms), which it leaves in its document and, for this
/// program, on its console. Nothing if the browser does not say so.
double ready_ms(const fs::path& page, const fs::path& folder) {
  const fs::path log = folder / "log";
  // The browser runs until it is ended; the page says on its console when it is ready.
  const std::string command =
      "timeout 12 chromium --headless --no-sandbox --disable-gpu "
      "--no-first-run --enable-logging=stderr --v=0 --user-data-dir=" +
      (folder / "profile").string() + " 'file://" + page.string() + "#timed=1' >/dev/null 2>" +
      log.string() + " & chromium=$!; for i in $(seq 120); do grep -qs 'ready after' " +
      log.string() +
      " && break; sleep 0.1; done; kill $chromium; "
      "wait $chromium 2>/dev/null; true";
  shell(command);
  const std::string text = record::read_text(log);
  const std::size_t at = text.find("ready after ");
  if (at == std::string::npos) throw std::runtime_error("chromium does not get ready: " + text);
  return std::atof(text.c_str() + at + sizeof "ready after " - 1);
}

void measure(const reports::RunResult& recorded, std::size_t count, const fs::path& folder) {
  const reports::RunResult run = repeated(recorded, count);
  const auto start = std::chrono::steady_clock::now();
  launcher::write_reports(run, folder);
  const double all_s = seconds_since(start);
  const auto page_start = std::chrono::steady_clock::now();
  launcher::write_page(run, folder);
  const double page_s = seconds_since(page_start);
  std::vector<double> ready;
  for (int i = 0; i < kOpened; ++i) ready.push_back(ready_ms(folder / "report.html", folder));
  std::sort(ready.begin(), ready.end());
  std::cout << fmt::format("| {} | {:.2f} | {:.1f} | {:.1f} | {:.0f} | {:.2f} |\n", count,
                           static_cast<double>(fs::file_size(folder / "report.html")) / 1e6, page_s,
                           all_s, bench::peak_mb(), ready[kOpened / 2] / 1000)
            << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("usage: graphproof-bench-page suites/recorded/RUN");
    const fs::path recorded = argv[1];
    const fs::path folder =
        fs::temp_directory_path() / fmt::format("graphproof-bench-{}", ::getpid());
    fs::create_directories(folder);
    fs::copy(recorded / "run.json", folder / "run.json");
    shell("tar xJf " + (recorded / "evidence.tar.xz").string() + " -C " + folder.string());
    shell("for attempt in " + folder.string() +
          "/cases/*/attempt-*; do [ ! -e $attempt/context.json ] || "
          "graphproof-judge $attempt >/dev/null || exit 1; done");
    const reports::RunResult run = launcher::read_run(folder);
    std::cout
        << "| cases | page, MB | to write the page, s | to write all reports, s | peak memory "
           "so far, MB | ready after, s |\n| ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for (const std::size_t count : {run.cases.size(), std::size_t{1000}, std::size_t{10000}})
      measure(run, count, folder);
    std::cout << fmt::format("\nThe median of {} openings in headless Chromium.\n", kOpened);
    fs::remove_all(folder);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
