#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try_wheels.sh SUITE: installs the wheels of build/wheels/dist with pip in a fresh Debian of this
# suite (fresh_debian.sh) and decodes a file per codec there. NumPy comes from PyPI, or from the
# index that PIP_INDEX_URL names. Needs root.
set -euo pipefail
suite=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$PWD/build/wheels
fresh=$folder/chroots/$suite trial=$folder/chroots/$suite-trial

tools/wheels/fresh_debian.sh "$suite"
tag=$(cat "$fresh/wheel_tag")
if ! compgen -G "$folder/dist/headrace-*-$tag-*.whl" >/dev/null; then
  echo "dev: $suite needs the wheel headrace-*-$tag-*, which was not built: that Python or its" \
    "headers are missing (./dev wheels --help)" >&2
  exit 4
fi
rm -rf "$trial"
cp -a "$fresh" "$trial"
mkdir "$trial/try"
cp "$folder"/dist/{headrace-*-"$tag"-*,headrace_media-*}.whl tools/wheels/decode_samples.py "$trial/try"
cp -a "$folder/samples" "$trial/try"
# What pip needs to reach the index from here: its settings, certificates, the resolver.
cp /etc/resolv.conf /etc/hosts "$trial/etc/"
mkdir -p "$trial/etc/ssl/certs"
cp -L /etc/ssl/certs/ca-certificates.crt "$trial/etc/ssl/certs/"

cat >"$trial/try/run.sh" <<'TRIAL'
set -euo pipefail
cd /try
python3 -m venv venv
if command -v cc || command -v gcc || command -v ffmpeg; then exit 1; fi
begin=$(date +%s.%N)
venv/bin/pip install -q headrace-*.whl
venv/bin/python decode_samples.py samples --without-video
seconds=$(venv/bin/python -c "import time; print(round(time.time() - $begin, 1))")
echo "== images and audio: $seconds s from pip install to the last sample"
venv/bin/pip install -q headrace_media-*.whl
venv/bin/python decode_samples.py samples | grep -v ^library
venv/bin/python --version
du -sh venv/lib/python3*/site-packages/headrace*/ | cat
TRIAL
unshare --mount --pid --fork bash -c "mount --bind /dev '$trial/dev' && mount -t proc proc '$trial/proc' &&
  exec chroot '$trial' env -i PATH=/usr/bin:/bin HOME=/root PIP_INDEX_URL='${PIP_INDEX_URL:-}' \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt bash /try/run.sh"
