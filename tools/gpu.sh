# SPDX-License-Identifier: Apache-2.0
# `./dev gpu`: tests and measurements on a machine with a GPU. Sourced by dev.
#
# The programs are built there with its nvcc, or were put into build/gpu by `./dev gpu --bundle` on
# another machine. That folder is ignored by git and is copied along with the checkout; it contains
# everything needed except bash, tar, coreutils, python3 and the driver, and is used if it exists.
# shellcheck shell=bash

bundle=build/gpu/bundle.tar.gz
unpacked=build/gpu/there
programs=build/release
gpu_device=cuda
gpu_photos=''
gpu_steps=(start tests memcheck racecheck initcheck synccheck figures bench loaders)
gpu_usual=(start tests memcheck racecheck figures bench loaders) # five minutes on an H100
# What these tools check in that time; the others, and these two when given alone, check all
# programs.
declare -A gpu_quick=(
  [memcheck]='stream_test device_finisher_test picture_batch_test resize_batch_test loader_finish_test'
  [racecheck]='stream_test resize_batch_test'
)

gpu_help() {
  cat <<'HELP'
usage: ./dev gpu [--photos FOLDER] [STEP...]
       ./dev gpu [--photos FOLDER] --bundle
       ./dev gpu --device cpu [STEP...]

Tests of kernels on this machine's GPU, alone and under compute-sanitizer's
tools, exactness of JPEG decoding, and figures next to their predictions: of
kernels, of whole loaders, and of other decoders that are installed there.

  STEP             start, tests, memcheck, racecheck, initcheck, synccheck,
                   figures, bench, loaders; default: all but initcheck and
                   synccheck, memcheck and racecheck of a few programs: about
                   five minutes. Named alone, each checks all programs
  --photos FOLDER  JPEGs for figures and loaders; default: generated images and
                   examples/images
  --bundle         for a machine without network or compiler: the programs and
                   what they need into build/gpu, which travels with a checkout
  --device cpu     the same steps where there is no GPU, to see that they work
HELP
}

# The locally built programs and package, their libraries, and compute-sanitizer, in one file.
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
  # shellcheck disable=SC2086
  python tools/gpu_bundle.py build/release build/gpu $gpu_photos
}

# REQUIRES: the bundle.
unpack_bundle() {
  if [[ ! -e $unpacked/contents.txt || $bundle -nt $unpacked/contents.txt ]]; then
    rm -rf "$unpacked"
    mkdir -p "$unpacked"
    tar -xzf "$bundle" -C "$unpacked" -m
  fi
  programs=$unpacked/bin
  [[ $gpu_photos || ! -d $unpacked/photos ]] || gpu_photos=$unpacked/photos
  export LD_LIBRARY_PATH=$PWD/$unpacked/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  echo "== programs of $bundle, made elsewhere:"
  sed 's/^/   /' "$unpacked/contents.txt"
}

# [COMMAND...]: runs one of the programs with the compiler libraries that it was linked with; a
# Python on that machine has its own.
program() {
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$PWD/$unpacked/lib/compiler "$@"
}

# Whether this machine's glibc and driver are new enough for them.
starts() {
  program "$programs/mix_rows_test" --gtest_list_tests >/dev/null
  program "$programs/gpu_figures" --devices || [[ $gpu_device == cpu ]]
}

# NAMES [TOOL OPTION...]: runs the GPU-only tests of these programs or of all, each alone or under
# the tool.
on_gpu() {
  local path listed found='' only='*/Gpu*' names=" $1 "
  shift
  [[ $gpu_device == cuda ]] || only='*'
  for path in "$programs"/*_test; do
    [[ $names == '  ' || $names == *" ${path##*/} "* ]] || continue
    listed=$(program "$path" --gtest_filter="$only" --gtest_list_tests)
    [[ $listed == *$'\n  '* ]] || continue
    found=1
    echo "-- ${path##*/}"
    program "$@" "$path" --gtest_filter="$only" --gtest_brief=1
  done
  [[ $found ]]
}

# Its location: in the bundle, or installed.
sanitizer() {
  local own=$unpacked/compute-sanitizer/compute-sanitizer
  if [[ -x $own ]]; then echo "$own"; else command -v compute-sanitizer; fi
}

# TOOL NAMES
under_sanitizer() {
  on_gpu "$2" timeout 900 "$(sanitizer)" --tool "$1" --error-exitcode 1
}

# [ARGUMENT...]: python3 with the package, the bundle's if there is one.
python_here() {
  local path=${PYTHONPATH:-}
  [[ ! -d $unpacked/site ]] || path=$PWD/$unpacked/site${path:+:$path}
  PYTHONPATH=$path python3 "$@"
}

