// Evidence of a case as a whole: which case it is, its progress, and how it ended.
#pragma once

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

inline constexpr std::string_view kEvidenceSchema = "graphproof-evidence/1";

struct StartLine {
  static constexpr std::string_view
      kKind = "start",
      kDoc = "The first line of every file: which case and rank it belongs to.";
  std::string schema = std::string(kEvidenceSchema);
  std::optional<std::int64_t> revision;
  std::string case_id;
  std::int64_t attempt = 1, rank = 0, world_size = 1;
  std::string device;
  std::int64_t pid = 0;
  std::string fault;
  std::int64_t t_ms = 0;
  std::optional<std::int64_t> shared_gpus;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("schema", &StartLine::schema, "format of the file", "graphproof-evidence/1",
          {.one_of = kEvidenceSchema});
    field("revision", &StartLine::revision,
          "evidence revision that the rank writes; a file without it has revision 1", 9,
          {.at_least = 1, .since = 2});
    field("case", &StartLine::case_id, "id of the case", "9d2c0f6a1b3e4d57", kDigest);
    field("attempt", &StartLine::attempt, "which attempt at the case, from 1", 1, kPositive);
    field("rank", &StartLine::rank, "the rank that writes the file", 0, kCount);
    field("world_size", &StartLine::world_size, "ranks of the case", 2, kPositive);
    field("device", &StartLine::device, "device that the rank program was built for", "sim",
          {.one_of = "sim|cuda"});
    field("pid", &StartLine::pid, "process id of the rank", 4710, kPositive);
    field("fault", &StartLine::fault, "planted fault, or none", "none",
          {.pattern = "^(none|M[0-9]{2,3})$"});
    field("t_ms", &StartLine::t_ms, "the rank's monotonic clock (ms)", 1000, kCount);
    field("shared_gpus", &StartLine::shared_gpus,
          "how many GPUs the ranks of this host share; absent if each rank has its own", 1,
          kPositive);
  }
};

struct PhaseLine {
  static constexpr std::string_view kKind = "phase",
                                    kDoc = "How long the rank spent in one phase of one arm.";
  Phase phase = Phase::validate;
  std::string arm;
  double ms = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("phase", &PhaseLine::phase, "the phase", "validate");
    field("arm", &PhaseLine::arm, "the arm; empty outside arms", "");
    field("ms", &PhaseLine::ms, "time spent (ms)", 0.4, kCount);
  }
};

struct ConfigLine {
  static constexpr std::string_view kKind = "config",
                                    kDoc = "What the case asks of libraries and what they report.";
  Settings asked, effective;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("asked", &ConfigLine::asked, "settings that the axes ask for",
          JsonText{R"({"allocator": "default", "autograd_threads": "off",
                       "capture_mode": "thread_local", "NCCL_GRAPH_REGISTER": "unset"})"});
    field("effective", &ConfigLine::effective,
          "settings in effect and versions, as the libraries report them",
          JsonText{R"({"allocator": "default", "autograd_threads": "off",
                       "capture_mode": "thread_local", "mpi_thread_level": "serialized",
                       "nccl_compiled": "none", "nccl_loaded": "none", "libnccl_mapped": 0,
                       "torch": "2.11.0", "deterministic": true})"});
  }
};

struct VoteLine {
  static constexpr std::string_view
      kKind = "vote",
      kDoc = "The vote of all ranks at the end of a phase: the code of each rank.";
  Phase phase = Phase::init;
  std::vector<std::int64_t> codes;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("phase", &VoteLine::phase, "the phase that ended", "init");
    field("codes", &VoteLine::codes, "by rank: 0, or the code of the rank's failure",
          JsonText{"[0, 0]"}, {.min_items = 1});
  }
};

