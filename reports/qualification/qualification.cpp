#include "reports/qualification/qualification.h"

#include <algorithm>

namespace graphproof::reports {
namespace {

using record::ExitCode;

bool may_be_missing(const Stage& stage) { return stage.name == kSubjectsStage; }

std::string of_image(const std::string& image) { return image.empty() ? "" : " in image " + image; }

bool failed(std::string_view verdict) {
  return verdict.starts_with("fail.") || verdict == "flaky" || verdict == "xpass";
}

/// The stage `faults` was shown on every stack.
bool notices_defects(const Qualification& qualification) {
  return std::ranges::all_of(qualification.stacks, [&](const QualifiedStack& stack) {
    return std::ranges::any_of(qualification.stages, [&](const Stage& stage) {
      return stage.name == kFaultsStage && stage.image == stack.image && stage.shown();
    });
  });
}

/// What a stack has one version of, by its name in run.json, and the GPUs.
nlohmann::ordered_json versions_of(const record::Stack& stack) {
  nlohmann::ordered_json versions = nlohmann::ordered_json::object();
  const nlohmann::ordered_json all = record::to_json(stack);
  for (const auto& [part, value] : all.items())
    if (value.is_string() && part != "host" && !value.get<std::string>().empty())
      versions[part] = value;
  std::string gpus;
  for (const std::string& gpu : stack.gpus) gpus += (gpus.empty() ? "" : ", ") + gpu;
  if (!gpus.empty()) versions["gpus"] = gpus;
  return versions;
}

nlohmann::ordered_json as_json(const Stage& stage) {
  nlohmann::ordered_json value = {{"name", stage.name},
                                  {"meaning", stage.meaning},
                                  {"image", stage.image},
                                  {"folder", stage.folder},
                                  {"shown", stage.shown()},
                                  {"fault", stage.fault},
                                  {"exit_code", record::value(stage.exit_code)},
                                  {"run_id", ""},
                                  {"seconds", 0.0},
                                  {"counts", nlohmann::ordered_json::object()},
                                  {"failed", nlohmann::ordered_json::array()},
                                  {"skipped", nlohmann::ordered_json::array()}};
  for (const auto& [why, cases] : stage.skipped)
    value["skipped"].push_back({{"why", why}, {"cases", cases}});
  if (!stage.summary) return value;
  value["run_id"] = stage.summary->run_id;
  value["seconds"] = stage.summary->wall_seconds;
  for (const auto& [verdict, cases] : stage.summary->counts) value["counts"][verdict] = cases;
  for (const record::SummaryCase& one : stage.summary->cases)
    if (failed(one.verdict.text()))
      value["failed"].push_back(
          {{"id", one.id}, {"name", one.name}, {"verdict", one.verdict.text()}});
  return value;
}

}  // namespace

bool Stage::shown() const {
  return summary && summary->coverage.ran + summary->coverage.rejected > 0;
}

std::vector<NotShown> not_shown(const Qualification& qualification) {
  std::vector<NotShown> list;
  if (qualification.device == "sim")
    list.push_back({"CUDA, NCCL and GPUs",
                    "the cases ran on the simulated device; use --device cuda on a machine with "
                    "GPUs"});
  if (qualification.one_node)
    list.push_back({"communication between nodes",
                    "the cases ran on one node; write --engine after `--` to use several"});
  for (const Stage& stage : qualification.stages) {
    const std::string what = "stage " + stage.name + of_image(stage.image);
    if (!stage.summary) {
      list.push_back({what, stage.fault});
      continue;
    }
    const record::Coverage& coverage = stage.summary->coverage;
    for (const auto& [why, cases] : stage.skipped)
      list.push_back(
          {std::to_string(cases) + " of " + std::to_string(coverage.planned) + " cases of " + what,
           why});
    if (coverage.not_run > 0)
      list.push_back({std::to_string(coverage.not_run) + " of " + std::to_string(coverage.planned) +
                          " cases of " + what,
                      "they did not run: the run ended as `" + stage.summary->ending + "`"});
    if (coverage.unexercised > 0)
      list.push_back({std::to_string(coverage.unexercised) + " of " +
                          std::to_string(coverage.required_checks) + " required checks of " + what,
                      "they found nothing to look at"});
    if (coverage.planned == 0) list.push_back({what, "no case was planned"});
  }
  for (const StageComparison& one : qualification.comparisons)
    if (!one.fault.empty()) list.push_back({"A against B in stage " + one.stage, one.fault});
  list.insert(list.end(), qualification.not_asked.begin(), qualification.not_asked.end());
  return list;
}

ExitCode exit_code(const Qualification& qualification) {
  std::vector<ExitCode> codes;
  if (qualification.interrupted) codes.push_back(ExitCode::interrupted);
  if (!notices_defects(qualification)) codes.push_back(ExitCode::coverage);
  for (const QualifiedStack& stack : qualification.stacks)
    if (!stack.sound) codes.push_back(ExitCode::infrastructure);
  for (const Stage& stage : qualification.stages) {
    // Nothing to run is no failure of a stage whose packages are not installed. Any other code is.
    const bool absent = may_be_missing(stage) && stage.summary && !stage.shown() &&
                        stage.exit_code == ExitCode::coverage;
    if (!absent) codes.push_back(stage.exit_code);
  }
  for (const StageComparison& one : qualification.comparisons)
    codes.push_back(one.fault.empty()
                        ? static_cast<ExitCode>(one.comparison.at("exit_code").get<int>())
                        : ExitCode::coverage);
  return record::strongest(codes);
}

std::string verdict(const Qualification& qualification) {
  const ExitCode code = exit_code(qualification);
  std::string failed;
  for (const Stage& stage : qualification.stages)
    if (stage.exit_code == ExitCode::product)
      failed += (failed.empty() ? "" : ", ") + stage.name + of_image(stage.image);
  for (const StageComparison& one : qualification.comparisons)
    if (one.fault.empty() && one.comparison.at("exit_code") == record::value(ExitCode::product))
      failed += (failed.empty() ? "" : ", ") + one.stage + " (B against A)";
  std::string text;
  if (code == ExitCode::ok)
    text = qualification.device == "sim"
               ? "Qualified on the simulated device only, which says nothing about CUDA, NCCL or a "
                 "GPU."
               : "Qualified for what was shown below.";
  else if (!failed.empty())
    text = "Not qualified: failures in " + failed + ".";
  else
    text = "Not decided: " + std::string(record::meaning(code)) + ".";
  if (code != ExitCode::ok && !notices_defects(qualification))
    text += " It was not shown that defects are noticed here, because the stage faults is missing.";
  return text;
}

nlohmann::ordered_json to_json(const Qualification& qualification) {
  using Json = nlohmann::ordered_json;
  Json value = {{"schema", kQualificationSchema},
                {"id", qualification.id},
                {"started", qualification.started},
                {"seconds", qualification.seconds},
                {"command", qualification.command},
                {"device", qualification.device},
                {"verdict", verdict(qualification)},
                {"exit_code", record::value(exit_code(qualification))},
                {"stages", Json::array()},
                {"not_shown", Json::array()},
                {"stacks", Json::array()},
                {"comparisons", Json::array()},
                {"signed_files", qualification.signed_files},
                {"signature", qualification.signature}};
  for (const Stage& stage : qualification.stages) value["stages"].push_back(as_json(stage));
  for (const NotShown& one : not_shown(qualification))
    value["not_shown"].push_back({{"what", one.what}, {"why", one.why}});
  for (const QualifiedStack& stack : qualification.stacks) {
    Json one = {{"image", stack.image},       {"source", stack.source},
                {"host", stack.host},         {"sound", stack.sound},
                {"troubles", stack.troubles}, {"versions", Json::object()},
                {"libraries", Json::array()}, {"libraries_incomplete", stack.libraries_incomplete}};
    for (const Stage& stage : qualification.stages)
      if (stage.image == stack.image && stage.summary && one["versions"].empty())
        one["versions"] = versions_of(stage.summary->stack);
    for (const Library& library : stack.libraries)
      one["libraries"].push_back({{"path", library.path}, {"sha256", library.sha256}});
    value["stacks"].push_back(std::move(one));
  }
  for (const StageComparison& one : qualification.comparisons)
    value["comparisons"].push_back(
        {{"stage", one.stage},
         {"fault", one.fault},
         {"comparison", one.fault.empty() ? Json(one.comparison) : Json(nullptr)}});
  return value;
}

}  // namespace graphproof::reports
