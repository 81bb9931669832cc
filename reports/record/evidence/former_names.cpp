#include "reports/record/evidence/former_names.h"

namespace graphproof::record {

std::span<const FormerKind> former_kinds() {
  static const std::vector<FormerKind> kKinds = {
      {"compare", "compare", {{"subject", "compared"}}},
      {"evaluated", "evaluated", {{"watched", "announced"}}},
      {"evictions", "evictions", {{"subject", "run"}}},
      {"fp8_weights", "fp8_weights", {{"made", "copies"}}},
      {"freed", "operands", {{"operands", "blocks"}}},
      {"kept", "handed_out", {{"later", "later_digest"}}},
      {"knob", "hyperparameter", {{"knob", "name"}}},
      {"late", "delayed_steps", {{"ways", "branches"}}},
      {"overwritten", "scribbled", {}},
      {"poison", "poison", {{"watched", "announced"}, {"looked_at", "inspected"}}},
      {"races", "races", {{"looks", "accesses"}}},
      {"reference", "reference", {{"subject", "compared"}}},
  };
  return kKinds;
}

void use_todays_names(std::string& kind, nlohmann::json& fields) {
  for (const FormerKind& former : former_kinds()) {
    if (kind != former.was) continue;
    kind = former.is;
    fields["kind"] = kind;
    for (const auto& [was, is] : former.fields) {
      const auto found = fields.find(was);
      if (found == fields.end() || fields.contains(is)) continue;
      fields[std::string(is)] = std::move(*found);
      fields.erase(std::string(was));
    }
    return;
  }
}

}  // namespace graphproof::record
