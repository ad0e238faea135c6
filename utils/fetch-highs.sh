#!/usr/bin/env bash
# Unpacks the HiGHS solver (MIT licence) from its PyPI wheel into a cache folder outside the build tree; quick when it is
# there. Only headers and libhighs.so are used, through the C API: the wheel's C++ ABI is not the one of Debian's compiler.
set -euo pipefail
version=1.15.1
sha256=17f30d23ef37488467732b45f141146f7c287826a576b4514ae39a8cc4068b28
target="${PLIMSOLL_HIGHS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll/highs-$version}"
[ -f "$target/lib/libhighs.so" ] && [ -f "$target/include/highs/interfaces/highs_c_api.h" ] && exit 0
echo "installing: HiGHS $version into $target" >&2
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
echo "highsbox==$version --hash=sha256:$sha256" > "$work/requirements.txt"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux2014_x86_64 \
  --require-hashes --requirement "$work/requirements.txt" --dest "$work" >&2
python3 -m zipfile -e "$work"/highsbox-*.whl "$work/unpacked"
mkdir -p "$(dirname "$target")"
staging="$(mktemp -d "$target.XXXXXX")"
dist="$work/unpacked/highsbox-$version.data/purelib/highsbox/highs_dist"
mkdir -p "$staging/lib"
cp -r "$dist/include" "$staging/include"
cp "$dist/lib/libhighs.so" "$staging/lib/"
cp "$dist/share/doc/HIGHS/LICENSE.txt" "$staging/"
chmod -R a+rX "$staging"
rm -rf "$target"
mv "$staging" "$target"
