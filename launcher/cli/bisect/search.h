// Which components of a bad stack make a case fail: a search that swaps them into a good one. Pure:
// the caller runs the case.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace graphproof::cli {

/// What the case does on a stack. `unclear`: neither, such as a machine that let it down.
enum class Outcome { good, bad, unclear, interrupted };

/// The outcome with these components of B, and all others of A.
using Probe = std::function<Outcome(const std::set<std::string>& of_b)>;

struct Culprit {
  enum class Answer {
    found,      // `components` of B make it fail in A
    both_fail,  // it fails with A too
    both_pass,  // it passes with B too
    unclear,    // a stack gave no answer
    interrupted,
  };
  Answer answer = Answer::unclear;
  /// If one component is enough by itself: every one that is. Otherwise the smallest set that was
  /// found: without any one of them the case passes.
  std::vector<std::string> components;
  bool together = false;     // they fail only together
  std::set<std::string> at;  // unclear: the components of B in the stack that gave no answer
};

/// Probes A, then B, then every component alone in A, and if none is enough, leaves one after the
/// other out of B. REQUIRES: `components` is not empty.
Culprit search(const std::vector<std::string>& components, const Probe& probe);

}  // namespace graphproof::cli
