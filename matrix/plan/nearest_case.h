// Turns a training configuration into a case: the same graphs and the same parallel dimensions, on
// a model and a layout that fit this machine. Published recipes (profile `recipes`) and a user's
// configuration (`--like`) both come here.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "matrix/plan/concessions.h"

namespace graphproof::matrix {

/// The values of a training configuration under upstream's option names
/// (tensor_model_parallel_size), the environment as env.NAME, and data_parallel_size or world_size
/// if known. A value that is missing or Unknown was not given.
using TrainingValues = std::map<std::string, Value, std::less<>>;

/// What became of one option, or of some together.
struct Mapped {
  /// kept: an axis has the value. shrunk: an axis has a smaller or simpler value. dropped: no axis
  /// has it. replaced: the runnable case has another value than the case that was asked for.
  enum class Kind { kept, shrunk, dropped, replaced };
  Kind kind = Kind::kept;
  std::string from;  // "tensor_model_parallel_size=8"; if replaced, an axis: "dispatcher=flex"
  std::string to;    // "tp=2"; empty if dropped
  std::string why;   // empty if kept
};
std::string_view mapped_text(Mapped::Kind kind);

/// The case of a configuration, and an account of how it was made.
struct NearestCase {
  Case asked;     // the configuration, scaled down, with everything that an axis can represent
  Case runnable;  // `asked` without what today's engines or this machine lack
  std::vector<Mapped> account;       // how `asked` was made; then what `runnable` replaces
  std::set<std::string> read;        // the options that were considered
  std::vector<std::string> lacking;  // what `asked` needs and is not built yet
  std::vector<std::string> missing;  // what even `runnable` needs and does not have; usually empty
};

/// Sizes above one become two, so that every parallel dimension keeps communicating; if the machine
/// has too few slots, only dp becomes one. `runnable` is made by runnable_case() (concessions.h).
NearestCase nearest_case(const TrainingValues& values, const Catalogue& catalogue,
                         const Machine& machine);

/// `asked` with the code that recipes are written for: Megatron-Core with Transformer Engine's
/// layers, as near as it can run on GPUs like the machine's, installed or not, so that a plan does
/// not depend on what is installed.
RunnableCase through_megatron_core(const Case& asked, const Catalogue& catalogue,
                                   const Machine& machine);

}  // namespace graphproof::matrix
