// SPDX-License-Identifier: Apache-2.0
// The largest size in whole patches that fits into a sequence, as timm's NaFlex computes it.
#pragma once

#include <cstdint>

#include "headrace/base/registry.h"
#include "headrace/image/recipe.h"
#include "headrace/ops/op.h"

namespace headrace {

struct Sequence {
  int64_t patch, patches;
  double ratio_at_most;  // infinity: no limit
};

struct PatchedSize {
  int64_t height, width;
};

PatchedSize size_for_sequence(const Sequence& sequence, int64_t height, int64_t width);

Param sequence_patch_param();
Param max_seq_len_param();

}  // namespace headrace
