#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try_wheels.sh SUITE: installs the wheels of build/wheels/dist with pip in a fresh Debian of this
# suite (trixie, sid), which has python3-venv and nothing else, and decodes a file per codec there.
# NumPy comes from PyPI, or from the index that PIP_INDEX_URL names. Needs root.
set -euo pipefail
suite=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$PWD/build/wheels
fresh=$folder/chroots/$suite trial=$folder/chroots/$suite-trial

if [[ ! -e $fresh/complete ]]; then
  rm -rf "$fresh"
  mirror=$(cd tools/wheels && "$folder/python/bin/python" -c 'import fetch; print(fetch.mirror())')
  debootstrap --variant=minbase --include=python3-venv "$suite" "$fresh" "$mirror"
  touch "$fresh/complete"
fi
rm -rf "$trial"
cp -a "$fresh" "$trial"
mkdir "$trial/try"
cp "$folder"/dist/*.whl tools/wheels/decode_samples.py "$trial/try"
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
venv/bin/pip install -q headrace-*-cp312-abi3-*.whl
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
