// SPDX-License-Identifier: Apache-2.0
// How a batch kernel divides its work.
//
// A kernel is a plain struct of pointers, strides and sizes, with the members
//
//   HEADRACE_HD int64_t items() const;
//   HEADRACE_HD void operator()(int64_t item, Lane lane) const;
//
// An item is a row, or a part of one. The lanes of a warp share an item, each processing every 32nd
// element, so that adjacent lanes access adjacent memory; on the CPU one lane processes all of
// them, in a plain loop. Items and lanes may run in any order and concurrently: no two write the
// same byte, and none reads what another writes.
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"

namespace headrace {

struct Lane {
  int number = 0;  // 0 .. count - 1
  int count = 1;

  // The first element of [begin, ...) that belongs to this lane. Element i belongs to lane i %
  // count in every range. The next one is `count` further on.
  HEADRACE_HD int32_t first_from(int32_t begin) const {
    if (count == 1) return begin;
    const int32_t beyond = begin % count - number;
    return begin - beyond + (beyond > 0 ? count : 0);
  }
};

}  // namespace headrace
