// SPDX-License-Identifier: Apache-2.0
// JPEG: ordinary files through our own decoder, several at once; unusual and suspicious files
// through libjpeg-turbo. Both give the same pixels.
#include <algorithm>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/decode/baseline.h"
#include "headrace/codecs/image/jpeg/decode/library.h"
#include "headrace/codecs/image/jpeg/decode/progressive.h"
#include "headrace/codecs/image/jpeg/headers/markers.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

// Note [When our decoder is not used]
// Our scalar code is a reference, and slower than libjpeg-turbo's vector code; on ARM we have not
// measured which of the two is faster. So libjpeg decodes on CPUs with only scalar code, or NEON;
// if a SIMD level is forced, our decoder is used.
bool ours_is_faster() {
  static const bool known_or_forced = [] {
    const SimdReason reason = simd_reason();
    return reason.forced || reason.best.level == SimdLevel::kAvx2 ||
           reason.best.level == SimdLevel::kAvx512;
  }();
  return known_or_forced;
}

// Number of images that decode() should get at once: lanes are idle while the last few of them
// finish.
constexpr int kImagesAtOnce = 16;

class JpegDecoder final : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    if (!read_jpeg_header(bytes, header_)) return read_other_header(bytes);
    const JpegFrame& frame = header_.frame;
    ImageHeader header;
    header.width = frame.width;
    header.height = frame.height;
    header.channels = frame.count;
    header.inks = frame.count == 4;
    header.exif_orientation = read_jpeg_markers(bytes).exif_orientation;
    header.working_bytes = JpegBaselineDecoder::working_bytes(header_, bytes.size());
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    tasks_.clear();
    for (DecodeJob& job : jobs) tasks_.push_back({.job = &job});
    if (ours_is_faster()) baseline_.decode(tasks_);
    for (JpegBaselineDecoder::Task& task : tasks_) {
      const bool untouched =
          task.outcome == JpegBaselineDecoder::Outcome::kRefused && task.delivered == 0;
      if (ours_is_faster() && untouched) progressive_.decode(task);
      DecodeJob& job = *task.job;
      if (task.outcome == JpegBaselineDecoder::Outcome::kDecoded) {
        job.result = {};
        job.warnings = 0;
        continue;
      }
      progressive_.free();  // frees our attempt's memory before libjpeg allocates as much
      RemainingRows rest(job.sink, task.delivered);
      RowSink* const sink = std::exchange(job.sink, &rest);
      library_.decode(job);
      job.sink = sink;
    }
  }

  int lanes() const override { return ours_is_faster() ? kImagesAtOnce : 1; }

  Result<std::vector<uint8_t>> row_index(std::span<const uint8_t> bytes) override {
    if (!ours_is_faster()) return std::vector<uint8_t>();
    return baseline_.row_index(bytes);
  }

  Result<std::vector<CoefficientPlane>> coefficients(std::span<const uint8_t> bytes) override {
    return library_.coefficients(bytes);
  }

 private:
  // Progressive files keep all coefficients when libjpeg decodes them, which it does for damaged
  // ones; our own attempt's memory has been freed by then.
  Result<ImageHeader> read_other_header(std::span<const uint8_t> bytes) {
    Result<ImageHeader> header = library_.read_header(bytes);
    if (header) {
      const size_t ours = JpegProgressiveDecoder::working_bytes(bytes.size(), header->width);
      header->working_bytes = std::max(header->working_bytes, ours);
    }
    return header;
  }

  JpegHeader header_;
  JpegBaselineDecoder baseline_;
  JpegProgressiveDecoder progressive_;
  JpegLibraryDecoder library_;
  std::vector<JpegBaselineDecoder::Task> tasks_;
};

bool is_jpeg(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

const CodecRecord kJpeg{
    .name = "jpeg",
    .doc =
        "JPEG (ISO/IEC 10918-1): baseline, extended and progressive, Huffman or arithmetic; 8 "
        "bits; one, three or four components",
    .oracle =
        "libjpeg-turbo with the accurate integer IDCT, fancy upsampling and block smoothing, "
        "byte for byte; gray and CMYK conversion as Pillow",
    .suffixes = {".jpg", ".jpeg", ".jpe", ".jfif"},
    .sniff = is_jpeg,
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<JpegDecoder>(); },
    .opaque = true};
const Register<CodecRecord> registered_jpeg(kJpeg);

}  // namespace
}  // namespace headrace
