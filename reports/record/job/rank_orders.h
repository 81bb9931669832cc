// The files by which a launcher directs the ranks of a batch. They are in the batch's folder in
// memory, where a file costs least, and environment variables name them.
//
// Ranks that are started before their turn use the device once the file of kGoVariable with the
// suffix kDeviceSuffix exists, and begin their cases once the file itself exists. Once the file of
// kStopVariable exists, ranks begin no other case: they end by themselves when the case in progress
// has ended. Rank 0 looks for it ahead of each case and tells the others.
#pragma once

namespace graphproof::record {

inline constexpr char kGoVariable[] = "GRAPHPROOF_GO";
inline constexpr char kGoFile[] = "go";
inline constexpr char kDeviceSuffix[] = ".device";

inline constexpr char kStopVariable[] = "GRAPHPROOF_STOP";
inline constexpr char kStopFile[] = "stop";

}  // namespace graphproof::record
