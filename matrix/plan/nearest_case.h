// From a training configuration to a case: the same graphs, the same parallel dimensions, on a
// model and a layout that fit this machine. One way for published recipes (profile `recipes`) and
// for a user's configuration (`--like`).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::matrix {

/// Values of a training configuration under upstream's option names (tensor_model_parallel_size),
/// with env.NAME for the environment, and data_parallel_size or world_size where known. What is
/// missing or Unknown was not said.
using TrainingValues = std::map<std::string, Value, std::less<>>;

/// One line of the account.
struct Mapped {
  enum class Kind { kept, shrunk, dropped, replaced };
  Kind kind = Kind::kept;
  std::string from;  // "tensor_model_parallel_size=8", of a replaced one "dispatcher=flex"
  std::string to;    // "tp=2"; empty where dropped
  std::string why;   // of kept: empty
};
std::string_view mapped_text(Mapped::Kind kind);

struct NearestCase {
  Case asked;     // scaled, everything that an axis can say
  Case runnable;  // `asked` without what today's engines lack; the same where nothing lacks
  std::vector<Mapped> account;  // kept, shrunk, dropped of `asked`; then what `runnable` replaced
  std::set<std::string> read;   // options that were looked at
  std::vector<std::string> lacking;  // what `asked` needs and nobody has built
  std::vector<std::string> missing;  // what even `runnable` needs; empty where it runs
};

/// Sizes above one become two, so that every dimension that takes part still does; then only dp
/// gives way to the slots. `runnable` gives up one thing after another, the least telling first,
/// until nothing lacks. A case that our rules refuse is not mended: refusing it is what runs.
NearestCase nearest_case(const TrainingValues& values, const Catalogue& catalogue,
                         const Machine& machine);

}  // namespace graphproof::matrix
