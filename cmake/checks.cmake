# Reads the table of checks, matrix/tables/checks.json: which files hold checks, and the names of
# their functions. A new check is a row of the table, its code and its test; no other list names it.
# A row has a form for cases (its member "code"), one for watched runs ("watched"), or both.

# graphproof_read_checks(NAMES CODES FORM): sets both to lists in the order of the table:
# DETECTOR.fact, and the file in suites/checks (FORM cases) or suites/checks/watched (FORM watched).
# Rows without that form are left out.
function(graphproof_read_checks names codes form)
  set(table ${PROJECT_SOURCE_DIR}/matrix/tables/checks.json)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  set(member code)
  if(form STREQUAL watched)
    set(member watched code)
  endif()
  file(READ ${table} text)
  string(REGEX REPLACE "(^|\n)//[^\n]*" "\\1" text "${text}")
  string(JSON last LENGTH "${text}" checks)
  math(EXPR last "${last} - 1")
  foreach(index RANGE ${last})
    string(JSON name GET "${text}" checks ${index} check)
    string(JSON code ERROR_VARIABLE absent GET "${text}" checks ${index} ${member})
    if(absent STREQUAL NOTFOUND)
      list(APPEND all_names ${name})
      list(APPEND all_codes ${code})
    endif()
  endforeach()
  set(${names} ${all_names} PARENT_SCOPE)
  set(${codes} ${all_codes} PARENT_SCOPE)
endfunction()

# graphproof_write_check_list(OUTPUT FORM): writes a C++ source that defines the list of the checks
# of a form: checks::all_checks(), or checks::watched::all_watched_checks(). A row without a
# function is a link error.
function(graphproof_write_check_list output form)
  graphproof_read_checks(names codes ${form})
  if(form STREQUAL watched)
    set(space graphproof::checks::watched)
    set(header suites/checks/watched/watched_check_table.h)
    set(arguments "WatchedJudgement& judgement, const WatchedJob& job")
    set(type WatchedCheck)
    set(list all_watched_checks)
  else()
    set(space graphproof::checks)
    set(header suites/checks/check_table.h)
    set(arguments "Judgement& judgement, const Attempt& attempt")
    set(type Check)
    set(list all_checks)
  endif()
  set(declared "")
  set(rows "")
  foreach(name IN LISTS names)
    string(REGEX MATCH "^(D[0-9]+)\\.(.+)$" whole ${name})
    string(TOLOWER ${CMAKE_MATCH_1} detector)
    set(fact ${CMAKE_MATCH_2})
    string(APPEND declared "namespace ${detector} {\n"
      "record::CheckResult ${fact}(${arguments});\n}\n")
    string(APPEND rows "      {\"${name}\", ${detector}::${fact}},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"// Made by cmake/checks.cmake from matrix/tables/checks.json.
#include \"@header@\"

namespace @space@ {

@declared@
std::span<const @type@> @list@() {
  static constexpr @type@ kChecks[] = {
@rows@  };
  return kChecks;
}

}  // namespace @space@
")
endfunction()

# graphproof_checks([WATCHED] [SOURCES files...] [TESTS files...] [LINK folders...]): defines the
# library and the tests of the calling folder of suites/checks, or of suites/checks/watched. They
# consist of the code of the checks that the table places there, the test of each such file, and the
# files that are listed here.
function(graphproof_checks)
  cmake_parse_arguments(PARSE_ARGV 0 arg "WATCHED" "" "SOURCES;TESTS;LINK")
  set(root suites/checks)
  set(form cases)
  if(arg_WATCHED)
    set(root suites/checks/watched)
    set(form watched)
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/${root} ${CMAKE_CURRENT_SOURCE_DIR})
  graphproof_read_checks(names codes ${form})
  list(FILTER codes INCLUDE REGEX "^${folder}/")
  list(REMOVE_DUPLICATES codes)
  foreach(code IN LISTS codes)
    get_filename_component(file ${code} NAME_WE)
    list(APPEND arg_SOURCES ${file}.cpp)
    list(APPEND arg_TESTS ${file}_test.cpp)
  endforeach()
  graphproof_library(${root}/${folder} SOURCES ${arg_SOURCES} LINK ${arg_LINK})
  if(arg_WATCHED)
    graphproof_watched_check_tests(${arg_TESTS})
  else()
    graphproof_check_tests(${arg_TESTS})
  endif()
endfunction()
