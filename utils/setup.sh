#!/usr/bin/env bash
# Installs what a build needs: Debian packages, and the HiGHS solver from PyPI (fetch-highs.sh). Quick when everything is
# there. Arguments: extra packages.
set -euo pipefail
packages=(g++ cmake ninja-build ccache python3 python3-pip libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools liblld-22-dev
  flatbuffers-compiler libflatbuffers-dev libonnx-dev libprotobuf-dev protobuf-compiler libdnnl-dev libcli11-dev
  libfmt-dev libtomlplusplus-dev nlohmann-json3-dev libxxhash-dev zlib1g-dev libzstd-dev libgtest-dev libgmock-dev "$@")
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -ne 0 ]; then
  echo "installing: ${missing[*]}" >&2
  as_root=(); [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
"$(dirname "$0")/fetch-highs.sh"
