// What a qualification says, and what must keep it from saying that a stack is good.
#include "reports/qualification/qualification.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <regex>

#include "reports/record/schema/violations.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::reports {
namespace {

using record::ExitCode;

record::Verdict verdict_of(const char* text) { return *record::Verdict::from(text); }

Stage stage(const std::string& name, const std::string& image = "") {
  record::Summary summary;
  summary.run_id = "20261125-010000-" + name;
  summary.finished = true;
  summary.wall_seconds = 12;
  summary.stack.torch_version = "2.11.0";
  summary.counts = {{"pass", 3}};
  summary.coverage = {.planned = 3, .ran = 3, .required_checks = 9};
  summary.cases = {{.id = "00112233", .name = "tp=2", .verdict = verdict_of("pass")}};
  Stage one{.name = name, .meaning = "what it asks", .image = image};
  one.folder = "stages/" + name;
  one.summary = summary;
  one.exit_code = ExitCode::ok;
  return one;
}

Qualification good() {
  Qualification one{.id = "20261125-010000-77aa", .started = "2026-11-25T01:00:00Z"};
  one.seconds = 60;
  one.command = {"graphproof", "qualify"};
  one.device = "cuda";
  one.stacks = {{.host = "node1", .libraries = {{"/lib/libc.so.6", std::string(64, 'a')}}}};
  one.stages = {stage("faults"), stage("layouts")};
  one.signed_files = 7;
  one.signature = std::string(64, 'f');
  return one;
}

TEST(QualificationTest, AStackIsQualifiedOnlyByWhatWasShown) {
  struct Row {
    const char* name;
    std::function<void(Qualification&)> change;
    ExitCode code;
    const char* says;
  };
  const Row rows[] = {
      {"all well", [](Qualification&) {}, ExitCode::ok, "Qualified for what was shown below."},
      {"simulated", [](Qualification& one) { one.device = "sim"; }, ExitCode::ok,
       "Qualified on the simulated device only, which says nothing about CUDA, NCCL or a GPU."},
      {"no faults", [](Qualification& one) { one.stages.erase(one.stages.begin()); },
       ExitCode::coverage, "It was not shown that defects are noticed here"},
      {"faults all skipped",
       [](Qualification& one) { one.stages[0].summary->coverage = {.planned = 3, .skipped = 3}; },
       ExitCode::coverage, "It was not shown that defects are noticed here"},
      {"no stage at all", [](Qualification& one) { one.stages.clear(); }, ExitCode::coverage,
       "Not decided"},
      {"a failure", [](Qualification& one) { one.stages[1].exit_code = ExitCode::product; },
       ExitCode::product, "Not qualified: failures in layouts."},
      {"a failure and an interruption",
       [](Qualification& one) {
         one.stages[1].exit_code = ExitCode::product;
         one.interrupted = true;
       },
       ExitCode::interrupted, "Not qualified: failures in layouts."},
      {"no result",
       [](Qualification& one) {
         one.stages[1].summary.reset();
         one.stages[1].fault = "it crashed";
         one.stages[1].exit_code = ExitCode::own_fault;
       },
       ExitCode::own_fault, "Not decided: fault of graphproof itself."},
      {"subjects that are not installed",
       [](Qualification& one) {
         one.stages.push_back(stage("subjects"));
         one.stages[2].summary->coverage = {.planned = 3, .skipped = 3};
         one.stages[2].exit_code = ExitCode::coverage;
       },
       ExitCode::ok, "Qualified for what was shown below."},
      {"subjects that ran without evidence",
       [](Qualification& one) {
         one.stages.push_back(stage("subjects"));
         one.stages[2].exit_code = ExitCode::coverage;
       },
       ExitCode::coverage, "Not decided"},
      {"another stage of which all was skipped",
       [](Qualification& one) {
         one.stages[1].summary->coverage = {.planned = 3, .skipped = 3};
         one.stages[1].exit_code = ExitCode::coverage;
       },
       ExitCode::coverage, "Not decided"},
      {"an ill machine", [](Qualification& one) { one.stacks[0].sound = false; },
       ExitCode::infrastructure, "Not decided"},
      {"B is worse than A",
       [](Qualification& one) {
         one.comparisons = {
             {.stage = "layouts", .comparison = {{"exit_code", 1}, {"compared", 3}}}};
         for (const char* key : {"broke", "healed", "lost", "changed"})
           one.comparisons[0].comparison[key] = {{"cases", nlohmann::json::array()}};
       },
       ExitCode::product, "Not qualified: failures in layouts (B against A)."},
      {"nothing to compare",
       [](Qualification& one) {
         one.comparisons = {{.stage = "layouts", .fault = "other plans", .comparison = {}}};
       },
       ExitCode::coverage, "Not decided"},
      {"faults in one of two images",
       [](Qualification& one) {
         one.stacks[0].image = "A";
         one.stacks.push_back({.image = "B", .host = "node1"});
         for (Stage& stage : one.stages) stage.image = "A";
       },
       ExitCode::coverage, "It was not shown that defects are noticed here"},
  };
  for (const Row& row : rows) {
    Qualification one = good();
    row.change(one);
    EXPECT_EQ(exit_code(one), row.code) << row.name;
    EXPECT_NE(verdict(one).find(row.says), std::string::npos) << row.name << ": " << verdict(one);
    EXPECT_EQ(exit_code(one) == ExitCode::ok, verdict(one).starts_with("Qualified")) << row.name;
    for (const std::string& sentence :
         record::violations("qualification", nlohmann::json::parse(to_json(one).dump())))
      if (!one.stages.empty()) ADD_FAILURE() << row.name << ": " << sentence;
    for (const std::string& text :
         {qualification_text(one), qualification_markdown(one), qualification_page(one)})
      EXPECT_NE(text.find("Not shown"), std::string::npos) << row.name;
  }
}

TEST(QualificationTest, WhatWasNotShownHasItsReason) {
  Qualification one = good();
  one.device = "sim";
  one.stages[0].summary->coverage = {
      .planned = 9, .ran = 3, .skipped = 4, .not_run = 2, .required_checks = 9, .unexercised = 1};
  one.stages[0].summary->ending = "budget";
  one.stages[0].skipped = {{"this GPU has no FP8", 4}};
  one.stages[1].summary.reset();
  one.stages[1].fault = "its run ended with exit code 6 and no result";
  one.not_asked = {{"stage hazards", "--stages did not name it"}};
  const std::string text = qualification_text(one);
  for (const char* says :
       {"CUDA, NCCL and GPUs", "communication between nodes", "4 of 9 cases of stage faults",
        "this GPU has no FP8", "2 of 9 cases of stage faults", "the run ended as `budget`",
        "1 of 9 required checks of stage faults", "its run ended with exit code 6 and no result",
        "--stages did not name it"})
    EXPECT_NE(text.find(says), std::string::npos) << says << "\n" << text;
  one.one_node = false;
  EXPECT_EQ(qualification_text(one).find("communication between nodes"), std::string::npos);
}

TEST(QualificationTest, FailuresAreNamedWithTheLineThatExplainsThem) {
  Qualification one = good();
  one.stages[1].exit_code = ExitCode::product;
  one.stages[1].summary->cases[0].verdict = verdict_of("fail.numerics");
  for (const std::string& text :
       {qualification_text(one), qualification_markdown(one), qualification_page(one)})
    EXPECT_NE(text.find("20261125-010000-layouts/00112233"), std::string::npos) << text;
}

// Chromium prints it, as a person would; a page of the PDF is an object of type Page.
TEST(QualificationTest, TheSheetOfOneStackPrintsToOnePage) {
  Qualification one = good();
  one.stages = {stage("faults"), stage("constraints"), stage("hazards"), stage("layouts"),
                stage("subjects")};
  one.stages[3].exit_code = ExitCode::product;
  for (int i = 0; i < 30; ++i) {
    one.stages[3].summary->cases.push_back(
        {.id = "0011223344556677",
         .name = "impl=full_iteration,modules=[attn,mlp],tp=2,dp=2,microbatches=2",
         .verdict = verdict_of("fail.numerics")});
    one.stages[2].skipped.emplace_back("device=sim: CUDA graphs of PyTorch need a GPU", 1 + i);
    one.stacks[0].libraries.push_back({"/usr/lib/lib" + std::to_string(i), std::string(64, 'b')});
  }
  one.stages[2].summary->stack = {.torch_version = "2.11.0",
                                  .cuda_version = "13.0",
                                  .nccl_version = "2.28.9",
                                  .driver = "580.95",
                                  .cudnn_version = "9.14",
                                  .mpi = "Open MPI 4.1.4",
                                  .gpus = {"NVIDIA H200", "NVIDIA H200"},
                                  .kernel = "6.1.0",
                                  .host = "node1"};
  const record::ScratchFolder folder;
  std::ofstream(folder.path() / "page.html") << qualification_page(one);
  const std::string command =
      "timeout -k 5 90 chromium --headless --no-sandbox --disable-gpu --no-first-run "
      "--no-pdf-header-footer --user-data-dir=" +
      (folder.path() / "profile").string() +
      " --print-to-pdf=" + (folder.path() / "page.pdf").string() + " 'file://" +
      (folder.path() / "page.html").string() + "' >" + (folder.path() / "log").string() + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0)
      << "chromium did not print the page; ./graphproof installs it\n"
      << record::read_text(folder.path() / "log");
  const std::string pdf = record::read_text(folder.path() / "page.pdf");
  const std::regex page("/Type ?/Page[^s]");
  EXPECT_EQ(std::distance(std::sregex_iterator(pdf.begin(), pdf.end(), page), {}), 1);
}

TEST(QualificationTest, HostileTextStaysText) {
  Qualification one = good();
  const std::string hostile = "<script>alert(1)</script>|\x1b[2J";
  one.command = {hostile};
  one.stages[1].summary->cases[0] = {
      .id = "1", .name = hostile, .verdict = verdict_of("fail.crash")};
  one.stages[1].summary->stack.driver = hostile;
  one.stages[0].skipped = {{hostile, 1}};
  one.stacks[0].troubles = {hostile};
  one.stacks[0].libraries[0].path = hostile;
  const std::string page = qualification_page(one);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  for (const std::string& text : {page, qualification_text(one), qualification_markdown(one)})
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace graphproof::reports
