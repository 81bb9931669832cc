// Which kinds of evidence lines each check reads, found out by taking them away.
#pragma once

#include <map>
#include <set>
#include <string>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::structure {

/// By check: the kinds of lines whose loss changes what the check reports of a clean attempt. A
/// kind that a check reads only of a failed attempt, such as `error`, is not among them.
std::map<std::string, std::set<std::string>> evidence_of_checks(const matrix::Catalogue& catalogue);

}  // namespace graphproof::structure
