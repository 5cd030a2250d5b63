// SPDX-License-Identifier: Apache-2.0
// Names the tests that run once per SIMD level: Levels/Rows.Copy/avx2.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "headrace/kernels/dispatch.h"

namespace headrace {

inline std::string level_name(const testing::TestParamInfo<SimdLevel>& info) {
  return std::string(name_of(info.param));
}

}  // namespace headrace
