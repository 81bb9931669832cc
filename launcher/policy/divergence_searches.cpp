#include "launcher/policy/divergence_searches.h"

#include <utility>

namespace graphproof::launcher {

void DivergenceSearches::add(const std::string& batch, record::Record record) {
  searches_.insert_or_assign(batch, Search{std::move(record), {}});
}

void DivergenceSearches::started(const std::string& batch, std::int64_t now_ms) {
  if (const auto found = searches_.find(batch); found != searches_.end())
    found->second.started_ms = now_ms;
}

bool DivergenceSearches::overdue(const std::string& batch, std::int64_t now_ms) const {
  const auto found = searches_.find(batch);
  return found != searches_.end() && found->second.started_ms &&
         now_ms - *found->second.started_ms > kLimit_ms;
}

std::optional<record::Record> DivergenceSearches::remove(const std::string& batch) {
  auto found = searches_.extract(batch);
  return found ? std::optional(std::move(found.mapped().record)) : std::nullopt;
}

}  // namespace graphproof::launcher
