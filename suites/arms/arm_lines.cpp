#include "suites/arms/arm_lines.h"

#include "fixtures/comm/ledger.h"
#include "fixtures/inspect/tensor_comparison.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::suites {

record::Json mismatch_json(const fixtures::Mismatch& mismatch) {
  return {{"tensor", mismatch.tensor},
          {"element", mismatch.element},
          {"left", record::number(mismatch.left)},
          {"right", record::number(mismatch.right)},
          {"max_abs", record::number(mismatch.max_abs)},
          {"max_rel", record::number(mismatch.max_rel)},
          {"max_ulp", mismatch.max_ulp},
          {"elements", mismatch.elements},
          {"differing", mismatch.differing}};
}

bool write_comparison(const CaseParts& parts, const std::string& left, const std::string& right,
                      const std::string& subject, std::int64_t step, const std::string& input,
                      const Snapshot& of_left, const Snapshot& of_right) {
  const fixtures::Comparison compared = fixtures::compare(of_left, of_right);
  parts.scope.write("compare", {{"left", left},
                                {"right", right},
                                {"subject", subject},
                                {"step", step},
                                {"input", input},
                                {"tensors", compared.tensors},
                                {"bytes", compared.bytes},
                                {"equal", compared.equal},
                                {"mismatch", compared.mismatch ? mismatch_json(*compared.mismatch)
                                                               : record::Json()}});
  return compared.equal;
}

CountedCollectives::CountedCollectives(const CaseParts& parts, std::string arm)
    : parts_(parts), arm_(std::move(arm)) {
  if (parts_.groups) parts_.groups->ledger().reset();
}

void CountedCollectives::write() {
  const workloads::Layout& layout = parts_.config.layout;
  if (!parts_.groups || layout.tp * layout.replicas() * layout.pp == 1) return;
  const auto totals = parts_.groups->ledger().totals();
  parts_.scope.write("collectives",
                     {{"arm", arm_},
                      {"count", totals.count},
                      {"digest", totals.digest},
                      {"last", totals.last ? record::to_json(*totals.last) : record::Json()}});
}

}  // namespace graphproof::suites
