// What nearly every file without LibTorch includes, precompiled once (graphproof.cmake). Files
// still include what they use: the header is an order to the compiler, no part of the sources.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

// Compiled once, in precompiled.cpp, instead of in every file that uses them.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;
extern template class nlohmann::detail::iter_impl<const nlohmann::json>;
extern template class nlohmann::detail::iter_impl<const nlohmann::ordered_json>;
extern template class std::vector<nlohmann::json>;
extern template class std::vector<nlohmann::ordered_json>;
extern template class std::vector<std::string>;
