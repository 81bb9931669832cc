// The exit code by which a rank tells the launcher that it has ended for a reason that its evidence
// has.
#pragma once

namespace graphproof::record {

/// A case did not run to its end. The rank begins no other case, because errors of a device may be
/// sticky; the launcher starts those that are left in new processes.
inline constexpr int kExitCaseFailed = 10;

}  // namespace graphproof::record
