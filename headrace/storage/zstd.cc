// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/zstd.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace headrace {
namespace {

constexpr std::string_view kFrameTooLarge = "Decompressed data is larger than allowed";
constexpr std::string_view kOtherSize = "Decompressed size is not the expected one";
constexpr size_t kFirstBytes = size_t{256} << 10;  // initial bytes for output of unknown size

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

// Grows the output, keeping its contents.
void grow(Buffer& buffer, size_t size) {
  Buffer larger(size);
  std::memcpy(larger.data(), buffer.data(), buffer.size());
  buffer = std::move(larger);
}

// Decompresses several frames, or one without a stated size: the output grows as it fills up.
// libzstd allocates up to 128 MiB in addition, for the largest window that it accepts by default.
std::string_view decompress_stream(std::span<const uint8_t> bytes, uint64_t most, Buffer& out) {
  const std::unique_ptr<ZSTD_DStream, FreeStream> stream(ZSTD_createDStream());
  if (!stream) return "Allocation error : not enough memory";
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  out.resize(std::min<uint64_t>(most, kFirstBytes));
  size_t filled = 0, left_in_frame = 1;
  while (in.pos < in.size || left_in_frame > 0) {
    ZSTD_outBuffer to{out.data(), out.size(), filled};
    const size_t before = in.pos;
    left_in_frame = ZSTD_decompressStream(stream.get(), &to, &in);
    if (ZSTD_isError(left_in_frame)) return ZSTD_getErrorName(left_in_frame);
    const bool moved = to.pos > filled || in.pos > before;
    filled = to.pos;
    if (moved) continue;
    if (filled < out.size()) return "Src size is incorrect";  // the frame needs more bytes
    if (filled == most) return kFrameTooLarge;
    grow(out, std::min<uint64_t>(most, uint64_t{2} * filled + 1));
  }
  out.resize(filled);
  return {};
}

}  // namespace

std::vector<uint8_t> zstd_compressed(std::span<const uint8_t> bytes, int level) {
  std::vector<uint8_t> out(ZSTD_compressBound(bytes.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  out.resize(ZSTD_isError(size) ? 0 : size);
  return out;
}

std::optional<uint64_t> zstd_content_size(std::span<const uint8_t> bytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR) return std::nullopt;
  return size;
}

std::string_view zstd_decompress_into(std::span<const uint8_t> bytes, std::span<uint8_t> out) {
  const size_t size = ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(size)) return ZSTD_getErrorName(size);
  return size == out.size() ? std::string_view() : kOtherSize;
}

std::string_view zstd_decompress(std::span<const uint8_t> bytes, uint64_t most, Buffer& out) {
  const size_t frame = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
  if (ZSTD_isError(frame)) return ZSTD_getErrorName(frame);
  const std::optional<uint64_t> size = zstd_content_size(bytes);
  if (size && *size > most) return kFrameTooLarge;
  if (!size || frame != bytes.size()) return decompress_stream(bytes, most, out);
  out.resize(*size);
  return zstd_decompress_into(bytes, {out.data(), out.size()});
}

}  // namespace headrace
