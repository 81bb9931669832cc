#include "reports/record/run/faults.h"

#include <array>

namespace graphproof::record {
namespace {

constexpr std::array<std::string_view, 5> kStatusNames = {"killed", "killed_elsewhere", "survived",
                                                          "harmless", "unexercised"};

}  // namespace

std::string_view name(FaultStatus status) { return kStatusNames[static_cast<std::size_t>(status)]; }

std::optional<FaultStatus> fault_status_from(std::string_view text) {
  for (std::size_t i = 0; i < kStatusNames.size(); ++i)
    if (kStatusNames[i] == text) return static_cast<FaultStatus>(i);
  return std::nullopt;
}

Json to_json(const std::vector<FaultResult>& faults) {
  Json list = Json::array();
  for (const FaultResult& one : faults)
    list.push_back({{"fault", one.fault},
                    {"detector", one.detector},
                    {"killed_by", one.killed_by},
                    {"status", name(one.status)},
                    {"clean_twin", one.clean_twin.text()}});
  return list;
}

std::vector<FaultResult> faults_from(const nlohmann::json& value, const std::string& where) {
  if (!value.is_array())
    throw ReadError(
        {.what = where + " is not a list",
         .got = value.type_name(),
         .want = "a list of faults",
         .why = "",
         .next = "look at the file; reports/record/schema has its schema and an example"});
  std::vector<FaultResult> faults;
  for (const nlohmann::json& item : value) {
    const Fields in(item, where + "[" + std::to_string(faults.size()) + "]");
    const std::string twin = in.required<std::string>("clean_twin");
    if (!Verdict::from(twin)) in.reject("clean_twin", "`" + twin + "`", "a verdict");
    faults.push_back(
        {.fault = in.required<std::string>("fault"),
         .detector = in.required<std::string>("detector"),
         .killed_by = in.required<std::vector<std::string>>("killed_by"),
         .status = *fault_status_from(in.word(
             "status", {"killed", "killed_elsewhere", "survived", "harmless", "unexercised"})),
         .clean_twin = *Verdict::from(twin)});
  }
  return faults;
}

}  // namespace graphproof::record
