// How ranks that a launcher starts before their turn are made to wait. The environment variable
// kGoVariable names a file in the batch's folder in memory, where a file costs least. The ranks
// use the device once the file with the suffix kDeviceSuffix exists, and begin their cases once the
// file itself exists.
#pragma once

namespace graphproof::record {

inline constexpr char kGoVariable[] = "GRAPHPROOF_GO";
inline constexpr char kGoFile[] = "go";
inline constexpr char kDeviceSuffix[] = ".device";

}  // namespace graphproof::record
