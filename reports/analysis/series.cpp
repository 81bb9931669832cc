#include "reports/analysis/series.h"

#include <algorithm>
#include <cmath>

#include "reports/record/text/message.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;

constexpr std::size_t kShownSteps = 400;  // in a curve; a chart is not much wider in pixels

using Points = std::map<std::int64_t, double>;  // step -> value

/// NaN if either is NaN, so that a NaN is visible in the chart.
double larger(double left, double right) {
  return std::isnan(left) || left >= right ? left : right;
}

void keep_largest(Points& points, std::int64_t step, double value) {
  const auto [at, added] = points.emplace(step, value);
  if (!added) at->second = larger(at->second, value);
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
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
  std::map<std::string, Points> loss, grad_norm, difference, ulp, step_ms, memory;

  void add(const record::Evidence& evidence, bool last_rank) {
    if (last_rank)
      for (const record::StepLine& line : evidence.of<record::StepLine>()) {
        loss[line.arm][line.step] = mean(line.loss);
        grad_norm[line.arm][line.step] = line.grad_norm;
      }
    for (const record::CompareLine& line : evidence.of<record::CompareLine>()) {
      keep_largest(difference[line.compared], line.step,
                   line.mismatch ? line.mismatch->max_abs : 0);
      keep_largest(ulp[line.compared], line.step,
                   line.mismatch ? static_cast<double>(line.mismatch->max_ulp) : 0);
    }
    for (const record::TimingLine& line : evidence.of<record::TimingLine>())
      keep_largest(step_ms[line.arm], line.step, line.wall_ms);
    for (const record::MemoryLine& line : evidence.of<record::MemoryLine>()) add(line);
  }

  void add(const record::MemoryLine& line) {
    // A solo arm also measures memory before it is built and after it is gone. The curve shows only
    // its steps.
    if (line.when.value_or("step") != "step") return;
    const auto keep = [&](const char* quantity, std::int64_t bytes) {
      keep_largest(memory[line.arm + " " + quantity], line.step, static_cast<double>(bytes));
    };
    keep("allocated", line.allocated);
    keep("reserved", line.reserved);
    keep("pool", line.pool);
    if (line.device) keep("device", *line.device);
    keep("resident", line.resident);
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
    gathered.add(evidence, last_rank);
  }
  return {.loss = thinned(gathered.loss),
          .grad_norm = thinned(gathered.grad_norm),
          .difference = thinned(gathered.difference),
          .ulp = thinned(gathered.ulp),
          .step_ms = thinned(gathered.step_ms),
          .memory = thinned(gathered.memory)};
}

json to_json(const Series& series) {
  return {{"loss", to_json(series.loss)},
          {"grad_norm", to_json(series.grad_norm)},
          {"ulp", to_json(series.ulp)},
          {"step_ms", to_json(series.step_ms)},
          {"difference", to_json(series.difference)},
          {"memory", to_json(series.memory)}};
}

}  // namespace graphproof::reports
