// SPDX-License-Identifier: Apache-2.0
// Concatenates byte vectors with +, for the files that tests write.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::bytes_test {

using Bytes = std::vector<uint8_t>;

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace headrace::bytes_test
