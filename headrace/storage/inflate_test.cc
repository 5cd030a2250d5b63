// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <random>
#include <string>

#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace inflate_test {

constexpr DeflateWrap kWraps[] = {DeflateWrap::kNone, DeflateWrap::kZlib, DeflateWrap::kGzip};

// zlib's own compressor.
std::string deflated(const std::string& text, DeflateWrap wrap, int level = 6) {
  z_stream stream{};
  const int bits = wrap == DeflateWrap::kGzip ? 31 : wrap == DeflateWrap::kZlib ? 15 : -15;
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::string text_of(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

// Half noise, half letters.
std::string mixed(size_t bytes) {
  std::mt19937 noise(7);
  std::string out(bytes, 'a');
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<char>(i < bytes / 2 ? noise() : 'a' + noise() % 4);
  }
  return out;
}

struct Outcome {
  std::string code, what, text;
  int64_t offset = -1;
};
Outcome outcome(const std::string& stored, DeflateWrap wrap, const InflateLimits& limits = {}) {
  Buffer out;
  const Result<void> done = inflate_bytes(bytes_of(stored), wrap, limits, out);
  if (done) return {.code = {}, .what = {}, .text = text_of(out)};
  return {std::string(done.error().code->id), done.error().what, {}, done.error().where.offset};
}

TEST(Inflate, RestoresCompressedData) {
  for (const DeflateWrap wrap : kWraps) {
    for (const size_t bytes : {0, 1, 65535, 65536, 65537, 3000000}) {
      const std::string text = mixed(bytes);
      for (const int level : {0, 1, 9}) {
        const Outcome got = outcome(deflated(text, wrap, level), wrap);
        EXPECT_EQ(got.code, "");
        EXPECT_TRUE(got.text == text) << bytes;
      }
    }
  }
}

TEST(Inflate, FilesAreReadBlockByBlock) {
  TemporaryFolder folder;
  const std::string text = mixed(5000000), stored = deflated(text, DeflateWrap::kGzip);
  ASSERT_GT(stored.size(), size_t{2} << 20);
  const Result<File> file = File::open(folder.write("x.gz", "header" + stored));
  Buffer out;
  ASSERT_TRUE(inflate_file(*file, 6, stored.size(), DeflateWrap::kGzip, {}, out));
  EXPECT_TRUE(text_of(out) == text);
  const Result<void> cut = inflate_file(*file, 6, stored.size() - 1, DeflateWrap::kGzip, {}, out);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().where.file, folder / "x.gz");
  EXPECT_EQ(cut.error().where.offset, static_cast<int64_t>(stored.size() + 5));
}

TEST(Inflate, GzipStreamsMayFollowEachOther) {
  const std::string one = deflated("one, ", DeflateWrap::kGzip);
  const std::string two = deflated("two", DeflateWrap::kGzip);
  EXPECT_EQ(outcome(one + two, DeflateWrap::kGzip).text, "one, two");
  EXPECT_EQ(outcome(one + two + std::string(512, '\0'), DeflateWrap::kGzip).text, "one, two");
  EXPECT_EQ(outcome(one + std::string(3, '\0') + two, DeflateWrap::kGzip).code, "HR0422");
  EXPECT_EQ(outcome(one + "x", DeflateWrap::kGzip).code, "HR0422");
  const std::string zlib = deflated("one", DeflateWrap::kZlib);
  EXPECT_EQ(outcome(zlib + zlib, DeflateWrap::kZlib).what,
            "other bytes follow the compressed data");
}

