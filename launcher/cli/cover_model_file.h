// The model file of `cover` and `verify`: a PICT model, an ACTS model, clauses in JSON, or a matrix
// file of graphproof.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>

#include "launcher/cli/verb.h"
#include "matrix/cover/files/model_file.h"

namespace graphproof::cli {

/// The options that name a model.
struct ModelOptions {
  std::string path, format = "auto", device = "sim";
};
void declare(CLI::App& app, ModelOptions& options);

/// Throws InputError or ReadError. A matrix file is read for this machine: a combination that the
/// machine cannot run is forbidden.
cover::ModelFile read_model_file(const ModelOptions& options, const Surroundings& surroundings);

/// Some cells of a row as {"parameter": "value"}.
nlohmann::json cells_json(const cover::Model& model, const cover::Cells& cells);

}  // namespace graphproof::cli
