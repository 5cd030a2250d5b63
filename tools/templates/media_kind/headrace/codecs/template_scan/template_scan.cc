// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/template_scan/template_scan.h"

#include <algorithm>
#include <string_view>

namespace headrace {
namespace {

const ErrorCode kTemplateScan{"HR9991", ErrorKind::kData, "damaged template scan",
                              "The file has fewer points than its header declares."};

constexpr std::string_view kSignature = "HRSCAN";

}  // namespace

bool begins_like_template_scan(std::span<const uint8_t> first_bytes) {
  return first_bytes.size() >= kSignature.size() &&
         std::equal(kSignature.begin(), kSignature.end(), first_bytes.begin());
}

Result<int64_t> template_scan_points(std::span<const uint8_t> file) {
  if (!begins_like_template_scan(file) || file.size() == kSignature.size()) {
    return Error{.code = &kTemplateScan, .what = "the header is incomplete"};
  }
  return int64_t{file[kSignature.size()]};
}

Result<void> decode_template_scan(std::span<const uint8_t> file, float* points) {
  const Result<int64_t> count = template_scan_points(file);
  if (!count) return count.error();
  const std::span<const uint8_t> stored = file.subspan(kSignature.size() + 1);
  if (stored.size() < 2 * size_t(*count)) {
    return Error{.code = &kTemplateScan, .what = "it ends before its last point"};
  }
  std::copy_n(stored.begin(), 2 * *count, points);
  return {};
}

}  // namespace headrace
