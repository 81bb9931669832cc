#include "suites/rank/validate.h"

#include <chrono>

#include "reports/record/text/message.h"

namespace graphproof::suites {
namespace {

[[noreturn]] void contradiction(std::string what, std::string got, std::string want) {
  throw record::ReadError({.what = std::move(what),
                           .got = std::move(got),
                           .want = std::move(want),
                           .why = "the evidence would be recorded under the name of another case",
                           .next = "let ./graphproof write the batch file, or correct it"});
}

}  // namespace

std::vector<ValidatedCase> validate(const record::Batch& batch, const matrix::Catalogue& catalogue,
                                    const matrix::Machine& machine, int world_size) {
  using Clock = std::chrono::steady_clock;
  if (batch.device != machine.device)
    contradiction("device of batch " + batch.batch, batch.device,
                  machine.device + ", which this program is built for");
  if (batch.world_size != world_size)
    contradiction("world size of batch " + batch.batch, std::to_string(batch.world_size),
                  std::to_string(world_size) + ", the number of ranks that were started");
  std::vector<ValidatedCase> cases;
  for (const record::BatchCase& listed : batch.cases) {
    const auto begin = Clock::now();
    ValidatedCase validated{
        .listed = listed,
        .test_case = matrix::case_from_json(catalogue.axes, listed.axes, "case " + listed.id),
        .refusal = std::nullopt};
    if (const std::string id = matrix::case_id(validated.test_case); id != listed.id)
      contradiction("id of case " + listed.name, listed.id, id + ", which follows from its axes");
    validated.refusal = catalogue.rules.refusal(validated.test_case, machine);
    validated.validate_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    cases.push_back(std::move(validated));
  }
  return cases;
}

}  // namespace graphproof::suites
