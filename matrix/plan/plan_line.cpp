#include "matrix/plan/plan_line.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "matrix/case/tolerance.h"
#include "matrix/expression/measured_limit.h"

namespace graphproof::matrix {
namespace {

// First guesses of how long a case takes. A run replaces them by its own durations as they come in.
constexpr double kRefusalSeconds = 0.1;  // no device work
constexpr double kCaseSeconds = 0.5;     // one rank, arms of five steps, on a device that is up
constexpr double kSecondsPerRank = 0.15;
constexpr double kProcessSeconds = 1.5;    // to start and end processes of its own
constexpr double kSanitizedSeconds = 120;  // one rank under compute-sanitizer, most of it to patch
                                           // each kernel before its first launch

/// `limits` for a rank under compute-sanitizer.
void lengthen(Limits& limits) {
  for (auto& [phase, limit_ms] : limits) limit_ms *= kSlowerUnderATool;
}

record::Skip skipped(record::Verdict verdict, std::string why) {
  return {.verdict = verdict, .why = std::move(why)};
}

}  // namespace

record::PlanLine PlanLineMaker::line(const PlannedCase& planned) const {
  const Case& test_case = planned.test_case;
  const std::int64_t ranks = world_size(catalogue_.axes, test_case);
  const record::Expect& expect = planned.expect;
  Limits limits = catalogue_.limits;
  const Subject& subject = *catalogue_.subjects.find(subject_of(test_case));
  for (const auto& [phase, limit] : subject.limits) limits[phase] = limit;
  for (const auto& [phase, limit] : planned.limits) limits[phase] = limit;
  // Times are those of this case alone: not of what an earlier one left in its processes. And a
  // limit that is exceeded once and then kept says nothing about state that leaked from a batch.
  const bool timed = text_of(catalogue_.axes, test_case, "perf_limit") != kNoLimit;
  // A rank of a Python subject forks the process that resumes before it uses CUDA. After another
  // case of its batch, that process would have been left behind. The C++ rank program executes
  // itself again when the case asks for it.
  const bool forks = text_of(catalogue_.axes, test_case, "resume_in") == "new_process" &&
                     subject.name != kReference;
  // The log of compute-sanitizer is that of a process, so it has to be that of one case.
  const bool sanitized = text_of(catalogue_.axes, test_case, "sanitizer") != "none";
  if (sanitized) lengthen(limits);
  const std::string isolation = timed || forks || sanitized ? "process" : planned.isolation;
  double seconds =
      std::max(kCaseSeconds, subject.seconds) + kSecondsPerRank * static_cast<double>(ranks) +
      (isolation == "process" ? kProcessSeconds : 0) + (sanitized ? kSanitizedSeconds : 0);
  // An expected hang takes as long as the launcher waits before it calls a silent rank hung.
  if (expect.kind == "hazard" && expect.verdict.starts_with("fail.hang"))
    seconds += static_cast<double>(limits.at(record::Phase::replay)) / 1000;
  const bool rejected = expect.kind == "rejected";
  const bool reference = subject.name == kReference;
  return {.id = case_id(test_case),
          .name = case_name(catalogue_.axes, test_case),
          .axes = effective_values(catalogue_.axes, test_case),
          .ranks = static_cast<int>(ranks),
          .isolation = isolation,
          .environment = case_environment(catalogue_.axes, test_case),
          .limits_ms = std::move(limits),
          .expect = expect,
          .required_checks = rejected ? std::vector<std::string>() : required_checks(test_case),
          .skip = skip(planned, ranks),
          .why = planned.why,
          .expected_seconds = rejected && reference ? kRefusalSeconds : seconds};
}

PlannedCase PlanLineMaker::planned(Case test_case, std::string why) const {
  // Also a case that a user typed may have a limit or a tolerance.
  for (const LimitAxis& limited : kLimitAxes)
    if (const std::string text = text_of(catalogue_.axes, test_case, limited.axis);
        text != kNoLimit)
      parse_limit(text, Origin::option(std::string(limited.axis), text), limited.quantities,
                  catalogue_.axes);
  const std::string tolerance = text_of(catalogue_.axes, test_case, "tolerance");
  parse_tolerances(tolerance, Origin::option("tolerance", tolerance));
  PlannedCase result{.test_case = std::move(test_case), .why = std::move(why)};
  record::Expect& expect = result.expect;
  if (const auto refusal = catalogue_.rules.refusal(result.test_case, machine_)) {
    expect = {.kind = "rejected", .rule = refusal->rule};
    if (subject_of(result.test_case) != kReference)
      expect.says = catalogue_.rules.find(refusal->rule)->says;
  } else if (const FaultEntry* fault =
                 catalogue_.faults.find(text_of(catalogue_.axes, result.test_case, "fault"))) {
    expect = {.kind = "fault",
              .fault = fault->fault,
              .detector = fault->detector(machine_.device),
              .clean_twin = case_id(clean_twin(result.test_case)),
              .verdict = fault->in_eager ? "fail.eager" : ""};
    result.isolation = fault->isolation;
    result.limits = fault->limits_ms;
  } else if (const Hazard* hazard = subject_of(result.test_case) == kReference
                                        ? catalogue_.hazards.of(result.test_case, machine_)
                                        : nullptr) {
    expect = {.kind = "hazard", .rule = hazard->id, .verdict = hazard->expect};
    if (catalogue_.hazards.disposable(result.test_case, machine_)) {
      result.isolation = "process";
      result.limits = catalogue_.hazards.limits();
    }
  }
  return result;
}

// A fault requires only the checks of its detector: what else it disturbs is evidence, not a
// requirement.
std::vector<std::string> PlanLineMaker::required_checks(const Case& test_case) const {
  std::vector<std::string> names = catalogue_.checks.required(test_case, machine_.device);
  const FaultEntry* fault = catalogue_.faults.find(text_of(catalogue_.axes, test_case, "fault"));
  if (fault == nullptr) return names;
  std::erase_if(names, [&](const std::string& name) {
    return catalogue_.checks.find(name)->detector != fault->detector(machine_.device);
  });
  return names;
}

std::optional<record::Skip> PlanLineMaker::skip(const PlannedCase& planned,
                                                std::int64_t ranks) const {
  using record::operator""_verdict;
  if (planned.skip) return planned.skip;
  if (ranks > machine_.slots) {
    return skipped("skipped.gpus"_verdict, "needs " + std::to_string(ranks) +
                                               " ranks, this machine has room for " +
                                               std::to_string(machine_.slots));
  }
  // The rank program refuses a case before it uses the device or the engine, so it can do so
  // anywhere. Other subjects have to be there to refuse.
  if (planned.expect.kind == "rejected" && subject_of(planned.test_case) == kReference)
    return std::nullopt;
  const std::string arch = text_of(catalogue_.axes, planned.test_case, "arch");
  if (arch != "any") {
    const Value sm = variable_value(machine_, "sm");
    const auto* number = std::get_if<std::int64_t>(&sm);
    const std::string own = number != nullptr && *number > 0 ? "sm_" + std::to_string(*number)
                                                             : "no known architecture";
    if (arch != own)
      return skipped("skipped.arch"_verdict, "needs " + arch + ", this machine has " + own);
  }
  const auto joined = [](const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& one : all) text += (text.empty() ? "" : "; ") + one;
    return text;
  };
  if (const std::vector<std::string> lacking =
          catalogue_.capabilities.missing_in_architecture(planned.test_case, machine_);
      !lacking.empty())
    return skipped("skipped.arch"_verdict, joined(lacking));
  const FaultEntry* fault =
      catalogue_.faults.find(text_of(catalogue_.axes, planned.test_case, "fault"));
  // Faults of packages need a GPU as every case of their subjects does, which is told below.
  if (fault != nullptr && !fault->shown_on(machine_.device) &&
      subject_of(fault->twin) == kReference)
    return skipped("unexercised"_verdict,
                   "the fault " + fault->fault + " can't be shown on " + machine_.device);
  const std::vector<std::string> missing =
      catalogue_.capabilities.missing(planned.test_case, machine_);
  if (!missing.empty()) return skipped("skipped.capability"_verdict, joined(missing));
  return std::nullopt;
}

