// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/unpacker.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>

#include "headrace/storage/inflate.h"

namespace headrace {
namespace {

const ErrorCode kDamagedStream{
    "HR0211", ErrorKind::kData, "damaged compressed file",
    "The file is compressed (gzip, zlib, Zstandard), and its bytes are invalid from this offset "
    "on: it was truncated or changed, or a checksum does not match. Data decompressed before that "
    "is used. Copy or download the file again; `gzip -t` or `zstd -t` show whether other programs "
    "can read it."};

const ErrorCode kNotDone{
    "HR0213", ErrorKind::kUnsupported, "unsupported compression feature",
    "The file was compressed with a dictionary stored elsewhere, or with a window of more than "
    "128 MiB (zstd --long=28 and above), which would need that much memory per file. Decompress "
    "it once with the program that made it, and open the result."};

Error not_done(std::string what) {
  return {.code = &kNotDone,
          .what = std::move(what),
          .hint = "decompress it with the program that made it, and open the result"};
}

class Inflate final : public Unpacker {
 public:
  explicit Inflate(DeflateWrap wrap) : inflater_(wrap) {}
  void restart() override { inflater_.restart(); }

  Step run(std::span<const uint8_t> in, std::span<uint8_t> out) override {
    Step step;
    Result<Inflater::Step> done = inflater_.run(in, out);
    if (done) {
      step.consumed = done->consumed;
      step.ended = done->ended;
    } else {
      step.consumed = static_cast<size_t>(done.error().where.offset);
      step.result = damaged_packing(std::move(done.error().what));
    }
    step.produced = inflater_.produced();
    return step;
  }

 private:
  Inflater inflater_;
};

class Zstd final : public Unpacker {
 public:
  Zstd() : context_(ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
  }
  void restart() override {
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    at_ = 0;
    made_ = 0;
  }

  Step run(std::span<const uint8_t> in, std::span<uint8_t> out) override {
    // Passes small pieces: on an error, the library does not report how far it got within a piece.
    constexpr size_t kPiece = size_t{16} << 10;
    // A frame's first byte is passed alone: a complete frame would take a different code path in
    // the library, which does not reject the same inputs as the path for pieces.
    ZSTD_inBuffer from{in.data(), std::min(in.size(), at_ == 0 ? 1 : kPiece), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    Step step;
    if (!has_valid_header(in)) {
      step.result = damaged_packing("no zstd frame where one should be");
      return step;
    }
    while (!step.ended) {
      const size_t consumed = from.pos, produced = to.pos;
      const size_t status = ZSTD_decompressStream(context_.get(), &to, &from);
      if (ZSTD_isError(status)) {
        step.result = error_of(status);
        if (at_ == 0 && from.pos == 1) from.pos = 0;  // report the error at the start of the frame
        break;
      }
      step.ended = status == 0;
      if (from.pos == from.size) from.size = std::min(in.size(), from.size + kPiece);
      if (from.pos == consumed && to.pos == produced) break;
    }
    step.consumed = from.pos;
    step.produced = to.pos;
    at_ += from.pos;
    made_ += to.pos;
    if (step.ended) check_size(step);
    return step;
  }

 private:
  static Error error_of(size_t status) {
    switch (ZSTD_getErrorCode(status)) {
      case ZSTD_error_frameParameter_windowTooLarge:
        return not_done("its window is larger than 128 MiB");
      case ZSTD_error_dictionary_wrong:
        return not_done("it needs a dictionary");
      case ZSTD_error_memory_allocation:
        throw std::bad_alloc();
      default:
        return damaged_packing("zstd says: " + std::string(ZSTD_getErrorName(status)));
    }
  }

  // The library checks a frame's declared size only if its last block is not empty.
  void check_size(Step& step) const {
    const size_t known = std::min<uint64_t>(header_.size(), at_);
    const unsigned long long declared = ZSTD_getFrameContentSize(header_.data(), known);
    if (declared == ZSTD_CONTENTSIZE_UNKNOWN || declared == ZSTD_CONTENTSIZE_ERROR) return;
    if (declared == made_) return;
    step.result = damaged_packing("a zstd frame of " + std::to_string(made_) + " bytes declares " +
                                  std::to_string(declared));
    step.ended = false;
  }

  // Accepts only standard frames: the library may also support older formats, with code that is not
  // safe for hostile input.
  bool has_valid_header(std::span<const uint8_t> in) {
    for (uint64_t i = at_; i < header_.size() && i - at_ < in.size(); ++i) {
      header_[i] = in[i - at_];
      if (i >= kFrame.size()) continue;
      const bool skipped = header_[0] >= 0x50 && header_[0] <= 0x5F;
      const uint8_t wanted = skipped ? kSkipped[i] : kFrame[i];
      if (header_[i] != wanted && !(i == 0 && skipped)) return false;
    }
    return true;
  }

  static constexpr std::array<uint8_t, 4> kFrame = {0x28, 0xB5, 0x2F, 0xFD};
  static constexpr std::array<uint8_t, 4> kSkipped = {0x50, 0x2A, 0x4D, 0x18};
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  std::array<uint8_t, 18> header_{};  // maximum size of a frame's header
  uint64_t at_ = 0, made_ = 0;        // bytes read from the frame, and written
};

}  // namespace

Error damaged_packing(std::string what) {
  return {
      .code = &kDamagedStream, .what = std::move(what), .hint = "copy or download the file again"};
}

std::string_view name_of(Packing packing) {
  switch (packing) {
    case Packing::kGzip:
      return "gzip";
    case Packing::kZlib:
      return "zlib";
    case Packing::kZstd:
      return "zstd";
    case Packing::kNone:
      break;
  }
  return "nothing";
}

Packing packing_of(std::span<const uint8_t> first) {
  if (first.size() < 4) return Packing::kNone;
  // RFC 1952, 2.3.1: deflate is the only method, and the upper flags are 0.
  if (first[0] == 0x1F && first[1] == 0x8B && first[2] == 8 && first[3] < 0x20) {
    return Packing::kGzip;
  }
  // RFC 8878, 3.1.1 and 3.1.2: a frame, or a skippable one before it.
  if (first[1] == 0xB5 && first[2] == 0x2F && first[3] == 0xFD && first[0] == 0x28) {
    return Packing::kZstd;
  }
  if (first[0] >= 0x50 && first[0] <= 0x5F && first[1] == 0x2A && first[2] == 0x4D &&
      first[3] == 0x18) {
    return Packing::kZstd;
  }
  // RFC 1950, 2.2: deflate, a window of up to 32 KiB, no dictionary.
  if ((first[0] & 0x0F) == 8 && first[0] <= 0x78 && (first[1] & 0x20) == 0 &&
      (first[0] * 256 + first[1]) % 31 == 0) {
    return Packing::kZlib;
  }
  return Packing::kNone;
}

std::unique_ptr<Unpacker> Unpacker::make(Packing packing) {
  if (packing == Packing::kZstd) return std::make_unique<Zstd>();
  return std::make_unique<Inflate>(packing == Packing::kGzip ? DeflateWrap::kGzip
                                                             : DeflateWrap::kZlib);
}

}  // namespace headrace
