// shard.json: which part of a plan a run has. A run of a part writes it, and merging the parts
// reads it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reports/record/text/fields.h"

namespace graphproof::record {

inline constexpr std::string_view kShardSchema = "graphproof-shard/1";

/// Part `number` of `count`: the lines number, number + count, number + 2 count, ... of the plan,
/// counted from 1.
struct Shard {
  int number = 1, count = 1;
  std::string plan_sha256;  // of the whole plan, without the expected seconds

  bool operator==(const Shard&) const = default;
};

Json to_json(const Shard& shard);
Shard shard_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
