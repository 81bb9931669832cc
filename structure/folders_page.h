// docs/reference/folders.md: the map of the tree (structure/folders.h) as a page.
#pragma once

#include <string>

namespace graphproof::structure {

std::string folders_page();

}  // namespace graphproof::structure
