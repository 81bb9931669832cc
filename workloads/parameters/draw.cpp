#include "workloads/parameters/draw.h"

namespace graphproof::workloads {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// FNV-1a, 64 bits. Names differ in few characters; mix() spreads the difference over all bits.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (unsigned char byte : text) value = (value ^ byte) * 0x100000001b3;
  return value;
}

}  // namespace

Draw::Draw(std::uint64_t seed, std::string_view name)
    : key_(mix(hash(name) ^ mix(seed + kGolden))) {}

std::uint64_t Draw::bits(std::uint64_t index) const { return mix(key_ + (index + 1) * kGolden); }

float Draw::uniform(std::uint64_t index) const {
  const auto top_24_bits = static_cast<std::int64_t>(bits(index) >> 40);
  return static_cast<float>(top_24_bits - (1 << 23)) / static_cast<float>(1 << 23);
}

std::int64_t Draw::below(std::int64_t limit, std::uint64_t index) const {
  return static_cast<std::int64_t>(bits(index) % static_cast<std::uint64_t>(limit));
}

}  // namespace graphproof::workloads
