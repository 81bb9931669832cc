// Names of kernels and host functions as people read them. The probe writes the names of the
// object code, because it must not allocate for them inside a capture.
#pragma once

#include <string>
#include <string_view>

namespace graphproof::checks::watched {

/// "ncclDevKernel_AllReduce_Sum_f32" for "_Z31ncclDevKernel_AllReduce_Sum_f32...": without result
/// and parameters, and at most kLongestKernelName characters long. The middle of a longer name is
/// replaced by "...": templates differ at their ends. Of a name that the probe cut, what is left is
/// read up to its template arguments; a name that is not mangled only loses its middle.
std::string readable_name(std::string_view name);

inline constexpr std::size_t kLongestKernelName = 120;

}  // namespace graphproof::checks::watched
