// Orthogonal arrays: rows in which every choice of `strength` columns has each combination of
// values exactly once. Where many parameters have about the same number of values, they need far
// fewer rows than a search that adds row after row.
#pragma once

#include <vector>

namespace graphproof::cover {

constexpr int kMostOrder = 128;  // the largest order of a finite field used here

/// The smallest prime power that is at least `least`; 0 if it exceeds kMostOrder.
int prime_power_from(int least);

/// The array of order^strength rows and order + 1 columns with values from 0 to order - 1; its
/// first row is all zeros. A row is a polynomial of degree below `strength` over the field of
/// `order` elements: its value at each element, then its leading coefficient (Bush, "Orthogonal
/// arrays of index unity", 1952). REQUIRES: a prime power; 2 <= strength <= order + 1.
std::vector<std::vector<int>> orthogonal_array(int order, int strength);

}  // namespace graphproof::cover
