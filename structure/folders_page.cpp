#include "structure/folders_page.h"

#include "structure/folders.h"
#include "structure/pages/markdown.h"

namespace graphproof::structure {

std::string folders_page() {
  std::string text = page_head(
      "Folders",
      "Every folder with sources: what it is for, and which folders its files may include. "
      "Whatever these may include, it may include too. Tests of a folder may include more; "
      "folders named `testing` hold fakes and other support for tests.",
      "`structure/folders.cpp`");
  text += "\n" + table_head({"folder", "what it is", "may include"});
  for (const Folder& folder : folders()) {
    std::vector<std::string> others;
    for (const std::string& other : folder.may_include) others.push_back(code(other));
    text += table_row({code(folder.path), folder.purpose, list_of(others)});
  }
  return text;
}

}  // namespace graphproof::structure
