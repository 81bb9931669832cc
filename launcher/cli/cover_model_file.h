// The model that `cover` and `verify` work on: a PICT or ACTS model, the clause form, or a matrix
// file of ours.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>

#include "launcher/cli/verb.h"
#include "matrix/cover/files/model_file.h"

namespace graphproof::cli {

struct ModelOptions {
  std::string path, format = "auto", device = "sim";
};
void declare(CLI::App& app, ModelOptions& options);

/// Throws InputError or ReadError. A matrix file is read for this machine: what it can't run is no
/// row.
cover::ModelFile read_model_file(const ModelOptions& options, const Surroundings& surroundings);

/// {"parameter": "value"} of some cells of a row.
nlohmann::json cells_json(const cover::Model& model, const cover::Cells& cells);

}  // namespace graphproof::cli
