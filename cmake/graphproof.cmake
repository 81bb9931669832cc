# The few functions every folder uses.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(GTest REQUIRED)
find_library(GRAPHPROOF_RAPIDCHECK rapidcheck REQUIRED)

# Warnings are errors on our code; packages are SYSTEM.
add_library(graphproof_options INTERFACE)
# g++ 12 also warns where a designated initialiser leaves out a member that has no default of its
# own.
target_compile_options(graphproof_options INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers)
target_include_directories(graphproof_options INTERFACE ${PROJECT_SOURCE_DIR})
# g++ takes a source that is included by a unity source for a header, whose anonymous namespace it
# warns of.
target_compile_options(graphproof_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
# g++ collects garbage whenever its heap has grown by a share, and searches the 100 MB of a
# precompiled header (500 MB with LibTorch) each time. With this much it hardly ever does.
target_compile_options(graphproof_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=4194304>)
find_program(GRAPHPROOF_MOLD mold)
if(GRAPHPROOF_MOLD)
  target_link_options(graphproof_options INTERFACE -fuse-ld=mold)
endif()

# One precompiled header for the files without LibTorch: nlohmann/json alone is a quarter of
# compiling most of them. Those with LibTorch say TORCH and share graphproof_torch_pch
# (graphproof_device.cmake), which contains this one. Every target links the library, which holds
# the templates that the header declares as compiled elsewhere.
add_library(graphproof_json_pch STATIC ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(graphproof_json_pch PUBLIC graphproof_options nlohmann_json::nlohmann_json)
# What ccache needs to look into a precompiled header; the flag has to be the same wherever the
# header is used.
target_compile_options(graphproof_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
# g++ 12 misreads `std::string + "text"` once <string> is precompiled (gcc.gnu.org/PR105651).
target_compile_options(graphproof_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_precompile_headers(graphproof_json_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)

function(graphproof_precompile name torch)
  if(torch)
    target_precompile_headers(${name} REUSE_FROM graphproof_torch_pch)
  else()
    target_precompile_headers(${name} REUSE_FROM graphproof_json_pch)
  endif()
  target_link_libraries(${name} PRIVATE graphproof_json_pch)
endfunction()

# A folder's library is called by the folder's path: `LINK matrix/case` is the target
# graphproof_matrix_case. Sets OUTPUT to the targets of `items`; targets and files of packages stay
# as they are.
function(graphproof_targets output)
  set(targets "")
  foreach(item IN LISTS ARGN)
    if(item MATCHES "^(matrix|reports|fixtures|workloads|suites|launcher|structure)/")
      string(REPLACE "/" "_" item "graphproof_${item}")
    endif()
    list(APPEND targets ${item})
  endforeach()
  set(${output} ${targets} PARENT_SCOPE)
endfunction()

# graphproof_library(FOLDER [SOURCES files...] [LINK folders and libraries...]): without sources,
# the headers of the folder and what they need.
function(graphproof_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  graphproof_add_library(${folder} FALSE "${arg_SOURCES}" "${arg_LINK}")
endfunction()

function(graphproof_add_library folder torch sources link)
  graphproof_targets(name ${folder})
  graphproof_targets(link ${link})
  if(torch)
    list(APPEND link graphproof_torch)
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC graphproof_options nlohmann_json::nlohmann_json ${link})
    graphproof_precompile(${name} ${torch})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE graphproof_options nlohmann_json::nlohmann_json ${link})
  endif()
endfunction()

# For the loops of the covering array generator, which run for seconds where the rest of the program
# runs for milliseconds. popcount is in every x86-64 processor that a GPU is found with. A
# precompiled header fits only one set of options.
function(graphproof_optimise_loops folder)
  graphproof_targets(name ${folder})
  target_compile_options(${name} PRIVATE -O3
    $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-mpopcnt>)
  set_target_properties(${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endfunction()

# graphproof_program(NAME SOURCES files... [LINK libraries...] [TORCH]): goes to bin/.
function(graphproof_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;LINK")
  graphproof_targets(link ${arg_LINK})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE graphproof_options ${link})
  graphproof_precompile(${name} ${arg_TORCH})
endfunction()

# graphproof_test(NAME SOURCES files... [LINK libraries...] [ENVIRONMENT K=V...] [TIMEOUT_S 60]
#                 [LABELS l...] [TORCH] [WAITS])
# One GoogleTest program and one CTest entry. A test that needs ranks or the built programs says so
# in LABELS. `./graphproof test` gives two places to each core, of which a test takes both, unless
# it mostly WAITS for others.
function(graphproof_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;WAITS" "TIMEOUT_S"
    "SOURCES;LINK;ENVIRONMENT;LABELS")
  if(NOT arg_TIMEOUT_S)
    set(arg_TIMEOUT_S 60)
  endif()
  graphproof_targets(link ${arg_LINK})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE graphproof_options ${link} GTest::gtest GTest::gtest_main)
  graphproof_precompile(${name} ${arg_TORCH})
  add_test(NAME ${name} COMMAND ${name})
  set(environment GRAPHPROOF_SOURCE=${PROJECT_SOURCE_DIR} GRAPHPROOF_BIN=${PROJECT_BINARY_DIR}/bin
    ${arg_ENVIRONMENT})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT_S} LABELS "${arg_LABELS}"
    ENVIRONMENT "${environment}")
  if(NOT arg_WAITS)
    set_tests_properties(${name} PROPERTIES PROCESSORS 2)
  endif()
endfunction()

# graphproof_embed(FOLDER NAMESPACE ns [FOLDER path] FILES files...): the files' text inside the
# folder's library, so that a program can be carried to another machine alone. Defines two functions
# in a generated source; declare them where they are used. std::string_view
# ns::embedded(std::string_view name) is the text of one file, empty for an unknown name;
# std::vector<std::string_view> ns::embedded_names() lists the names in the order of FILES. Names
# are paths relative to the calling folder (or to FOLDER), or
# NAME=PATH for a file of a package.
function(graphproof_embed library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE;FOLDER" "FILES")
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  graphproof_targets(target ${library})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_embedded.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  set(inputs "")
  foreach(file IN LISTS arg_FILES)
    if(file MATCHES "=(.+)$")
      list(APPEND inputs ${CMAKE_MATCH_1})
    else()
      list(APPEND inputs ${arg_FOLDER}/${file})
    endif()
  endforeach()
  string(REPLACE ";" "|" names "${arg_FILES}")
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} -DFOLDER=${arg_FOLDER} -DNAMES=${names}
            -DNAMESPACE=${arg_NAMESPACE} -P ${script}
    DEPENDS ${inputs} ${script} VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
