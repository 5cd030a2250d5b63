#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fresh_debian.sh SUITE: installs a Debian of this suite, with python3-venv and nothing else, in
# build/wheels/chroots/SUITE, unless it is there. Fails if no wheel fits its Python. Needs root.
set -euo pipefail
suite=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$PWD/build/wheels
fresh=$folder/chroots/$suite

if [[ ! -e $fresh/complete ]]; then
  if [[ ! -e /usr/share/debootstrap/scripts/$suite ]]; then
    echo "dev: --try takes a suite of Debian; debootstrap does not know $suite" >&2
    exit 2
  fi
  echo "== a fresh Debian: $suite"
  rm -rf "$fresh"
  mirror=$(cd tools/wheels && "$folder/python/bin/python" -c 'import fetch; print(fetch.mirror())')
  debootstrap --variant=minbase --include=python3-venv "$suite" "$fresh" "$mirror"
  touch "$fresh/complete"
fi
version=$(chroot "$fresh" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version in
  3.?)
    echo "dev: no wheel fits Python $version of $suite: they are for CPython 3.10 and newer" >&2
    exit 2
    ;;
  3.1[01]) tag=cp${version/./}-cp${version/./} ;;
  *) tag=cp312-abi3 ;;
esac
echo "$tag" >"$fresh/wheel_tag"