record::PlanLine plan_case(const Catalogue& catalogue, const Case& test_case,
                           const Machine& machine, std::string why) {
  const PlanLineMaker maker(catalogue, machine);
  return maker.line(maker.planned(test_case, std::move(why)));
}

std::string subject_of(const record::PlanLine& line) {
  // Plans from before this axis do not name it.
  const auto found = line.axes.find("subject");
  return found == line.axes.end() ? std::string(kReference) : found->get<std::string>();
}

std::string batch_key(const record::PlanLine& line, std::string_view device) {
  nlohmann::json key{{"device", device},
                     {"ranks", line.ranks},
                     {"isolation", line.isolation},
                     {"environment", line.environment},
                     {"limits_ms", record::to_json(line.limits_ms)},
                     {"comm", line.axes.value("comm", "")}};
  // Each subject has a rank program of its own, or needs other imports.
  if (const std::string subject = subject_of(line); subject != kReference) key["subject"] = subject;
  const bool sanitized = line.axes.value("sanitizer", "none") != "none";
  if (line.isolation == "process" || line.expect.kind == "fault" || sanitized)
    key["case"] = line.id;
  return key.dump();
}

std::map<std::string, std::string> case_environment(const AxisTable& axes, const Case& test_case) {
  std::map<std::string, std::string> environment;
  constexpr std::pair<const char*, const char*> kVariables[] = {
      {"nccl_graph_register", "NCCL_GRAPH_REGISTER"},
      {"nccl_algo", "NCCL_ALGO"},
      {"nccl_proto", "NCCL_PROTO"}};
  for (const auto& [axis, variable] : kVariables)
    if (const std::string value = text_of(axes, test_case, axis); value != "unset")
      environment[variable] = value;
  if (text_of(axes, test_case, "allocator") == "expandable")
    environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True";
  constexpr std::string_view kPrefix = "env.";
  // Only NCCL's log shows which buffers NCCL registered. The case's own NCCL_DEBUG, set below,
  // overrides this one.
  if (text_of(axes, test_case, "model") == "collective") {
    environment["NCCL_DEBUG"] = "INFO";
    environment["NCCL_DEBUG_SUBSYS"] = "ENV,REG,COLL,TUNING";
  }
  for (const auto& [name, value] : test_case.values)
    if (name.starts_with(kPrefix))
      environment[name.substr(kPrefix.size())] = std::get<std::string>(value);
  return environment;
}

}  // namespace graphproof::matrix
