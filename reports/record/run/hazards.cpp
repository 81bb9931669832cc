#include "reports/record/run/hazards.h"

namespace graphproof::record {
namespace {

Json to_json(const HazardPrediction& one) {
  return {{"dialect", one.dialect},
          {"covers", one.covers},
          {"rule", one.rule},
          {"refuses", one.refuses},
          {"agrees", one.agrees ? Json(*one.agrees) : Json()}};
}

Json to_json(const HazardCell& cell) {
  Json hang, cure, predictions = Json::array();
  if (cell.hang)
    hang = {{"phase", name(cell.hang->phase)},
            {"ranks", cell.hang->ranks},
            {"last_collective",
             cell.hang->last_collective ? to_json(*cell.hang->last_collective) : Json()}};
  if (cell.cure)
    cure = {{"setting", cell.cure->setting},
            {"case", cell.cure->case_id},
            {"verdict", cell.cure->verdict.text()}};
  for (const HazardPrediction& one : cell.predictions) predictions.push_back(to_json(one));
  return {{"case", cell.case_id},
          {"name", cell.name},
          {"captured", cell.captured},
          {"collective", cell.collective},
          {"allocator", cell.allocator},
          {"nccl_graph_register", cell.nccl_graph_register},
          {"placement", cell.placement},
          {"hazard", cell.hazard},
          {"basis", cell.basis},
          {"expected", cell.expected},
          {"observed", cell.observed.text()},
          {"verdict", cell.verdict.text()},
          {"registration", cell.registration},
          {"hang", hang},
          {"cure", cure},
          {"predictions", predictions}};
}

Verdict verdict_from(const Fields& in, std::string_view key) {
  const std::string text = in.required<std::string>(key);
  const auto verdict = Verdict::from(text);
  if (!verdict) in.reject(key, "`" + text + "`", "a verdict");
  return *verdict;
}

HazardCell cell_from(const Fields& in) {
  HazardCell cell{.case_id = in.required<std::string>("case"),
                  .name = in.required<std::string>("name"),
                  .captured = in.required<bool>("captured"),
                  .collective = in.required<std::string>("collective"),
                  .allocator = in.required<std::string>("allocator"),
                  .nccl_graph_register = in.required<std::string>("nccl_graph_register"),
                  .placement = in.required<std::string>("placement"),
                  .hazard = in.required<std::string>("hazard"),
                  .basis = in.word("basis", {"seen", "predicted"}),
                  .expected = in.required<std::string>("expected"),
                  .observed = verdict_from(in, "observed"),
                  .verdict = verdict_from(in, "verdict"),
                  .registration = in.required<std::string>("registration"),
                  .hang = {},
                  .cure = {},
                  .predictions = {}};
  if (const auto hang = in.nullable_object("hang")) {
    const std::string phase = hang->required<std::string>("phase");
    const auto known = phase_from(phase);
    if (!known) hang->reject("phase", "`" + phase + "`", "a phase");
    cell.hang = HazardHang{
        .phase = *known, .ranks = hang->required<std::vector<int>>("ranks"), .last_collective = {}};
    if (const auto last = hang->nullable_object("last_collective"))
      cell.hang->last_collective = collective_from(*last);
  }
  if (const auto cure = in.nullable_object("cure"))
    cell.cure = HazardCure{.setting = cure->required<std::string>("setting"),
                           .case_id = cure->required<std::string>("case"),
                           .verdict = verdict_from(*cure, "verdict")};
  for (const Fields& one : in.objects("predictions"))
    cell.predictions.push_back({.dialect = one.required<std::string>("dialect"),
                                .covers = one.required<std::string>("covers"),
                                .rule = one.required<std::string>("rule"),
                                .refuses = one.required<bool>("refuses"),
                                .agrees = one.nullable<bool>("agrees")});
  return cell;
}

}  // namespace

Json to_json(const Hazards& hazards) {
  Json cells = Json::array();
  for (const HazardCell& cell : hazards.cells) cells.push_back(to_json(cell));
  return {{"schema", kHazardsSchema},
          {"run_id", hazards.run_id},
          {"device", hazards.device},
          {"nccl_version", hazards.nccl_version},
          {"cells", cells}};
}

Hazards hazards_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kHazardsSchema);
  Hazards hazards{.run_id = in.required<std::string>("run_id"),
                  .device = in.word("device", {"sim", "cuda"}),
                  .nccl_version = in.required<std::string>("nccl_version"),
                  .cells = {}};
  for (const Fields& cell : in.objects("cells")) hazards.cells.push_back(cell_from(cell));
  return hazards;
}

}  // namespace graphproof::record
