# What the rank programs are built from: LibTorch (its CPU half, and its CUDA half where there is one), Open MPI,
# the CUDA toolkit and the NCCL that PyTorch itself loads. Sets GRAPHPROOF_CUDA.
#
# LibTorch is linked by file, not through its CMake package: the package insists on a CUDA toolkit and runs GPU
# programs at configure time, and the two rank programs need different halves of it.
if(NOT GRAPHPROOF_TORCH)
  message(FATAL_ERROR "GRAPHPROOF_TORCH is not set; want the torch folder of a Python installation; "
    "next: ./graphproof sets it, or pass -DGRAPHPROOF_TORCH=$(python3 -c 'import torch,os;print(os.path.dirname(torch.__file__))')")
endif()
get_filename_component(site_packages ${GRAPHPROOF_TORCH} DIRECTORY)

add_library(graphproof_torch INTERFACE)
target_include_directories(graphproof_torch SYSTEM INTERFACE
  ${GRAPHPROOF_TORCH}/include ${GRAPHPROOF_TORCH}/include/torch/csrc/api/include)
target_link_libraries(graphproof_torch INTERFACE
  ${GRAPHPROOF_TORCH}/lib/libtorch.so ${GRAPHPROOF_TORCH}/lib/libtorch_cpu.so ${GRAPHPROOF_TORCH}/lib/libc10.so)
target_link_options(graphproof_torch INTERFACE -Wl,-rpath,${GRAPHPROOF_TORCH}/lib)

find_package(MPI REQUIRED COMPONENTS C)
add_library(graphproof_mpi INTERFACE)
target_link_libraries(graphproof_mpi INTERFACE MPI::MPI_C)

find_package(CUDAToolkit 12.0 QUIET)
set(GRAPHPROOF_CUDA OFF)
if(CUDAToolkit_FOUND AND EXISTS ${GRAPHPROOF_TORCH}/lib/libtorch_cuda.so)
  set(GRAPHPROOF_CUDA ON)
  file(GLOB nccl_library ${site_packages}/nvidia/nccl/lib/libnccl.so.2)
  add_library(graphproof_torch_cuda INTERFACE)
  target_include_directories(graphproof_torch_cuda SYSTEM INTERFACE
    ${site_packages}/nvidia/nccl/include ${CUDAToolkit_INCLUDE_DIRS})
  file(GLOB runtime_library ${site_packages}/nvidia/*/lib/libcudart.so.*)
  target_link_libraries(graphproof_torch_cuda INTERFACE graphproof_torch
    -Wl,--no-as-needed ${GRAPHPROOF_TORCH}/lib/libtorch_cuda.so -Wl,--as-needed
    ${GRAPHPROOF_TORCH}/lib/libc10_cuda.so ${nccl_library} ${runtime_library})
  foreach(folder nccl cu13 cudnn cusparselt nvshmem)
    target_link_options(graphproof_torch_cuda INTERFACE -Wl,-rpath,${site_packages}/nvidia/${folder}/lib)
  endforeach()
endif()
message(STATUS "graphproof: torch ${GRAPHPROOF_TORCH}, CUDA rank program: ${GRAPHPROOF_CUDA}")

# One precompiled header for every file that includes LibTorch: 5 s instead of 15 s each.
add_library(graphproof_pch OBJECT ${PROJECT_SOURCE_DIR}/fixtures/torch.cpp)
target_link_libraries(graphproof_pch PUBLIC graphproof_options graphproof_torch)
target_precompile_headers(graphproof_pch PRIVATE ${PROJECT_SOURCE_DIR}/fixtures/torch.h)

# graphproof_torch_library(NAME SOURCES files... [LINK libraries...]): a library that includes LibTorch.
function(graphproof_torch_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC graphproof_options nlohmann_json::nlohmann_json ${arg_LINK} graphproof_torch)
  target_precompile_headers(${name} REUSE_FROM graphproof_pch)
endfunction()
