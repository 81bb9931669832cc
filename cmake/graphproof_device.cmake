# What the rank programs are built from: LibTorch (its CPU half, and its CUDA half where there is
# one), Open MPI, the CUDA toolkit and the NCCL that PyTorch itself loads. Sets GRAPHPROOF_CUDA.
#
# LibTorch is linked by file, not through its CMake package: the package insists on a CUDA toolkit
# and runs GPU programs at configure time, and the two rank programs need different halves of it.
if(NOT GRAPHPROOF_TORCH)
  message(FATAL_ERROR "GRAPHPROOF_TORCH is not set; "
    "want the torch folder of a Python installation; "
    "next: ./graphproof sets it, or pass -DGRAPHPROOF_TORCH="
    "$(python3 -c 'import torch,os;print(os.path.dirname(torch.__file__))')")
endif()
get_filename_component(site_packages ${GRAPHPROOF_TORCH} DIRECTORY)

add_library(graphproof_torch INTERFACE)
target_include_directories(graphproof_torch SYSTEM INTERFACE
  ${GRAPHPROOF_TORCH}/include ${GRAPHPROOF_TORCH}/include/torch/csrc/api/include)
target_link_libraries(graphproof_torch INTERFACE
  ${GRAPHPROOF_TORCH}/lib/libtorch_cpu.so ${GRAPHPROOF_TORCH}/lib/libc10.so)
target_link_options(graphproof_torch INTERFACE -Wl,-rpath,${GRAPHPROOF_TORCH}/lib)

find_package(MPI REQUIRED COMPONENTS C)
add_library(graphproof_mpi INTERFACE)
target_link_libraries(graphproof_mpi INTERFACE MPI::MPI_C)

# The CUDA program is built from the headers that came with the loaded libraries, so that both
# always agree. PyTorch's wheel brings all of them but crt/ and nv/ (GRAPHPROOF_CRT has them); other
# builds of PyTorch use the installed toolkit.
set(GRAPHPROOF_CRT "" CACHE PATH
  "Folder that holds crt/host_config.h and nv/target, which a PyTorch wheel lacks")
set(GRAPHPROOF_CUDA OFF)
file(GLOB wheel_cuda ${site_packages}/nvidia/cu1*/include)
file(GLOB wheel_nccl ${site_packages}/nvidia/nccl/include)
if(EXISTS ${GRAPHPROOF_TORCH}/lib/libtorch_cuda.so)
  if(wheel_cuda)
    file(GLOB cuda_runtime ${site_packages}/nvidia/cu1*/lib/libcudart.so.*)
    set(cuda_include ${wheel_cuda} ${GRAPHPROOF_CRT})
  else()
    find_package(CUDAToolkit REQUIRED)
    set(cuda_runtime CUDA::cudart)
    set(cuda_include ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  # Exactly one libnccl may be mapped, and it is the one that PyTorch loads, never the one of the
  # default path next to that of a wheel.
  if(wheel_nccl)
    set(nccl_include ${wheel_nccl})
    set(nccl_library ${site_packages}/nvidia/nccl/lib/libnccl.so.2)
  else()
    find_path(nccl_include nccl.h REQUIRED)
    find_library(nccl_library nccl REQUIRED)
  endif()
  set(GRAPHPROOF_CUDA ON)
  add_library(graphproof_torch_cuda INTERFACE)
  target_include_directories(graphproof_torch_cuda SYSTEM INTERFACE ${nccl_include} ${cuda_include})
  # libtorch_cuda registers the CUDA kernels when it is loaded; nothing of ours need call into it.
  target_link_libraries(graphproof_torch_cuda INTERFACE graphproof_torch
    -Wl,--no-as-needed ${GRAPHPROOF_TORCH}/lib/libtorch_cuda.so -Wl,--as-needed
    ${GRAPHPROOF_TORCH}/lib/libc10_cuda.so ${nccl_library} ${cuda_runtime})
  file(GLOB wheel_libraries ${site_packages}/nvidia/*/lib)
  foreach(folder IN LISTS wheel_libraries)
    target_link_options(graphproof_torch_cuda INTERFACE -Wl,-rpath,${folder})
  endforeach()
endif()
message(STATUS "graphproof: torch ${GRAPHPROOF_TORCH}, CUDA rank program: ${GRAPHPROOF_CUDA}")

# One precompiled header for every file that includes LibTorch: 5 s instead of 15 s each.
add_library(graphproof_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/fixtures/tensors/torch.cpp)
target_link_libraries(graphproof_torch_pch PUBLIC graphproof_options graphproof_torch)
target_precompile_headers(graphproof_torch_pch PRIVATE
  ${PROJECT_SOURCE_DIR}/fixtures/tensors/torch.h
  ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)

# graphproof_torch_library(FOLDER [SOURCES files...] [LINK libraries...]): a library that includes
# LibTorch.
function(graphproof_torch_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  graphproof_add_library(${folder} TRUE "${arg_SOURCES}" "${arg_LINK}")
endfunction()

# graphproof_mpirun_test(NAME RANKS COMMAND program...): one CTest entry of several ranks. They
# yield while they wait, because four of them share two cores.
function(graphproof_mpirun_test name ranks)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "COMMAND")
  add_test(NAME ${name} COMMAND ${graphproof_mpirun} ${ranks} ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT 180 LABELS ranks
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
endfunction()
set(graphproof_mpirun
  ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n)
