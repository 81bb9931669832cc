#include "reports/record/job/shard.h"

namespace graphproof::record {

Json to_json(const Shard& shard) {
  return {{"schema", kShardSchema},
          {"number", shard.number},
          {"count", shard.count},
          {"plan_sha256", shard.plan_sha256}};
}

Shard shard_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kShardSchema);
  const Shard shard{.number = in.required<int>("number"),
                    .count = in.required<int>("count"),
                    .plan_sha256 = in.required<std::string>("plan_sha256")};
  if (shard.number < 1 || shard.number > shard.count)
    in.reject("number", std::to_string(shard.number), "1 to " + std::to_string(shard.count));
  return shard;
}

}  // namespace graphproof::record
