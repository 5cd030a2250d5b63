// SPDX-License-Identifier: Apache-2.0
// A picture stored as a signature, a byte for its width, one for its height, and a byte per pixel.
#include <algorithm>
#include <cstring>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"

namespace headrace {
namespace {

// An error code is declared where it is raised, and registers itself.
const ErrorCode kTemplateDamage{"HR9990", ErrorKind::kData, "damaged template picture",
                                "The file has fewer pixels than its header declares."};

constexpr char kSignature[] = "HRTEMPLATE";
constexpr size_t kHeader = sizeof kSignature - 1 + 2;

class TemplateDecoder final : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    if (bytes.size() < kHeader || bytes[kHeader - 2] == 0 || bytes[kHeader - 1] == 0) {
      return Error{.code = &kTemplateDamage, .what = "the header is incomplete"};
    }
    return ImageHeader{.width = bytes[kHeader - 2], .height = bytes[kHeader - 1], .channels = 1};
  }
  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(DecodeJob& job) {
    const size_t width = job.bytes[kHeader - 2], height = job.bytes[kHeader - 1];
    if (job.bytes.size() - kHeader < width * height) {
      return Error{.code = &kTemplateDamage, .what = "it ends before its last pixel"};
    }
    row_.resize(size_t(job.window.width) + 64);
    for (int y = 0; y < job.window.height; ++y) {
      const size_t at = kHeader + size_t(job.window.y + y) * width + size_t(job.window.x);
      std::copy_n(job.bytes.data() + at, job.window.width, row_.data());
      RowBlock block{.y = y, .count = 1, .step = 1, .stride = job.window.width};
      block.channel.fill(row_.data());  // gray, whatever is requested
      job.sink->rows(block);
    }
    job.warnings = 0;
    return {};
  }
  std::vector<uint8_t> row_;
};

const CodecRecord kTemplate{
    .name = "template_codec",
    .doc = "Pictures for the test of the templates.",
    .oracle = "its test",
    .suffixes = {".hrt"},
    .sniff =
        [](std::span<const uint8_t> bytes) {
          return bytes.size() >= kHeader - 2 && !std::memcmp(bytes.data(), kSignature, kHeader - 2);
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<TemplateDecoder>(); }};
const Register<CodecRecord> registered_template_codec(kTemplate);

}  // namespace
}  // namespace headrace