TEST(Inflate, DamageIsFoundAnywhere) {
  for (const DeflateWrap wrap : kWraps) {
    const std::string text = mixed(4000), stored = deflated(text, wrap);
    for (size_t cut = 0; cut < stored.size(); cut += 1 + stored.size() / 64) {
      EXPECT_EQ(outcome(stored.substr(0, cut), wrap).code, "HR0422") << cut;
    }
    for (size_t bit = 0; bit < stored.size() * 8; bit += 37) {
      std::string changed = stored;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
      const Outcome got = outcome(changed, wrap);
      // Bare deflate has no checksum, of gzip's header only some bytes mean anything, and the last
      // byte before the checksum may have bits to spare.
      const size_t last = stored.size() - (wrap == DeflateWrap::kGzip ? 9 : 5);
      if (wrap == DeflateWrap::kNone || bit / 8 == last) continue;
      if (wrap == DeflateWrap::kGzip && bit < 80) continue;
      EXPECT_EQ(got.code, "HR0422") << bit;
    }
  }
  EXPECT_EQ(outcome("", DeflateWrap::kGzip).what, "it ends in the middle of the data");
}

TEST(Inflate, OutputBeyondTheLimitIsRefused) {
  const std::string text(1000, 'a');
  const std::string stored = deflated(text, DeflateWrap::kZlib);
  EXPECT_EQ(outcome(stored, DeflateWrap::kZlib, {.max_bytes = 1000}).text, text);
  const Outcome got = outcome(stored, DeflateWrap::kZlib, {.max_bytes = 999});
  EXPECT_EQ(got.code, "HR0423");
  EXPECT_EQ(got.what, std::to_string(stored.size()) + " compressed bytes expand to more than 999");
  EXPECT_EQ(outcome(stored, DeflateWrap::kZlib, {.max_bytes = 0}).code, "HR0423");
  EXPECT_EQ(outcome(deflated("", DeflateWrap::kZlib), DeflateWrap::kZlib, {.max_bytes = 0}).code,
            "");
}

TEST(Inflate, ABombOfZerosIsRefusedByItsRatio) {
  const std::string zeros((size_t{64} << 20) + 1, '\0');
  const std::string bomb = deflated(zeros, DeflateWrap::kGzip, 9);
  EXPECT_LT(bomb.size(), 100000u);
  EXPECT_EQ(outcome(bomb, DeflateWrap::kGzip).code, "HR0423");
  EXPECT_TRUE(outcome(bomb, DeflateWrap::kGzip, {.max_ratio = 2000}).text == zeros);
}

TEST(Inflate, AKnownSizeMustMatchExactly) {
  for (const DeflateWrap wrap : kWraps) {
    const std::string text = mixed(10000), stored = deflated(text, wrap);
    const auto into = [&](size_t bytes) {
      Buffer out(bytes);
      const Result<void> done = inflate_into(bytes_of(stored), wrap, {out.data(), bytes});
      return done ? text_of(out) : std::string(done.error().code->id);
    };
    EXPECT_TRUE(into(10000) == text);
    EXPECT_EQ(into(9999), "HR0422");
    EXPECT_EQ(into(10001), "HR0422");
    EXPECT_EQ(into(0), "HR0422");
  }
}

TEST(Inflate, AnEmptyBufferConsumesNothing) {
  for (const DeflateWrap wrap : kWraps) {
    const std::string stored = deflated("", wrap), more = deflated("a", wrap);
    EXPECT_TRUE(inflate_into(bytes_of(stored), wrap, {}));
    const Result<void> full = inflate_into(bytes_of(more), wrap, {});
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().what, "it holds more than the 0 bytes declared");
  }
}

TEST(Inflate, AStreamCanBeReadInPieces) {
  const std::string text = mixed(1000), stored = deflated(text, DeflateWrap::kGzip);
  Inflater inflater(DeflateWrap::kGzip);
  std::string got;
  bool ended = false;
  for (size_t at = 0; !ended;) {
    uint8_t piece[7];
    const size_t give = std::min<size_t>(3, stored.size() - at);
    const Result<Inflater::Step> step = inflater.run(bytes_of(stored).subspan(at, give), piece);
    ASSERT_TRUE(step);
    at += step->consumed;
    got.append(reinterpret_cast<const char*>(piece), step->produced);
    ended = step->ended;
    ASSERT_TRUE(ended || step->consumed + step->produced > 0);
  }
  EXPECT_TRUE(got == text);
}

}  // namespace inflate_test
}  // namespace headrace