# NAME MODULE... -- ARGUMENT...: runs a script as a step, if the package and these modules are
# available.
python_step() {
  local name=$1 modules=()
  shift
  while [[ $1 != -- ]]; do modules+=("$1") && shift; done
  shift
  if ! python_here -c 'import headrace._core' 2>/dev/null; then
    skipped "$name: this python3 is of no version that the package was made for"
  elif ! python_here -c "import $(IFS=, && echo "${modules[*]}")" 2>/dev/null; then
    skipped "$name: this python3 lacks one of ${modules[*]}"
  else
    step "$name" with_figures "${name%%[ ,:]*}" python_here "$@"
  fi
}

# NAME COMMAND...: shows its output, and keeps its figures for the table.
with_figures() {
  "${@:2}" | tee "$results/$1.figures"
}

# Steps, and figures with their predictions: all results of this run in one table.
gpu_table() {
  local kind status name line
  printf '\n%-54s %12s %12s\n' 'on this machine' measured predicted
  while read -r kind status name; do
    case $kind in
      step) printf '%-54s %12s %12s\n' "${name%%:*}" "$([[ $status == 0 ]] && echo passed || echo FAILED)" passed ;;
      skip) printf '%-54s %12s %12s\n' "skipped: ${name%%:*}" - - ;;
    esac
  done <"$results/steps.txt"
  while IFS= read -r line; do
    if [[ $line =~ ^([^ ].*[^ ])\ +([0-9.]+)\ +([0-9.]+|-)\ \ (.*)$ ]]; then
      printf '%-54s %12s %12s  %s\n' "${BASH_REMATCH[@]:1}"
    fi
  done < <(cat "$results"/*.figures 2>/dev/null)
}

gpu_step() {
  case $1 in
    start) step "the programs start here" starts ;;
    tests) step "kernels on the device" on_gpu '' ;;
    memcheck | racecheck | initcheck | synccheck)
      if ! sanitizer >/dev/null; then
        skipped "kernels under $1: compute-sanitizer is not there"
      elif [[ $gpu_device != cuda ]]; then
        step "compute-sanitizer starts here" "$(sanitizer)" --version
      else
        step "kernels under $1" under_sanitizer "$1" "$2"
      fi
      ;;
    figures) # shellcheck disable=SC2086
      step "JPEG decoding: exactness, figures beside their predictions" \
        with_figures figures program "$programs/gpu_figures" --device "$gpu_device" $gpu_photos
      ;;
    bench)
      python_step "headrace bench: one hash" numpy rich typer -- \
        tools/one_hash.py "${gpu_device/cpu/host}" examples/images
      ;;
    loaders)
      python_step "whole loaders, beside their predictions and their peers" numpy torch -- \
        bench/gpu_loaders.py "${gpu_photos:-examples/images}" build/gpu/loaders \
        --device "$gpu_device"
      ;;
  esac
}

gpu() {
  local steps=() name bundling=''
  while (($#)); do
    case $1 in
      -h | --help) gpu_help && return ;;
      --bundle) bundling=1 ;;
      --photos) gpu_photos=${2:-} && shift ;;
      --device) gpu_device=${2:-} && shift ;;
      *)
        [[ " ${gpu_steps[*]} " == *" $1 "* ]] || { gpu_help >&2 && exit 2; }
        steps+=("$1")
        ;;
    esac
    shift
  done
  [[ $gpu_device == cuda || $gpu_device == cpu ]] || { gpu_help >&2 && exit 2; }
  [[ ! $gpu_photos || -d $gpu_photos ]] || { echo "no folder: $gpu_photos" >&2 && exit 2; }
  if [[ $bundling ]]; then
    make_bundle
    return
  fi
  if ((${#steps[@]})); then gpu_quick=(); else steps=("${gpu_usual[@]}"); fi
  rm -rf "$results" && mkdir -p "$results"
  if [[ $gpu_device == cuda ]] && ! has_gpu; then
    skipped "CUDA kernels on a GPU: no GPU here"
  elif [[ -e $bundle ]]; then
    unpack_bundle
    for name in "${steps[@]}"; do gpu_step "$name" "${gpu_quick[$name]:-}"; done
  elif ! has_nvcc; then
    skipped "CUDA kernels on a GPU: no nvcc here, and no $bundle (./dev gpu --bundle)"
  else
    packages "${build_packages[@]}" "${test_packages[@]}"
    requirements build
    requirements demo
    step "the engine builds without warnings" build_without_warnings
    step "CUDA kernels compile" has_kernels
    step "the figures' program builds" cmake --build --preset release --target gpu_figures -- --quiet
    step "the package builds and installs" package
    for name in "${steps[@]}"; do gpu_step "$name" "${gpu_quick[$name]:-}"; done
  fi
  gpu_table
  python3 tools/tally.py "$results"
}
