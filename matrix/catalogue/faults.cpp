#include "matrix/catalogue/faults.h"

#include <algorithm>

namespace graphproof::matrix {

namespace {

bool is_identifier(std::string_view name) {
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

}  // namespace

bool FaultEntry::shown_on(std::string_view device) const {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

const std::string& FaultEntry::detector(std::string_view device) const {
  const auto found = detectors.find(device);
  return (found == detectors.end() ? detectors.begin() : found)->second;
}

std::string FaultEntry::detector_text() const {
  const std::string& first = detectors.begin()->second;
  if (std::ranges::all_of(detectors, [&](const auto& one) { return one.second == first; }))
    return first;
  std::string text;
  for (const auto& [device, detector] : detectors)
    text += (text.empty() ? "" : ", ") + detector + " (" + device + ")";
  return text;
}

std::vector<std::string> FaultTable::ids(const Document& document) {
  std::vector<std::string> result;
  for (const Located& row : Located(document).at("faults").items()) {
    const std::string fault = row.at("fault").string();
    if (fault == "none" || fault.empty() ||
        std::find(result.begin(), result.end(), fault) != result.end())
      row.at("fault").fail("a fault needs an id of its own",
                           "an id that no other fault has, and not `none`", "",
                           "choose another id");
    result.push_back(fault);
  }
  return result;
}

FaultTable FaultTable::parse(const Document& document, const AxisTable& axes,
                             const CheckTable& checks) {
  FaultTable table;
  const Located root(document);
  root.expect_keys({"schema", "faults"}, {});
  root.at("schema").word({"graphproof-fault-table/1"});
  for (const Located& row : root.at("faults").items()) {
    row.expect_keys({"fault", "name", "title", "detector", "axes", "isolation", "devices",
                     "limits_ms", "signature"},
                    {"in_eager"});
    FaultEntry entry;
    entry.fault = row.at("fault").string();
    entry.name = row.at("name").string();
    if (!is_identifier(entry.name) ||
        std::ranges::count(table.faults_, entry.name, &FaultEntry::name) > 0)
      row.at("name").fail("`" + entry.name + "` is no name of its own",
                          "a name in snake_case that no other fault has",
                          "it becomes an enumerator of fixtures::Fault", "choose another name");
    entry.title = row.at("title").string();
    entry.signature = row.at("signature").string();
    entry.twin = case_from_json(axes, row.at("axes"));
    if (entry.twin.values.count("fault") != 0)
      row.at("axes").at("fault").fail("a fault inside a fault's case", "the axes of the clean twin",
                                      "", "remove it");
    entry.isolation = row.at("isolation").word({"batch", "process"});
    for (const Located& device : row.at("devices").items())
      entry.devices.push_back(device.word({"sim", "cuda"}));
    entry.limits_ms = parse_limits(row.at("limits_ms"));
    entry.in_eager = row.has("in_eager") && row.at("in_eager").boolean();
    if (entry.devices.empty())
      row.at("devices").fail("a fault that no device can show", "sim, cuda or both",
                             "it could never be killed", "name a device");
    const Located named = row.at("detector");
    const bool by_device = named.json().is_object();
    if (by_device) named.expect_keys({}, {"sim", "cuda"});
    const Case planted = planted_case(axes, entry);
    for (const std::string& device : entry.devices) {
      const Located place = by_device ? named.at(device) : named;
      const std::string& detector = entry.detectors[device] = place.string();
      const std::vector<const CheckEntry*> catching = checks.of_detector(detector);
      if (catching.empty())
        place.fail("no check belongs to detector " + detector, "a detector of checks.json",
                   "nothing could catch the fault " + entry.fault,
                   "add a check, or name another detector");
      if (std::none_of(catching.begin(), catching.end(), [&](const CheckEntry* check) {
            return check->required_of(planted, device);
          }))
        row.at("axes").fail(
            "no check of detector " + detector + " is required on " + device + " in this case",
            "axes under which one is required",
            "the fault " + entry.fault + " could survive unseen",
            "change the axes, or the check's required_when");
    }
    table.faults_.push_back(std::move(entry));
  }
  return table;
}

const FaultEntry* FaultTable::find(std::string_view fault) const {
  const auto found = std::find_if(faults_.begin(), faults_.end(),
                                  [&](const FaultEntry& entry) { return entry.fault == fault; });
  return found == faults_.end() ? nullptr : &*found;
}

std::vector<Capability> faults_of_subjects(const AxisTable& axes, const FaultTable& table) {
  const Scope scope{.axes = &axes, .defines = {}};
  std::vector<Capability> result;
  for (const std::string& subject : axes.find("subject")->values) {
    std::string ids;
    for (const FaultEntry& entry : table.faults())
      if (subject_of(entry.twin) == subject) ids += ", " + entry.fault;
    if (ids.empty()) continue;  // the table of subjects says that they have none
    const std::string condition = "fault in {none" + ids + "}";
    result.push_back({.subjects = {subject},
                      .require = Expression::condition(
                          condition, scope, Origin::option("the faults of " + subject, condition)),
                      .missing = "this fault is planted in the code of another subject"});
  }
  return result;
}

Case planted_case(const AxisTable& axes, const FaultEntry& entry) {
  Case planted = entry.twin;
  set_value(axes, planted, "fault", entry.fault);
  return planted;
}

}  // namespace graphproof::matrix
