#include "matrix/plan/plan_line.h"

#include <algorithm>
#include <utility>

namespace graphproof::matrix {
namespace {

// First guesses for the remaining time; a run's own durations replace them as they come in.
constexpr double kRefusalSeconds = 0.1;  // no device work
constexpr double kCaseSeconds = 0.5;     // one rank, arms of five steps, on a device that is up
constexpr double kSecondsPerRank = 0.15;
constexpr double kProcessSeconds = 1.5;  // start and end of processes of its own

nlohmann::json skip(std::string verdict, std::string why) {
  return {{"verdict", std::move(verdict)}, {"why", std::move(why)}};
}

}  // namespace

nlohmann::json LineMaker::make(const Wanted& wanted) const {
  const Case& test_case = wanted.test_case;
  const std::int64_t ranks = world_size(catalogue_.axes, test_case);
  const std::string kind = wanted.expect.at("kind");
  Limits limits = catalogue_.limits;
  for (const auto& [phase, limit] : wanted.limits) limits[phase] = limit;
  nlohmann::json line{{"schema", "graphproof-plan/1"},
                      {"id", case_id(test_case)},
                      {"name", case_name(catalogue_.axes, test_case)},
                      {"axes", effective_values(catalogue_.axes, test_case)},
                      {"ranks", ranks},
                      {"isolation", wanted.isolation},
                      {"environment", case_environment(catalogue_.axes, test_case)},
                      {"limits_ms", limits},
                      {"expect", wanted.expect},
                      {"required_checks", nlohmann::json::array()},
                      {"skip", skip_of(wanted, ranks)},
                      {"why", wanted.why}};
  if (kind != "rejected") line["required_checks"] = required(test_case);
  double seconds = kCaseSeconds + kSecondsPerRank * static_cast<double>(ranks) +
                   (wanted.isolation == "process" ? kProcessSeconds : 0);
  // An expected hang takes as long as the watch is patient.
  if (kind == "hazard" && wanted.expect.at("verdict").get<std::string>().starts_with("fail.hang"))
    seconds += static_cast<double>(limits.at("replay")) / 1000;
  line["expected_seconds"] = kind == "rejected" ? kRefusalSeconds : seconds;
  return line;
}

Wanted LineMaker::wanted(Case test_case, std::string why) const {
  Wanted result{.test_case = std::move(test_case), .why = std::move(why)};
  if (const auto refusal = catalogue_.rules.refusal(result.test_case, machine_)) {
    result.expect = {{"kind", "rejected"}, {"rule", refusal->rule}};
  } else if (const FaultEntry* fault =
                 catalogue_.faults.find(text_of(catalogue_.axes, result.test_case, "fault"))) {
    result.expect = {{"kind", "fault"},
                     {"fault", fault->fault},
                     {"detector", fault->detector(machine_.device)},
                     {"clean_twin", case_id(clean_twin(result.test_case))}};
    result.isolation = fault->isolation;
    result.limits = fault->limits_ms;
  } else if (const Hazard* hazard = catalogue_.hazards.of(result.test_case, machine_)) {
    result.expect = {{"kind", "hazard"}, {"rule", hazard->id}, {"verdict", hazard->expect}};
    if (catalogue_.hazards.disposable(result.test_case, machine_)) {
      result.isolation = "process";
      result.limits = catalogue_.hazards.limits();
    }
  }
  return result;
}

// A fault is only asked for its detector's checks: what else it disturbs is evidence, not a
// requirement.
std::vector<std::string> LineMaker::required(const Case& test_case) const {
  std::vector<std::string> names = catalogue_.checks.required(test_case, machine_.device);
  const FaultEntry* fault = catalogue_.faults.find(text_of(catalogue_.axes, test_case, "fault"));
  if (fault == nullptr) return names;
  std::erase_if(names, [&](const std::string& name) {
    return catalogue_.checks.find(name)->detector != fault->detector(machine_.device);
  });
  return names;
}

nlohmann::json LineMaker::skip_of(const Wanted& wanted, std::int64_t ranks) const {
  if (!wanted.skip_as.empty()) return skip(wanted.skip_as, wanted.skip_why);
  if (ranks > machine_.slots) {
    return skip("skipped.gpus", "needs " + std::to_string(ranks) +
                                    " ranks, this machine has room for " +
                                    std::to_string(machine_.slots));
  }
  if (wanted.expect.at("kind") == "rejected")
    return nullptr;  // refused before the device or the engine matters
  const std::string arch = text_of(catalogue_.axes, wanted.test_case, "arch");
  if (arch != "any") {
    const Value sm = variable_value(machine_, "sm");
    const auto* number = std::get_if<std::int64_t>(&sm);
    const std::string own = number != nullptr && *number > 0 ? "sm_" + std::to_string(*number)
                                                             : "no known architecture";
    if (arch != own) return skip("skipped.arch", "needs " + arch + ", this machine has " + own);
  }
  const FaultEntry* fault =
      catalogue_.faults.find(text_of(catalogue_.axes, wanted.test_case, "fault"));
  if (fault != nullptr && !fault->shown_on(machine_.device))
    return skip("unexercised",
                "the fault " + fault->fault + " can't be shown on " + machine_.device);
  const std::vector<std::string> missing =
      catalogue_.capabilities.missing(wanted.test_case, machine_);
  if (!missing.empty()) {
    std::string why;
    for (const std::string& one : missing) why += (why.empty() ? "" : "; ") + one;
    return skip("skipped.capability", why);
  }
  return nullptr;
}

nlohmann::json plan_case(const Catalogue& catalogue, const Case& test_case, const Machine& machine,
                         std::string why) {
  const LineMaker maker(catalogue, machine);
  return maker.make(maker.wanted(test_case, std::move(why)));
}

std::string batch_key(const nlohmann::json& plan_line, std::string_view device) {
  nlohmann::json key{{"device", device},
                     {"ranks", plan_line.at("ranks")},
                     {"isolation", plan_line.at("isolation")},
                     {"environment", plan_line.at("environment")},
                     {"limits_ms", plan_line.at("limits_ms")},
                     {"comm", plan_line.at("axes").value("comm", "")}};
  if (plan_line.at("isolation") == "process" || plan_line.at("expect").at("kind") == "fault")
    key["case"] = plan_line.at("id");
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
  // What NCCL registered stands in its log alone; the case's own NCCL_DEBUG below wins.
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
