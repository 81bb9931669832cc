// Finds a `hyperparameter` line by its name.
#pragma once

#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

/// The line of the hyperparameter `name` for a step of an arm; null if there is none.
inline const record::HyperparameterLine* hyperparameter_line(Judgement& judgement,
                                                             const RankFiles& files,
                                                             std::string_view arm,
                                                             std::int64_t step,
                                                             std::string_view name) {
  for (const auto* line : judgement.find<record::HyperparameterLine>(files, arm, step))
    if (line->name == name) return line;
  return nullptr;
}

}  // namespace graphproof::checks
