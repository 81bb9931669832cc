#include "reports/print/html.h"

#include <gtest/gtest.h>

#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

CaseDetail nothing(const record::Record&) { return {}; }

nlohmann::json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Html, HoldsEveryCaseAndLoadsNothing) {
  const std::string page = html(mixed_run(), nothing);
  const nlohmann::json data = data_of(page);
  EXPECT_EQ(data["cases"].size(), 5u);
  EXPECT_EQ(data["cases"][4]["repro"], "./graphproof repro 20261121-101500-3f2a/5555555555555555");
  EXPECT_EQ(data["cases"][2]["failing"][0]["check"], "D01.lockstep");
  EXPECT_EQ(data["faults"][0]["status"], "killed");
  // The content security policy forbids the browser to load anything. Addresses in the strings of
  // the libraries are not tested.
  const std::string markup = page.substr(0, page.find("id=\"data\""));
  EXPECT_NE(markup.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(markup.find("src=\""), std::string::npos);
  EXPECT_EQ(markup.find("<link"), std::string::npos);
  EXPECT_EQ(page.find("/*page.js*/"), std::string::npos) << "every place is filled";
}

TEST(Html, TextOfARankCannotEndTheDataNorTakeAPlace) {
  RunResult run = mixed_run();
  const std::string hostile = "</script><script>alert(1)</script><!-- /*chart.js*/ \xff";
  run.cases[2].record.failing[0].message.what = hostile;
  const std::string page = html(run, nothing);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  const std::string got = data_of(page)["cases"][2]["failing"][0]["what"];
  EXPECT_TRUE(got.starts_with("</script><script>alert(1)</script><!-- /*chart.js*/ ")) << got;
}

TEST(Html, ACaseHasTheCurvesAndTheDivergentTensorThatAreFound) {
  const std::string page = html(mixed_run(), [](const record::Record& record) {
    CaseDetail detail;
    if (record.case_id != std::string(16, '3')) return detail;
    detail.series.loss["eager_a"] = {{0, 1}, {2.5, 2.25}};
    detail.divergence = "rank 1, step 3, </script>";
    return detail;
  });
  const nlohmann::json data = data_of(page);
  EXPECT_EQ(data["cases"][2]["series"]["loss"]["eager_a"]["values"], nlohmann::json({2.5, 2.25}));
  EXPECT_FALSE(data["cases"][0].contains("series"));
  EXPECT_EQ(data["cases"][2]["symptoms"][0]["symptom"], "numbers that differ from eager");
  EXPECT_TRUE(data["cases"][0]["symptoms"].empty());
  EXPECT_EQ(data["cases"][2]["divergence"], "rank 1, step 3, </script>");
  EXPECT_EQ(data["cases"][0]["divergence"], "");
}

}  // namespace
}  // namespace graphproof::reports
