// run.json: what a run is and what it runs on. It is the first file that a run writes.
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

/// Whether a host can run the cases of a subject (axis `subject`), as the user's Python says. `why`
/// is empty if it can.
struct SubjectState {
  bool available = false;
  std::string version;  // of its package; empty if it is not installed
  std::string why;

  bool operator==(const SubjectState&) const = default;
};

/// The software and hardware under test. A part that is absent is "none". Secrets in the
/// environment are redacted already.
struct Stack {
  std::string torch_version, cuda_version, nccl_version, driver, cudnn_version, mpi;
  std::vector<std::string> gpus;  // the name of each GPU, "NVIDIA H200"
  int sm = 0;                     // the architecture, such as 90; 0 without a GPU
  std::string kernel, host;
  int cpus = 0;
  std::map<std::string, std::string> environment;
  /// The Python that runs other subjects than reference: a path, or a name to be found in PATH.
  /// Empty where it was not asked, as on the simulated device.
  std::string python;
  std::map<std::string, SubjectState> subjects;
  /// The version of the compute-sanitizer in PATH. Empty where it was not asked: in runs from
  /// before the axis `sanitizer`.
  std::string compute_sanitizer;

  bool operator==(const Stack&) const = default;
};
Json to_json(const Stack& stack);
Stack stack_from(const Fields& in);

/// How many ranks may be on one GPU at the same time. Their results count, their times do not.
struct GpuSharing {
  int ranks_per_gpu = 1;  // of one case that has more ranks than this host has GPUs
  int cases_per_gpu = 1;  // each GPU is leased so often at the same time, once for each rank

  /// For cases that run again to be examined: the same, with no other case beside them.
  GpuSharing without_other_cases() const { return {.ranks_per_gpu = ranks_per_gpu}; }

  /// Whether the ranks of a case of so many ranks do not have their GPUs to themselves.
  bool shared(int ranks, int gpus) const {
    return cases_per_gpu > 1 || (ranks_per_gpu > 1 && ranks > gpus);
  }
  bool operator==(const GpuSharing&) const = default;
};

/// The options of a run. A resumed run keeps them.
struct Options {
  std::string isolation = "planned";  // planned (each case's own), process, batch
  std::int64_t budget_ms = 0;         // no more cases start after this time; 0: no bound
  int max_fail = 0;                   // no more cases start after so many failures; 0: no bound
  /// No more cases start after so much time of GPUs (of ranks on sim), summed over all; 0: no
  /// bound.
  std::int64_t max_gpu_ms = 0;
  GpuSharing sharing;
  int confirm = 0;   // how often a failure is run again to measure its rate
  Limits limits_ms;  // for cases that do not set their own

  bool operator==(const Options&) const = default;
};

/// A run.
struct Run {
  std::string run_id;
  std::string started;  // UTC, 2026-11-21T10:15:00Z
  std::vector<std::string> command;
  std::string profile;
  /// The matrix file of the plan.
  struct Matrix {
    std::string name, sha256;
    int axes_version = 1;
    bool operator==(const Matrix&) const = default;
  } matrix;
  std::uint64_t seed = 1;
  std::string device, engine;
  int slots = 0;
  Stack stack;
  std::string plan_sha256;  // of plan.jsonl; "" in runs of versions without the verb resume
  std::string parent;       // the run whose cases this one repeats; "" if none
  Options options;

  bool operator==(const Run&) const = default;
};

Json to_json(const Run& run);
Run run_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
