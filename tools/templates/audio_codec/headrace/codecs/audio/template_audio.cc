// SPDX-License-Identifier: Apache-2.0
// Audio stored as a signature and a byte per sample, 8,000 per second.
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/kernels/audio/samples.h"

namespace headrace {
namespace {

constexpr std::string_view kSignature = "HRAUDIO";

// An error code is declared where it is raised, and registers itself.
const ErrorCode kTemplateSilence{"HR9991", ErrorKind::kData, "empty template audio",
                                 "The file ends after its signature."};

class TemplateDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(const ByteRanges& file) override {
    if (file.size() <= kSignature.size()) {
      return Error{.code = &kTemplateSilence, .what = "it has no samples"};
    }
    const auto frames = static_cast<int64_t>(file.size() - kSignature.size());
    return AudioHeader{.frames = frames, .channels = 1, .sample_rate = 8000};
  }
  Result<void> decode(const AudioJob& job) override {
    const auto count = static_cast<size_t>(job.count);
    const auto samples = job.file.at(kSignature.size() + static_cast<uint64_t>(job.begin), count);
    if (!samples) return samples.error();
    samples_from_uint8(samples->data(), 1, count, job.planes);
    return {};
  }
};

const AudioCodecRecord kTemplate{
    .name = "template_audio",
    .doc = "Audio for the test of the templates.",
    .oracle = "its test",
    .suffixes = {".hrs"},
    .sniff = [](std::span<const uint8_t> bytes) { return has_text(bytes, kSignature); },
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<TemplateDecoder>(); }};
const Register<AudioCodecRecord> registered_template_audio(kTemplate);

}  // namespace
}  // namespace headrace
