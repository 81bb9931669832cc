// The page in a real browser: headless Chromium runs it, and the tests look at the resulting
// document.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "reports/print/html.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

RunResult run() {
  RunResult result = mixed_run();
  const char* const kImpl[] = {"manual", "manual", "local", "local", "none"};
  const int kTp[] = {1, 2, 1, 2, 1};
  for (std::size_t i = 0; i < result.cases.size(); ++i)
    result.cases[i].plan.axes = {
        {"impl", kImpl[i]}, {"tp", kTp[i]}, {"fault", i == 3 ? "M23" : "none"}};
  result.cases[0].record.figures = {{"eager_ms", 10}, {"replay_ms", 2}, {"capture_ms", 40}};
  result.cases[2].record.failing[0].message.what =
      "<img src=x onerror=\"document.title='taken'\"> </script>";
  return result;
}

CaseDetail detail_of(const record::Record&) {
  Series series;
  series.loss["eager_a"] = {{0, 1, 2}, {4.8, 4.7, 4.6}};
  series.difference["lockstep"] = {{0, 1, 2}, {0, 0, 0.5}};
  series.memory["lockstep allocated"] = {{0, 1, 2}, {1e6, 1e6, 1e6}};
  return {series, {}};
}

/// The document after `script` ran at the end of the page, which was opened at `#hash`.
std::string document(const std::string& hash, const std::string& script) {
  const record::ScratchFolder folder;
  std::ofstream(folder.path() / "page.html")
      << html(run(), detail_of) << "<script>" << script << "</script>";
  const std::string command =
      "timeout -k 5 60 chromium --headless --no-sandbox --disable-gpu --no-first-run "
      "--user-data-dir=" +
      (folder.path() / "profile").string() + " --virtual-time-budget=5000 --dump-dom 'file://" +
      (folder.path() / "page.html").string() + hash + "' >" + (folder.path() / "dom").string() +
      " 2>" + (folder.path() / "log").string();
  if (std::system(command.c_str()) != 0)
    ADD_FAILURE() << "chromium did not open the page; ./graphproof installs it\n"
                  << record::read_text(folder.path() / "log");
  return record::read_text(folder.path() / "dom");
}

TEST(Page, ShowsItsTablesMapAndFilters) {
  const std::string dom = document("", R"(
    const cases = () => document.querySelectorAll('#cases tbody tr').length;
    const seen = {all: cases(), map: document.querySelectorAll('#map tbody tr').length,
                  faults: document.querySelectorAll('#faults tbody tr').length,
                  benefit: document.querySelectorAll('#benefit tbody tr').length,
                  hidden: document.getElementById('case').hidden};
    const choose = (id, value) => {
      const select = document.getElementById(id);
      select.value = value;
      select.dispatchEvent(new Event('change'));
    };
    choose('filter-impl', 'local'); seen.local = cases();
    choose('filter-verdict', 'pass.killed'); seen.both = cases();
    document.body.dataset.seen = JSON.stringify(seen).replaceAll('"', '');)");
  EXPECT_NE(dom.find("data-seen=\"{all:5,map:3,faults:1,benefit:1,hidden:true,local:2,both:1}\""),
            std::string::npos)
      << dom.substr(dom.find("<body"), 300);
}

TEST(Page, ShowsACaseWithItsFailureChartsAndCommand) {
  const std::string dom = document("#" + std::string(16, '3'), R"(
    addEventListener('load', () => setTimeout(() => {
      const count = selector => document.querySelectorAll(selector).length;
      const painted = [...document.querySelectorAll('canvas')].filter(
        canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
          .data.some(byte => byte !== 0)).length;
      document.body.dataset.seen = [document.title, painted, document.getElementById('run').hidden,
        document.getElementById('case-repro').textContent, count('img'),
        count('#case-symptoms li')].join('|');
    }, 500));)");
  EXPECT_NE(dom.find("data-seen=\"graphproof smoke on sim|3|true|./graphproof repro "
                     "20261121-101500-3f2a/3333333333333333|0|5\""),
            std::string::npos)
      << dom.substr(dom.find("<body"), 300);
}

}  // namespace
}  // namespace graphproof::reports
