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
