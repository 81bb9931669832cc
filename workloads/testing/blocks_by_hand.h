// Numbers with a scale for each block, computed without a kernel: number by number, each the
// nearest in a list of all that there are. For tests of workloads/scaled_products and of what uses
// it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// The numbers of e4m3 that are not negative, in the order of their bytes.
inline std::vector<double> all_of_e4m3() {
  std::vector<double> all;
  for (int byte = 0; byte < 127; ++byte)
    all.push_back(byte < 8 ? std::ldexp(byte, -9) : std::ldexp(8 + byte % 8, byte / 8 - 10));
  return all;
}
inline const std::vector<double> kAllOfE2m1{0, 0.5, 1, 1.5, 2, 3, 4, 6};

/// The entry of `all` that is nearest to `value`; of two the one at an even place.
inline double nearest(double value, const std::vector<double>& all) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double here = std::abs(all[i] - std::abs(value)),
                 there = std::abs(all[best] - std::abs(value));
    if (here < there || (here == there && i % 2 == 0)) best = i;
  }
  return std::copysign(all[best], value);
}

/// x [R, C] fp32 as mxfp8, or as nvfp4 with one scale for 16 numbers in a row or for a square of
/// them, and back: [R, C] fp64.
inline at::Tensor blocks_by_hand(const at::Tensor& x, bool nvfp4, bool squares = false) {
  const std::vector<double> e4m3 = all_of_e4m3();
  const std::int64_t rows = x.size(0), columns = x.size(1), wide = nvfp4 ? 16 : 32,
                     high = squares ? 16 : 1;
  const at::Tensor result = at::zeros({rows, columns}, at::kDouble);
  const at::Tensor from = x.contiguous();
  const float* in = from.const_data_ptr<float>();
  double* out = result.mutable_data_ptr<double>();
  const float all = from.abs().max().item<float>();
  const float encode = 2688.0f / all, decode = 1.0f / encode;
  for (std::int64_t top = 0; top < rows; top += high)
    for (std::int64_t left = 0; left < columns; left += wide) {
      const auto each = [&](auto visit) {
        for (std::int64_t r = top; r < std::min(rows, top + high); ++r)
          for (std::int64_t c = left; c < std::min(columns, left + wide); ++c)
            visit(r * columns + c);
      };
      float largest = 0;
      each([&](std::int64_t i) { largest = std::max(largest, std::abs(in[i])); });
      if (largest == 0) continue;
      if (nvfp4) {
        const auto scale =
            static_cast<float>(nearest(std::min(448.0f, largest * (encode * (1.0f / 6.0f))), e4m3));
        const float factor = 1.0f / (scale * decode);
        each([&](std::int64_t i) {
          out[i] = nearest(std::clamp(in[i] * factor, -6.0f, 6.0f), kAllOfE2m1) * scale *
                   static_cast<double>(decode);
        });
      } else {
        double scale = std::ldexp(1.0, -127);
        while (scale < largest * (1.0f / 448.0f)) scale *= 2;
        each([&](std::int64_t i) {
          out[i] = nearest(std::clamp(in[i] / scale, -448.0, 448.0), e4m3) * scale;
        });
      }
    }
  return result;
}

}  // namespace graphproof::workloads
