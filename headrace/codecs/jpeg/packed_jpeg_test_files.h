// SPDX-License-Identifier: Apache-2.0
// For tests: the decoder of packed pictures, with the caller's duties around it.
#pragma once

#include "headrace/codecs/jpeg/jpeg_test_pictures.h"

namespace headrace::jpeg_test {

// As Decoder, for packed bytes. They end where their padding ends, so that the address sanitizer
// sees who reads on.
class PackedDecoder {
 public:
  PackedDecoder() : decoder_(codec()->make()) {}
  static const CodecRecord* codec() {
    static constexpr uint8_t kSignature[] = {0x8A, 'H', 'R', 'P', 'J', '\r', '\n', 0x1A};
    return codec_of(kSignature);
  }
  Result<ImageHeader> header(const Bytes& bytes) { return decoder_->read_header(padded(bytes)); }
  Pixels window(const Bytes& bytes, const Window& window, ColorMode color = ColorMode::kRGB,
                int channels = 3, bool strict = false) {
    Collector sink(window.width, window.height, channels);
    DecodeJob job;
    job.bytes = padded(bytes);
    job.window = window;
    job.color = color;
    job.strict = strict;
    job.sink = &sink;
    decoder_->decode({&job, 1});
    last_error = job.result ? Error{} : std::move(job.result.error());
    Pixels out = std::move(sink.pixels);
    out.ok = job.result.has_value() && sink.complete();
    out.error = out.ok ? "" : last_error.message();
    return out;
  }
  Pixels whole(const Bytes& bytes, ColorMode color = ColorMode::kRGB, bool strict = false) {
    const Result<ImageHeader> read = header(bytes);
    if (!read) return Pixels{.error = read.error().message()};
    const Window all{0, 0, read->width, read->height};
    return window(bytes, all, color, channels_of(color, *read), strict);
  }
  Result<std::vector<CoefficientPlane>> coefficients(const Bytes& bytes) {
    return decoder_->coefficients(padded(bytes));
  }
  std::string_view last_code() const { return last_error.code ? last_error.code->id : ""; }
  Error last_error;

 private:
  std::span<const uint8_t> padded(const Bytes& bytes) {
    bytes_ = Buffer(bytes.size());
    if (!bytes.empty()) std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    return bytes_.bytes();
  }
  std::unique_ptr<ImageDecoder> decoder_;
  Buffer bytes_;
};

}  // namespace headrace::jpeg_test
