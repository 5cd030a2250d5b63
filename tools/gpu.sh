# SPDX-License-Identifier: Apache-2.0
# `./dev gpu`: what is tested and measured on a machine with a GPU. Sourced by dev.
#
# The programs are built there with its nvcc, or are those that `./dev gpu --bundle` has put into
# build/gpu on another machine. That folder is not git's and travels with the checkout; it holds all
# that is needed but bash, tar, coreutils, python3 and the driver, and is taken wherever it is there.
# shellcheck shell=bash

bundle=build/gpu/bundle.tar.gz
unpacked=build/gpu/there
programs=build/release
gpu_device=cuda
gpu_steps=(start tests memcheck racecheck initcheck synccheck figures bench)

gpu_help() {
  cat <<'HELP'
usage: ./dev gpu [STEP...]
       ./dev gpu --bundle
       ./dev gpu --device cpu [STEP...]

Tests of kernels on this machine's GPU, alone and under compute-sanitizer's
tools, exactness of JPEG decoding, and figures beside their predictions.

  STEP          start, tests, memcheck, racecheck, initcheck, synccheck,
                figures, bench; default: all of them, some 30 minutes
  --bundle      for a machine without network or compiler: the programs and
                what they need into build/gpu, which travels with the checkout
  --device cpu  the same steps where there is no GPU, to see that they work
HELP
}

# The programs and the package as they are here, their libraries, compute-sanitizer: one file.
make_bundle() {
  packages "${build_packages[@]}" "${test_packages[@]}"
  requirements build
  cached cmake --preset release >/dev/null
  # shellcheck disable=SC2046
  cmake --build --preset release --target $(python tools/gpu_bundle.py --programs) -- --quiet
  rm -rf build/wheel build/gpu
  pip_here wheel -w build/wheel
  mkdir -p build/gpu
  python -m pip -q download --no-deps -d build/gpu/wheels -r tools/requirements/sanitizer.txt
  python -m pip -q install --target build/gpu/site "$(echo build/wheel/*.whl)[cli]"
  python tools/gpu_bundle.py build/release build/gpu
}

# REQUIRES: the bundle.
unpack_bundle() {
  if [[ ! -e $unpacked/contents.txt || $bundle -nt $unpacked/contents.txt ]]; then
    rm -rf "$unpacked"
    mkdir -p "$unpacked"
    tar -xzf "$bundle" -C "$unpacked" -m
  fi
  programs=$unpacked/bin
  export LD_LIBRARY_PATH=$PWD/$unpacked/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  echo "== programs of $bundle, made elsewhere:"
  sed 's/^/   /' "$unpacked/contents.txt"
}

# Whether this glibc and this driver are new enough for them.
starts() {
  "$programs/mix_rows_test" --gtest_list_tests >/dev/null
  "$programs/gpu_figures" --devices || [[ $gpu_device == cpu ]]
}

# [TOOL OPTION...]: the tests that are there for a GPU only, each program alone or under the tool.
on_gpu() {
  local program listed found='' only='*/Gpu*'
  [[ $gpu_device == cuda ]] || only='*'
  for program in "$programs"/*_test; do
    listed=$("$program" --gtest_filter="$only" --gtest_list_tests)
    [[ $listed == *$'\n  '* ]] || continue
    found=1
    echo "-- ${program##*/}"
    "$@" "$program" --gtest_filter="$only" --gtest_brief=1
  done
  [[ $found ]]
}

# Where it is: the bundle's, or one of the system.
sanitizer() {
  local own=$unpacked/compute-sanitizer/compute-sanitizer
  if [[ -x $own ]]; then echo "$own"; else command -v compute-sanitizer; fi
}

# TOOL
under_sanitizer() {
  on_gpu timeout 900 "$(sanitizer)" --tool "$1" --error-exitcode 1
}

# The package for a python3 of the version that it was made for.
bundled_python() {
  PYTHONPATH=$unpacked/site python3 -c 'import headrace._core, numpy, rich, typer' 2>/dev/null
}

# Batches have one hash, wherever they are finished and decoded.
one_hash() {
  local device=cuda path=''
  [[ $gpu_device == cuda ]] || device=host
  [[ ! -d $unpacked/site ]] || path=$unpacked/site
  PYTHONPATH=$path python3 tools/one_hash.py "$device" examples/pictures
}

gpu_step() {
  case $1 in
    start) step "the programs start here" starts ;;
    tests) step "kernels on the device" on_gpu ;;
    memcheck | racecheck | initcheck | synccheck)
      if ! sanitizer >/dev/null; then
        skipped "kernels under $1: compute-sanitizer is not there"
      elif [[ $gpu_device != cuda ]]; then
        step "compute-sanitizer starts here" "$(sanitizer)" --version
      else
        step "kernels under $1" under_sanitizer "$1"
      fi
      ;;
    figures) step "JPEG decoding: exactness, figures beside their predictions" \
      "$programs/gpu_figures" --device "$gpu_device" ;;
    bench)
      if [[ -d $unpacked/site ]] && ! bundled_python; then
        skipped "headrace bench: this python3 is not the version that the package was made for"
      else
        step "headrace bench: one hash" one_hash
      fi
      ;;
  esac
}

gpu() {
  local steps=() name
  while (($#)); do
    case $1 in
      -h | --help) gpu_help && return ;;
      --bundle) make_bundle && return ;;
      --device) gpu_device=${2:-} && shift ;;
      *)
        [[ " ${gpu_steps[*]} " == *" $1 "* ]] || { gpu_help >&2 && exit 2; }
        steps+=("$1")
        ;;
    esac
    shift
  done
  [[ $gpu_device == cuda || $gpu_device == cpu ]] || { gpu_help >&2 && exit 2; }
  ((${#steps[@]})) || steps=("${gpu_steps[@]}")
  rm -rf "$results" && mkdir -p "$results"
  if [[ $gpu_device == cuda ]] && ! has_gpu; then
    skipped "CUDA kernels on a GPU: no GPU here"
  elif [[ -e $bundle ]]; then
    unpack_bundle
    for name in "${steps[@]}"; do gpu_step "$name"; done
  elif ! has_nvcc; then
    skipped "CUDA kernels on a GPU: no nvcc here, and no $bundle (./dev gpu --bundle)"
  else
    packages "${build_packages[@]}" "${test_packages[@]}"
    requirements build
    requirements demo
    step "the engine builds without a warning" build_without_warnings
    step "CUDA kernels compile" has_kernels
    step "the figures' program builds" cmake --build --preset release --target gpu_figures -- --quiet
    step "the package builds and installs" package
    for name in "${steps[@]}"; do gpu_step "$name"; done
  fi
  python3 tools/tally.py "$results"
}
