# shellcheck shell=bash disable=SC2154
# The distribution's packages. A need is looked for by what the build uses (a command, a header),
# not by who installed it. Sourced by ./graphproof, which sets `packages`, `build` and `levels`.

# One row a need: level of the set-up | where it is seen | Debian 12 package | Ubuntu 24.04 package.
# host: the host programs; ranks: the rank programs too; tests: everything that tests use.
needs='
host  | cmd:g++                             | g++                | g++
host  | cmd:cmake                           | cmake              | cmake
host  | cmd:ninja                           | ninja-build        | ninja-build
host  | cmd:ccache                          | ccache             | ccache
host  | cmd:mold                            | mold               | mold
host  | inc:nlohmann/json.hpp               | nlohmann-json3-dev | nlohmann-json3-dev
host  | inc:boost/asio.hpp                  | libboost1.81-dev   | libboost1.83-dev
host  | inc:CLI/CLI.hpp                     | libcli11-dev       | libcli11-dev
host  | inc:fmt/format.h                    | libfmt-dev         | libfmt-dev
host  | inc:openssl/sha.h                   | libssl-dev         | libssl-dev
host  | inc:zlib.h                          | zlib1g-dev         | zlib1g-dev
host  | inc:pugixml.hpp                     | libpugixml-dev     | libpugixml-dev
host  | inc:cadical.hpp,cadical/cadical.hpp | libcadical-dev     | libcadical-dev
host  | lib:libhwloc.a                      | libhwloc-dev       | libhwloc-dev
host  | lib:libsqlite3.a                    | libsqlite3-dev     | libsqlite3-dev
host  | inc:yaml-cpp/yaml.h                 | libyaml-cpp-dev    | libyaml-cpp-dev
host  | inc:gtest/gtest.h                   | libgtest-dev       | libgtest-dev
host  | inc:gmock/gmock.h                   | libgmock-dev       | libgmock-dev
host  | inc:rapidcheck.h                    | librapidcheck-dev  | librapidcheck-dev
ranks | cmd:python3                         | python3            | python3
ranks | cmd:mpirun                          | openmpi-bin        | openmpi-bin
ranks | inc:openmpi/mpi.h,mpi.h             | libopenmpi-dev     | libopenmpi-dev
tests | inc:valijson/validator.hpp          | libvalijson-dev    | libvalijson-dev
tests | cmd:chromium                        | chromium           | chromium-browser
tests | cmd:slurmctld                       | slurmctld          | slurmctld
tests | cmd:slurmd                          | slurmd             | slurmd
tests | cmd:srun                            | slurm-client       | slurm-client
tests | lib:slurm-wlm/select_cons_tres.so   | slurm-wlm-basic-plugins | =
tests | cmd:ip                              | iproute2           | iproute2
tests | cmd:xmllint                         | libxml2-utils      | libxml2-utils
tests | cmd:zsh                             | zsh                | zsh
tests | cmd:shellcheck                      | shellcheck         | shellcheck
'

present() {  # cmd:NAME, inc:HEADER[,HEADER], lib:FILE below /usr/lib/ARCHITECTURE
  local header
  case $1 in
    lib:*) compgen -G "/usr/lib/*-linux-gnu/${1#lib:}" >/dev/null ;;
    # Daemons are in sbin, which a user's PATH may lack.
    cmd:*) PATH=$PATH:/usr/sbin:/sbin command -v "${1#cmd:}" >/dev/null ;;
    inc:*)
      for header in $(tr ',' ' ' <<<"${1#inc:}"); do
        compgen -G "/usr/include/$header" >/dev/null && return 0
        compgen -G "/usr/include/*-linux-gnu/$header" >/dev/null && return 0
        compgen -G "/usr/local/include/$header" >/dev/null && return 0
        compgen -G "/usr/lib/*-linux-gnu/openmpi/include/$header" >/dev/null && return 0
      done
      return 1
      ;;
  esac
}

missing_packages() {
  local distribution level probe debian ubuntu
  # shellcheck source=/dev/null
  distribution=$(. /etc/os-release 2>/dev/null && printf '%s' "${ID:-}") || true
  while IFS='|' read -r level probe debian ubuntu; do
    level=${level//[[:space:]]/} probe=${probe//[[:space:]]/}
    debian=${debian//[[:space:]]/} ubuntu=${ubuntu//[[:space:]]/}
    [[ -n $level && " $levels " == *" $level "* ]] || continue
    present "$probe" && continue
    if [[ $distribution == ubuntu && $ubuntu != '=' ]]; then debian=$ubuntu; fi
    printf '%s\n' "$debian"
  done <<<"$needs"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

apt_install() {  # apt-get's options and packages
  local log=$build/set-up-packages.log
  : >"$log"
  # shellcheck disable=SC2094
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o APT::Status-Fd=1 install -y \
    --no-install-recommends "$@" </dev/null 2>>"$log" | show_packages "$log" || {
    tail -n 20 "$log" >&2
    fail "apt-get could not install the packages" "see the lines above" "$missing" \
      "the build needs them" "repair the package manager, then run this again"
  }
}

install_packages() {
  local missing
  missing=$(missing_packages | sort -u | tr '\n' ' ')
  if [ -z "${missing// /}" ]; then
    step 'distribution packages: all there'
    return
  fi
  step "distribution packages: installing $missing"
  command -v apt-get >/dev/null || fail "packages are missing" "no apt-get on this machine" \
    "Debian 12 or Ubuntu 24.04, or the packages installed by hand" "the build needs: $missing" \
    "install them with this distribution's package manager, then run this again"
  [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; } ||
    fail "packages are missing and this account cannot install them" \
      "user $(id -un), no password-less sudo" "root, or the packages installed" \
      "the build needs: $missing" "run once: sudo apt-get install -y $missing"
  if [ -n "$packages" ]; then
    compgen -G "$packages/*.deb" >/dev/null || fail "GRAPHPROOF_PACKAGES has no .deb file" \
      "$packages" "the packages: $missing" "an offline set-up takes everything from that folder" \
      "apt-get download them, with what they depend on, on a machine with a network"
    apt_install --no-download "$packages"/*.deb
  else
    as_root apt-get update -qq >&2
    # shellcheck disable=SC2086
    apt_install $missing
  fi
}
