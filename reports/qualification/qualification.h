// A qualification: what several runs on one software stack, or on two, say together. It answers
// whether the stack may be used, what was shown, what was not shown and why.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/record/run/summary.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {

inline constexpr std::string_view kQualificationSchema = "graphproof-qualification/1";
/// The stage that shows that defects are noticed here. Without it nothing is qualified.
inline constexpr std::string_view kFaultsStage = "faults";
/// The stage that may find nothing to run, because its packages are not installed.
inline constexpr std::string_view kSubjectsStage = "subjects";

/// A run of one profile on one stack.
struct Stage {
  std::string name;                        // of the profile
  std::string meaning;                     // of the profile, in half a sentence
  std::string image;                       // A or B where two images are compared, otherwise empty
  std::string folder;                      // of the run, within the folder of the qualification
  std::optional<record::Summary> summary;  // nothing if the run did not get so far
  std::string fault;                       // why there is no summary; otherwise empty
  /// Reasons of cases that the plan skipped, with the number of cases, most frequent first.
  std::vector<std::pair<std::string, int>> skipped;
  record::ExitCode exit_code = record::ExitCode::own_fault;

  /// Cases of it ran, or were refused as expected.
  bool shown() const;
};

/// A library file that the ranks load.
struct Library {
  std::string path, sha256;
};

/// One software stack: that of an image, or that of this machine.
struct QualifiedStack {
  std::string image;   // A or B, or empty
  std::string source;  // the image; empty for this machine
  std::string host;
  std::vector<std::string> troubles;  // what the doctor found that is not well
  bool sound = true;                  // the doctor found no failure
  std::vector<Library> libraries;
  std::string libraries_incomplete;  // why some are missing; empty if none is known to be
};

/// The comparison of a stage in two images.
struct StageComparison {
  std::string stage;
  std::string fault;          // why there is none; otherwise empty
  nlohmann::json comparison;  // graphproof-compare/1
};

/// Something that this qualification says nothing about.
struct NotShown {
  std::string what, why;
};

struct Qualification {
  std::string id, started;  // UTC
  double seconds = 0;       // from the first start to the last end, over all continuations
  std::vector<std::string> command;
  std::string device;
  std::vector<QualifiedStack> stacks;
  std::vector<Stage> stages;
  std::vector<StageComparison> comparisons;
  std::vector<NotShown> not_asked;  // stages that were not chosen or that do not exist
  bool one_node = true;             // no run had cases on more than one node
  bool interrupted = false;
  int signed_files = 0;
  std::string signature;  // SHA-256 of SHA256SUMS
};

/// Everything that was not shown, with the reason.
std::vector<NotShown> not_shown(const Qualification& qualification);
/// The strongest of the exit codes of the stages and comparisons. A stage of subjects that are not
/// installed does not count; 3 if the doctor found a failure, 4 if the stage `faults` is missing.
record::ExitCode exit_code(const Qualification& qualification);
/// The verdict in words: one sentence, or two.
std::string verdict(const Qualification& qualification);

/// graphproof-qualification/1.
nlohmann::ordered_json to_json(const Qualification& qualification);
/// The sheet for a terminal, as Markdown, and as a page without scripts, which prints to one A4
/// page for one stack. Text that came from outside is made harmless.
std::string qualification_text(const Qualification& qualification);
std::string qualification_markdown(const Qualification& qualification);
std::string qualification_page(const Qualification& qualification);

}  // namespace graphproof::reports