struct ErrorLine {
  static constexpr std::string_view kKind = "error",
                                    kDoc = "An error of the rank, and where it happened.";
  Phase phase = Phase::validate;
  std::string arm;
  std::int64_t step = 0;
  std::string type;
  std::int64_t code = 0;
  std::string call, message;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("phase", &ErrorLine::phase, "phase in which it happened", "capture");
    field("arm", &ErrorLine::arm, "the arm; empty outside arms", "lockstep_graph");
    field("step", &ErrorLine::step, "step of the arm, from 0; -1 outside steps", 2,
          {.at_least = -1});
    field("type", &ErrorLine::type, "library or kind of the error", "cuda",
          {.one_of = "cuda|nccl|mpi|exception"});
    field("code", &ErrorLine::code, "its number in that library; 0 if it has none", 900);
    field("call", &ErrorLine::call, "operator or library call that failed",
          "aten::_local_scalar_dense");
    field("message", &ErrorLine::message, "its text",
          "operation not permitted when stream is capturing");
  }
};

struct RefusedLine {
  static constexpr std::string_view kKind = "refused",
                                    kDoc = "The rank refused the case because a rule forbids it.";
  Phase phase = Phase::validate;
  std::string rule;
  bool device_initialised = false;
  std::string what, got, want, why, next;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("phase", &RefusedLine::phase, "phase in which it was refused", "validate");
    field("rule", &RefusedLine::rule, "id of the rule", "R035", {.pattern = "^[A-Z]+[0-9]+$"});
    field("device_initialised", &RefusedLine::device_initialised,
          "whether the device had been initialised by then", false);
    field("what", &RefusedLine::what, "what is forbidden", "full_iteration with nan_check_loss",
          kFilled);
    field("got", &RefusedLine::got, "what the case has", "nan_check_loss=true", kFilled);
    field("want", &RefusedLine::want, "what the rule allows", "nan_check_loss=false", kFilled);
    field("why", &RefusedLine::why, "reason of the rule",
          "the check reads the loss on the host, and a captured iteration cannot wait for the "
          "host");
    field("next", &RefusedLine::next, "what to do",
          "set nan_check_loss to false, or use impl none, local or transformer_engine", kFilled);
  }
};

struct TeardownLine {
  static constexpr std::string_view kKind = "teardown", kDoc = "One step of the case's teardown.";
  std::string step;
  std::int64_t order = 1;
  double ms = 0;
  std::int64_t limit_ms = 1;
  std::optional<std::int64_t> in_flight;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("step", &TeardownLine::step, "graphs, buffers, communicators or device", "graphs",
          kFilled);
    field("order", &TeardownLine::order, "its place in the order in which the steps ran, from 1", 1,
          kPositive);
    field("ms", &TeardownLine::ms, "time it took (ms)", 1.2, kCount);
    field("limit_ms", &TeardownLine::limit_ms, "its limit (ms)", 30000, kPositive);
    field("in_flight", &TeardownLine::in_flight,
          "for step graphs: graphs that were destroyed while the device still ran them", 0, kCount);
  }
};

struct UnobservedLine {
  static constexpr std::int64_t kSince = 11;
  static constexpr std::string_view
      kKind = "unobserved",
      kDoc =
          "A check that the rank leaves no evidence for, and why. It ends unexercised, unless the "
          "evidence shows a defect.";
  std::string check, why;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("check", &UnobservedLine::check, "name of the check", "D19.capture_status", kFilled);
    field("why", &UnobservedLine::why, "why it cannot be answered",
          "stand_in: CPU tensors on a recorder of operators; no CUDA graph was captured", kFilled);
  }
};

struct EndLine {
  static constexpr std::string_view kKind = "end",
                                    kDoc = "The last line: whether the case ran to its end.";
  bool complete = false;
  std::int64_t lines = 0;
  Phase last_phase = Phase::validate;
  std::int64_t t_ms = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("complete", &EndLine::complete, "whether the case ran to its end", true);
    field("lines", &EndLine::lines, "lines of the file before this one", 38, kCount);
    field("last_phase", &EndLine::last_phase, "the last phase that the rank entered",
          "teardown_comm");
    field("t_ms", &EndLine::t_ms, "the rank's monotonic clock (ms)", 1400, kCount);
  }
};

/// The kinds of this file, in the order of the reference page.
using CaseKinds = Kinds<StartLine, PhaseLine, ConfigLine, VoteLine, ErrorLine, RefusedLine,
                        TeardownLine, UnobservedLine, EndLine>;

}  // namespace graphproof::record
