// For tests.
#pragma once

#include <string>

#include "matrix/cover/files/model_file.h"

namespace graphproof::cover {

/// The model that a text in PICT's notation describes.
inline Model pict(const std::string& text) {
  return read_model(text, "m.pict", Format::pict).model;
}

}  // namespace graphproof::cover
