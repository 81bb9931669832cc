// run.json: what a run is and on what it runs; written first.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/batch.h"
#include "reports/record/text/fields.h"

namespace graphproof::record {

inline constexpr std::string_view kRunSchema = "graphproof-run/1";

/// The stack under test. "none" where a part is absent; secrets are redacted before they come here.
struct Stack {
  std::string torch_version, cuda_version, nccl_version, driver, cudnn_version, mpi;
  std::vector<std::string> gpus;  // one name per GPU, "NVIDIA H200"
  int sm = 0;                     // 90; 0 without a GPU
  std::string kernel, host;
  int cpus = 0;
  std::map<std::string, std::string> environment;

  bool operator==(const Stack&) const = default;
};
Json to_json(const Stack& stack);
Stack stack_from(const Fields& in);

/// How a run was asked to go; what resumes it goes the same way.
struct Options {
  std::string isolation = "planned";  // planned (each case's own), process, batch
  std::int64_t budget_ms = 0;         // 0: none
  int max_fail = 0;                   // 0: no bound
  std::int64_t max_gpu_ms = 0;  // GPUs (ranks on sim) times how long they are leased; 0: no bound
  int ranks_per_gpu = 1;        // of cases with more ranks than this host has GPUs
  int confirm = 0;              // how often a failure is run again to measure its rate
  Limits limits_ms;             // of cases that have no own

  bool operator==(const Options&) const = default;
};

struct Run {
  std::string run_id;
  std::string started;  // UTC, 2026-11-21T10:15:00Z
  std::vector<std::string> command;
  std::string profile;
  struct Matrix {
    std::string name, sha256;
    int axes_version = 1;
    bool operator==(const Matrix&) const = default;
  } matrix;
  std::uint64_t seed = 1;
  std::string device, engine;
  int slots = 0;
  Stack stack;
  std::string plan_sha256;  // of plan.jsonl; "" in runs that are older than `resume`
  std::string parent;       // the run that this one repeats cases of; "" if none
  Options options;

  bool operator==(const Run&) const = default;
};

Json to_json(const Run& run);
Run run_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
