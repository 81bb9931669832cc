// What matrix/tables/bad_stacks.json says of a machine or of a configuration that has not run:
// which versions are known to be bad, for which use of CUDA graphs.
#pragma once

#include <string>
#include <vector>

#include "launcher/cli/training_configuration.h"
#include "matrix/case/axes.h"
#include "matrix/catalogue/bad_stacks.h"
#include "matrix/dialect/finding.h"

namespace graphproof::cli {

/// One finding for each row that the configuration meets; undecided where a version or a use is not
/// known. A configuration that says nothing of nodes does not decide what spans them.
std::vector<dialect::Finding> bad_stacks_of(const dialect::Configuration& configuration,
                                            const matrix::BadStackTable& table);
std::vector<dialect::Finding> bad_stacks_of(const OwnCase& own, const matrix::AxisTable& axes,
                                            const matrix::BadStackTable& table);

/// What a machine with these versions must not be used for, one sentence each. Rows of components
/// whose version is not known are left out.
std::vector<std::string> bad_versions_of(const matrix::Machine& machine,
                                         const matrix::BadStackTable& table);

}  // namespace graphproof::cli
