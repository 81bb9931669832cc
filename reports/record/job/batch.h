// batch.json: what the ranks of one set of processes need to know. Any program that reads it and
// writes evidence can serve as the rank program.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

inline constexpr std::string_view kBatchSchema = "graphproof-batch/1";

/// The log of compute-sanitizer in the evidence folder of a case of the axis `sanitizer`.
inline constexpr std::string_view kSanitizerLog = "compute-sanitizer.log";

/// How long a rank may be silent, in milliseconds, by phase; see limited_per_step().
using Limits = std::map<Phase, std::int64_t>;
Json to_json(const Limits& limits);
/// Reads the limits under `key`; `all` demands every phase.
Limits limits_from(const Fields& in, std::string_view key, bool all);

/// An attempt at a case in the batch.
struct BatchCase {
  std::string id, name;
  int attempt = 1;
  nlohmann::json axes;  // the value of every axis
  std::string evidence_folder;

  bool operator==(const BatchCase&) const = default;
};

/// The cases that one set of processes runs, one after the other.
struct Batch {
  std::string run_id, batch;
  std::string device;  // sim, cuda
  int world_size = 1;
  std::uint64_t seed = 1;
  std::string isolation;  // batch, process
  std::string heartbeat_fifo, store, log_folder;
  std::string mark;  // the value of GRAPHPROOF_MARK in every process of the batch
  Limits limits_ms;
  std::vector<BatchCase> cases;

  bool operator==(const Batch&) const = default;
};

Json to_json(const Batch& batch);
Batch batch_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
