// Reads a configuration object (a Megatron-LM TransformerConfig and its neighbours, or Megatron
// Bridge's ConfigContainer) from a document: flat or in sections, enumerations as words, as
// `Class.word` or as the {_target_, _args_} that Bridge writes. YAML becomes such a document in the
// program.
#pragma once

#include "matrix/dialect/dialect.h"
#include "matrix/dialect/finding.h"

namespace graphproof::dialect {

/// Keys that no option has are counted; one that resembles a known one is a finding. An object
/// `env` holds environment variables. Throws InputError where the document is no object.
Reading read_config_file(const Dialect& dialect, const matrix::Document& document);

}  // namespace graphproof::dialect
