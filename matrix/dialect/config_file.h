// Reads a configuration object from a document: Megatron-LM's TransformerConfig and its other
// config classes, or Megatron Bridge's ConfigContainer. Options may be flat or in sections, and
// enumerations may be words, `Class.word`, or {_target_, _args_} as Bridge writes them. The program
// turns YAML into such a document.
#pragma once

#include "matrix/dialect/dialect.h"
#include "matrix/dialect/finding.h"

namespace graphproof::dialect {

/// Reads a configuration. Unknown keys are counted, and those that resemble a known key are
/// findings. An object `env` has environment variables. Throws InputError if the document is not an
/// object.
Reading read_config_file(const Dialect& dialect, const matrix::Document& document);

}  // namespace graphproof::dialect
