// A verb together with the options that it declares.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "launcher/cli/verb.h"

namespace graphproof::cli {

/// `app` has the options of the verb. `action` owns the variables that these write to.
struct DeclaredVerb {
  const Verb* verb;
  std::unique_ptr<CLI::App> app;
  Action action;
};

inline std::vector<DeclaredVerb> declared(std::span<const Verb> verbs) {
  std::vector<DeclaredVerb> result;
  for (const Verb& verb : verbs) {
    auto app = std::make_unique<CLI::App>(std::string(verb.meaning), std::string(verb.name));
    Action action = verb.declare(*app);
    result.push_back({&verb, std::move(app), std::move(action)});
  }
  return result;
}

}  // namespace graphproof::cli
