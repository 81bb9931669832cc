# Reads the table of checks, matrix/tables/checks.json: which files hold checks, and the names of
# their functions. A new check is a row of the table, its code and its test; no other list names it.

# graphproof_read_checks(NAMES CODES): sets both to lists in the order of the table: DETECTOR.fact
# and the file in suites/checks.
function(graphproof_read_checks names codes)
  set(table ${PROJECT_SOURCE_DIR}/matrix/tables/checks.json)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  file(READ ${table} text)
  string(REGEX REPLACE "(^|\n)//[^\n]*" "\\1" text "${text}")
  string(JSON last LENGTH "${text}" checks)
  math(EXPR last "${last} - 1")
  foreach(index RANGE ${last})
    string(JSON name GET "${text}" checks ${index} check)
    string(JSON code GET "${text}" checks ${index} code)
    list(APPEND all_names ${name})
    list(APPEND all_codes ${code})
  endforeach()
  set(${names} ${all_names} PARENT_SCOPE)
  set(${codes} ${all_codes} PARENT_SCOPE)
endfunction()

# graphproof_write_check_list(OUTPUT): writes a C++ source that defines checks::all_checks(). A row
# without a function is a link error.
function(graphproof_write_check_list output)
  graphproof_read_checks(names codes)
  set(declared "")
  set(rows "")
  foreach(name IN LISTS names)
    string(REGEX MATCH "^(D[0-9]+)\\.(.+)$" whole ${name})
    string(TOLOWER ${CMAKE_MATCH_1} detector)
    set(fact ${CMAKE_MATCH_2})
    string(APPEND declared "namespace ${detector} {\n"
      "record::CheckResult ${fact}(Judgement& judgement, const Attempt& attempt);\n}\n")
    string(APPEND rows "      {\"${name}\", ${detector}::${fact}},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"// Made by cmake/checks.cmake from matrix/tables/checks.json.
#include \"suites/checks/check_table.h\"

namespace graphproof::checks {

@declared@
std::span<const Check> all_checks() {
  static constexpr Check kChecks[] = {
@rows@  };
  return kChecks;
}

}  // namespace graphproof::checks
")
endfunction()

# graphproof_checks([SOURCES files...] [TESTS files...] [LINK folders...]): defines the library and
# the tests of the calling folder of suites/checks. They consist of the code of the checks that the
# table places there, the test of each such file, and the files that are listed here.
function(graphproof_checks)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SOURCES;TESTS;LINK")
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/suites/checks ${CMAKE_CURRENT_SOURCE_DIR})
  graphproof_read_checks(names codes)
  list(FILTER codes INCLUDE REGEX "^${folder}/")
  list(REMOVE_DUPLICATES codes)
  foreach(code IN LISTS codes)
    get_filename_component(file ${code} NAME_WE)
    list(APPEND arg_SOURCES ${file}.cpp)
    list(APPEND arg_TESTS ${file}_test.cpp)
  endforeach()
  graphproof_library(suites/checks/${folder} SOURCES ${arg_SOURCES} LINK ${arg_LINK})
  graphproof_check_tests(${arg_TESTS})
endfunction()
