// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace headrace {
namespace {

const ErrorCode kDamaged{
    "HR0422", ErrorKind::kData, "damaged compressed data",
    "The bytes are not valid deflate data (gzip, zlib, zip): they were truncated or changed, or a "
    "checksum does not match. Copy or download the file again; `gzip -t` or `unzip -t` show "
    "whether other programs can read it."};

const ErrorCode kInflatesTooLarge{
    "HR0423", ErrorKind::kResource, "decompressed data too large",
    "Decompressing this would exceed the memory limit, or yield far more than real data does (a "
    "zip bomb). If the file is genuine, decompress it once and open the result, which is then "
    "read record by record rather than held in memory."};

constexpr size_t kFirstBlock = size_t{64} << 10, kBlock = size_t{1} << 20;
constexpr uint64_t kFree = uint64_t{64} << 20;  // bytes of output that are allowed at any ratio

Error damaged(std::string what, uint64_t offset) {
  return Error{.code = &kDamaged,
               .what = std::move(what),
               .where = Where{.offset = static_cast<int64_t>(offset)},
               .hint = "copy the file again"};
}

int window_bits(DeflateWrap wrap) {
  if (wrap == DeflateWrap::kGzip) return 15 + 16;
  return wrap == DeflateWrap::kZlib ? 15 : -15;
}

}  // namespace

struct Inflater::State {
  explicit State(DeflateWrap wrap) {
    if (inflateInit2(&stream, window_bits(wrap)) != Z_OK) throw std::bad_alloc();
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  z_stream stream{};
  size_t produced = 0;
};

Inflater::Inflater(DeflateWrap wrap) : state_(std::make_unique<State>(wrap)) {}
Inflater::Inflater(Inflater&&) noexcept = default;
Inflater& Inflater::operator=(Inflater&&) noexcept = default;
Inflater::~Inflater() = default;

size_t Inflater::produced() const { return state_->produced; }
void Inflater::restart() { inflateReset(&state_->stream); }

Result<Inflater::Step> Inflater::run(std::span<const uint8_t> in, std::span<uint8_t> out) {
  z_stream& stream = state_->stream;
  Step step;
  uint8_t nowhere = 0;  // zlib rejects a null pointer even if nothing is written
  while (!step.ended) {
    const auto give = static_cast<uInt>(std::min<size_t>(in.size() - step.consumed, INT_MAX));
    const auto take = static_cast<uInt>(std::min<size_t>(out.size() - step.produced, INT_MAX));
    // zlib does not write to its input, but the pointer is declared non-const.
    stream.next_in = const_cast<Bytef*>(in.data() + step.consumed);
    stream.avail_in = give;
    stream.next_out = out.empty() ? &nowhere : out.data() + step.produced;
    stream.avail_out = take;
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    const size_t consumed = give - stream.avail_in, produced = take - stream.avail_out;
    step.consumed += consumed;
    step.produced += produced;
    state_->produced = step.produced;
    step.ended = status == Z_STREAM_END;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_NEED_DICT) return damaged("it needs a preset dictionary", step.consumed);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      return damaged(stream.msg ? stream.msg : "unknown block", step.consumed);
    }
    if (consumed == 0 && produced == 0) break;
  }
  return step;
}

uint64_t InflateLimits::most(uint64_t stored_bytes) const {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(stored_bytes, max_ratio, &bytes)) return max_bytes;
  return std::min(max_bytes, std::max(bytes, kFree));
}

namespace {

Error too_large(uint64_t stored, uint64_t most, uint64_t offset) {
  return Error{.code = &kInflatesTooLarge,
               .what = std::to_string(stored) + " compressed bytes expand to more than " +
                       std::to_string(most),
               .where = Where{.offset = static_cast<int64_t>(offset)},
               .hint = "decompress the file once, and open the result"};
}

// Output that grows as it is written, up to one byte beyond the limit, which shows that there is
// more.
class Growing {
 public:
  Growing(Buffer& out, uint64_t most) : out_(out), most_(most) {
    out_.resize(bounded(kFirstBlock));
  }
  bool over() const { return used_ > most_; }
  void wrote(size_t bytes) { used_ += bytes; }
  std::span<uint8_t> room() {
    if (used_ == out_.size()) {
      Buffer larger(bounded(uint64_t{out_.size()} * 2));
      std::memcpy(larger.data(), out_.data(), used_);
      out_ = std::move(larger);
    }
    return {out_.data() + used_, out_.size() - used_};
  }
  void finish() { out_.resize(used_); }

