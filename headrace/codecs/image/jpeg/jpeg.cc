// SPDX-License-Identifier: Apache-2.0
// JPEG: ordinary files through our own decoder, several at once; everything unusual, and whatever
// that one finds suspicious, through libjpeg-turbo. Both give the same pixels.
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/jpeg_baseline.h"
#include "headrace/codecs/image/jpeg/jpeg_library.h"
#include "headrace/codecs/image/jpeg/jpeg_markers.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

// Note [When our decoder is not used]
// Its scalar code is there to be compared with, and is slower than libjpeg-turbo's vectors. So
// where the CPU has no level beyond it, libjpeg decodes; a level that was forced is obeyed.
bool ours_is_faster() {
  static const bool vectors = available_levels().size() > 1;
  return vectors;
}

// Pictures that decode() likes to have at once: while the last few of them end, lanes stand empty.
constexpr int kPicturesAtOnce = 16;

class JpegDecoder final : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    if (!read_jpeg_header(bytes, header_)) return library_.read_header(bytes);
    const JpegFrame& frame = header_.frame;
    ImageHeader header;
    header.width = frame.width;
    header.height = frame.height;
    header.channels = frame.count;
    header.exif_orientation = read_jpeg_markers(bytes).exif_orientation;
    header.working_bytes = JpegBaselineDecoder::working_bytes(header_, bytes.size());
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    tasks_.clear();
    for (DecodeJob& job : jobs) tasks_.push_back({.job = &job});
    if (ours_is_faster()) baseline_.decode(tasks_);
    for (const JpegBaselineDecoder::Task& task : tasks_) {
      DecodeJob& job = *task.job;
      if (task.outcome == JpegBaselineDecoder::Outcome::kDecoded) {
        job.result = {};
        job.warnings = 0;
        continue;
      }
      RemainingRows rest(job.sink, task.delivered);
      RowSink* const sink = std::exchange(job.sink, &rest);
      library_.decode(job);
      job.sink = sink;
    }
  }

  int lanes() const override { return ours_is_faster() ? kPicturesAtOnce : 1; }

  Result<std::vector<uint8_t>> row_index(std::span<const uint8_t> bytes) override {
    if (!ours_is_faster()) return std::vector<uint8_t>();
    return baseline_.row_index(bytes);
  }

  Result<std::vector<CoefficientPlane>> coefficients(std::span<const uint8_t> bytes) override {
    return library_.coefficients(bytes);
  }

 private:
  JpegHeader header_;
  JpegBaselineDecoder baseline_;
  JpegLibraryDecoder library_;
  std::vector<JpegBaselineDecoder::Task> tasks_;
};

bool is_jpeg(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

const CodecRecord kJpeg{
    .name = "jpeg",
    .doc =
        "JPEG (ISO/IEC 10918-1): baseline, extended and progressive, Huffman or arithmetic, "
        "8 bits, one, three or four components",
    .oracle =
        "libjpeg-turbo with the accurate integer IDCT, fancy upsampling and block smoothing, "
        "byte for byte; grey and CMYK conversion as Pillow",
    .suffixes = {".jpg", ".jpeg", ".jpe", ".jfif"},
    .sniff = is_jpeg,
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<JpegDecoder>(); }};
const Register<CodecRecord> registered_jpeg(kJpeg);

}  // namespace
}  // namespace headrace
