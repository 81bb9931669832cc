// Tolerances of a case: by how much the tensors of each class may differ between two arms, as an
// oracle rule of a matrix file states it. The value of the axis `tolerance` is their text:
//
//   losses: rtol 1e-05 atol 1e-08; gradients: rtol 0.0001 atol 0
//
// A class that the text does not name stays bitwise. What a tolerance permits at most, whatever it
// says, is decided by the judge (suites/checks/attempt/tolerance.h).
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "matrix/input/document.h"

namespace graphproof::matrix {

/// Two elements agree if |right - left| <= atol + rtol * |left|, where left is the arm that is
/// right by definition (torch.testing.assert_close with that arm as `expected`).
struct Tolerance {
  double rtol = 0, atol = 0;
  bool operator==(const Tolerance&) const = default;
};

/// A class of compared tensors, and how their names in the evidence begin.
struct TensorClass {
  std::string_view name, prefix;
};
/// Dropout masks are in no class: they are bits, and always compared byte for byte.
inline constexpr std::array kTensorClasses = {
    TensorClass{"losses", "losses"}, TensorClass{"gradients", "grad:"},
    TensorClass{"parameters", "param:"}, TensorClass{"optimizer_state", "state:"}};

/// The class of a tensor of the evidence; empty if it is in none.
std::string_view class_of_tensor(std::string_view tensor);

/// By class.
using Tolerances = std::map<std::string, Tolerance, std::less<>>;

/// The value of the axis in a case whose arms are compared byte for byte.
inline constexpr std::string_view kBitwise = "none";

/// Reads the value of the axis; kBitwise is empty. Throws InputError for a text that states no
/// tolerance, and for a class that does not exist or is named twice.
Tolerances parse_tolerances(std::string_view text, const Origin& origin);
/// The text that parse_tolerances() reads as `tolerances`, in the order of kTensorClasses.
std::string tolerances_text(const Tolerances& tolerances);

}  // namespace graphproof::matrix
