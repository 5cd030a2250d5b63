// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/codecs/template_scan/template_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const Result<int64_t> count = template_scan_points({data, size});
  if (!count) return 0;
  std::vector<float> points(2 * size_t(*count));
  (void)decode_template_scan({data, size}, points.data());
  return 0;
}
