#include "reports/analysis/series.h"

#include <algorithm>
#include <cmath>

#include "reports/record/text/message.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;

constexpr std::size_t kShownSteps = 400;  // in a curve; a chart is not much wider in pixels
constexpr const char* kMemory[] = {"allocated", "reserved", "pool", "device", "resident"};

using Points = std::map<std::int64_t, double>;  // step -> value

/// NaN if either is NaN, so that a NaN is visible in the chart.
double larger(double left, double right) {
  return std::isnan(left) || left >= right ? left : right;
}

void keep_largest(Points& points, std::int64_t step, double value) {
  const auto [at, added] = points.emplace(step, value);
  if (!added) at->second = larger(at->second, value);
}

double mean(const json& values) {
  double sum = 0;
  for (const json& value : values) sum += record::number_from(value);
  return values.empty() ? std::nan("") : sum / static_cast<double>(values.size());
}

Curve thinned(const Points& points) {
  Curve curve;
  const std::size_t stride = points.size() / kShownSteps + 1;
  std::size_t index = 0;
  for (const auto& [step, value] : points) {
    const bool last = index + 1 == points.size();
    if (index++ % stride != 0 && !last) continue;
    curve.steps.push_back(step);
    curve.values.push_back(value);
  }
  return curve;
}

std::map<std::string, Curve> thinned(const std::map<std::string, Points>& all) {
  std::map<std::string, Curve> curves;
  for (const auto& [name, points] : all) curves.emplace(name, thinned(points));
  return curves;
}

struct Gathered {
  std::map<std::string, Points> loss, difference, memory;

  void add(const record::EvidenceLine& line, bool last_rank) {
    const json& fields = line.fields;
    if (line.kind == "step" && last_rank)
      loss[fields.at("arm")][fields.at("step")] = mean(fields.at("loss"));
    if (line.kind == "compare") {
      const json& mismatch = fields.at("mismatch");
      keep_largest(difference[fields.at("subject")], fields.at("step"),
                   mismatch.is_null() ? 0.0 : record::number_from(mismatch.at("max_abs")));
    }
    // A solo arm also measures memory before it is built and after it is gone. The curve shows only
    // its steps.
    if (line.kind == "memory" && fields.value("when", "step") == "step")
      for (const char* quantity : kMemory)
        if (const auto found = fields.find(quantity); found != fields.end() && found->is_number())
          keep_largest(memory[fields.at("arm").get<std::string>() + " " + quantity],
                       fields.at("step"), found->get<double>());
  }
};

json to_json(const std::map<std::string, Curve>& curves) {
  json object = json::object();
  for (const auto& [name, curve] : curves) {
    json values = json::array();
    for (const double value : curve.values)
      values.push_back(std::isfinite(value) ? json(value) : json());
    object[name] = {{"steps", curve.steps}, {"values", values}};
  }
  return object;
}

}  // namespace

Series series_of(const std::vector<record::Evidence>& ranks) {
  Gathered gathered;
  for (const record::Evidence& evidence : ranks) {
    // Only the last pipeline stage has losses, and the last rank belongs to it.
    const bool last_rank =
        evidence.file.filename() == record::evidence_file_name(static_cast<int>(ranks.size()) - 1);
    for (const record::EvidenceLine& line : evidence.lines) {
      // A line of another shape was written by another version. The other lines are still drawn.
      try {
        gathered.add(line, last_rank);
      } catch (const json::exception&) {
      } catch (const record::Error&) {
      }
    }
  }
  return {thinned(gathered.loss), thinned(gathered.difference), thinned(gathered.memory)};
}

json to_json(const Series& series) {
  return {{"loss", to_json(series.loss)},
          {"difference", to_json(series.difference)},
          {"memory", to_json(series.memory)}};
}

}  // namespace graphproof::reports