 private:
  size_t bounded(uint64_t bytes) const {
    return static_cast<size_t>(std::min<uint64_t>(bytes, most_ + 1));
  }
  Buffer& out_;
  uint64_t most_;
  size_t used_ = 0;
};

// Feeds the input to the inflater block by block.
class Feeder {
 public:
  Feeder(DeflateWrap wrap, uint64_t stored, uint64_t most, Buffer& out)
      : inflater_(wrap), wrap_(wrap), stored_(stored), most_(most), out_(out, most) {}

  Result<void> feed(std::span<const uint8_t> in) {
    for (;;) {
      if (between_) {
        if (streams_ > 0) skip_zeros(in);
        if (in.empty()) return {};
        if (Result<void> begun = begin_stream(); !begun) return begun;
      }
      const std::span<uint8_t> room = out_.room();
      Result<Inflater::Step> step = inflater_.run(in, room);
      if (!step) {
        step.error().where.offset += static_cast<int64_t>(at_);
        return std::move(step.error());
      }
      skip(in, step->consumed);
      out_.wrote(step->produced);
      if (out_.over()) return too_large(stored_, most_, at_);
      between_ = step->ended;
      streams_ += step->ended;
      if (!step->ended && step->produced < room.size()) return {};  // zlib needs more input
    }
  }

  Result<void> finish() {
    if (!between_ || streams_ == 0) return damaged("it ends in the middle of the data", at_);
    out_.finish();
    return {};
  }

 private:
  Result<void> begin_stream() {
    if (streams_ > 0) {
      if (wrap_ != DeflateWrap::kGzip || padded_) {
        return damaged("other bytes follow the compressed data", at_);
      }
      inflater_.restart();
    }
    between_ = false;
    return {};
  }

  // Zeros may follow the last stream, as written by tape drives.
  void skip_zeros(std::span<const uint8_t>& in) {
    size_t zeros = 0;
    while (zeros < in.size() && in[zeros] == 0) ++zeros;
    padded_ = padded_ || zeros > 0;
    skip(in, zeros);
  }

  void skip(std::span<const uint8_t>& in, size_t bytes) {
    in = in.subspan(bytes);
    at_ += bytes;
  }

  Inflater inflater_;
  DeflateWrap wrap_;
  uint64_t stored_, most_;
  Growing out_;
  uint64_t at_ = 0;
  int64_t streams_ = 0;
  bool between_ = true, padded_ = false;
};

}  // namespace

Result<void> inflate_bytes(std::span<const uint8_t> in, DeflateWrap wrap,
                           const InflateLimits& limits, Buffer& out) {
  Feeder feeder(wrap, in.size(), limits.most(in.size()), out);
  if (Result<void> fed = feeder.feed(in); !fed) return fed;
  return feeder.finish();
}

Result<void> inflate_file(const File& file, uint64_t offset, uint64_t bytes, DeflateWrap wrap,
                          const InflateLimits& limits, Buffer& out) {
  Feeder feeder(wrap, bytes, limits.most(bytes), out);
  Buffer block;
  const auto in_file = [&](Result<void> result) {
    if (!result) {
      result.error().where.file = file.path();
      result.error().where.offset += static_cast<int64_t>(offset);
    }
    return result;
  };
  for (uint64_t at = 0; at < bytes; at += block.size()) {
    block.resize(static_cast<size_t>(std::min<uint64_t>(kBlock, bytes - at)));
    if (Result<void> read = file.read(offset + at, {block.data(), block.size()}); !read) {
      return read;
    }
    if (Result<void> fed = in_file(feeder.feed(block.bytes())); !fed) return fed;
  }
  return in_file(feeder.finish());
}

Result<void> inflate_into(std::span<const uint8_t> in, DeflateWrap wrap, std::span<uint8_t> out) {
  Inflater inflater(wrap);
  Result<Inflater::Step> step = inflater.run(in, out);
  if (!step) return std::move(step.error());
  if (!step->ended && step->produced == out.size()) {  // the end of the stream and its checksum
    std::array<uint8_t, 1> beyond{};
    const size_t consumed = step->consumed;
    step = inflater.run(in.subspan(consumed), beyond);
    if (!step) return std::move(step.error());
    if (step->produced > 0) {
      return damaged("it holds more than the " + std::to_string(out.size()) + " bytes declared",
                     consumed);
    }
    step->produced = out.size();
  }
  if (!step->ended) return damaged("it ends in the middle of the data", in.size());
  if (step->produced != out.size()) {
    return damaged("it holds " + std::to_string(step->produced) + " bytes, not the " +
                       std::to_string(out.size()) + " declared",
                   in.size());
  }
  return {};
}

}  // namespace headrace
