// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/zstd.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <random>

#include "headrace/base/bytes_test_join.h"

namespace headrace {
namespace {

using bytes_test::Bytes;
using bytes_test::operator+;

// Some of it repeats, some does not.
Bytes text(size_t size) {
  std::mt19937 random(7);
  Bytes out(size);
  for (size_t i = 0; i < size; ++i) {
    out[i] = i % 3 ? static_cast<uint8_t>(random()) : static_cast<uint8_t>(i / 64);
  }
  return out;
}

// A frame as a stream writes it: without its size.
Bytes frame_without_size(const Bytes& bytes) {
  Bytes out(ZSTD_compressBound(bytes.size()));
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_contentSizeFlag, 0);
  out.resize(ZSTD_compress2(context.get(), out.data(), out.size(), bytes.data(), bytes.size()));
  return out;
}

Bytes bytes_of(const Buffer& buffer) { return {buffer.data(), buffer.data() + buffer.size()}; }

TEST(Zstd, RestoresCompressedData) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20}) {
    const Bytes bytes = text(size), small = zstd_compressed(bytes, 9);
    EXPECT_EQ(zstd_content_size(small), size);
    Buffer out;
    EXPECT_EQ(zstd_decompress(small, size, out), "");
    EXPECT_EQ(bytes_of(out), bytes);
    Bytes exact(size);
    EXPECT_EQ(zstd_decompress_into(small, exact), "");
    EXPECT_EQ(exact, bytes);
  }
}

TEST(Zstd, ReadsSeveralFramesEvenOfUnknownSize) {
  const Bytes bytes = text(1 << 20), unsized = frame_without_size(bytes);
  EXPECT_EQ(zstd_content_size(unsized), std::nullopt);
  Buffer out;
  EXPECT_EQ(zstd_decompress(unsized, bytes.size(), out), "");
  EXPECT_EQ(bytes_of(out), bytes);
  EXPECT_EQ(zstd_decompress(zstd_compressed(bytes, 1) + unsized, 2 * bytes.size(), out), "");
  EXPECT_EQ(bytes_of(out), bytes + bytes);
}

TEST(Zstd, StopsAtTheLimit) {
  const Bytes bytes = text(1 << 20);
  Buffer out;
  for (const Bytes& small : {zstd_compressed(bytes, 1), frame_without_size(bytes),
                             zstd_compressed(text(9), 1) + zstd_compressed(bytes, 1)}) {
    for (size_t most : {size_t{0}, size_t{10}, bytes.size() - 1}) {
      EXPECT_EQ(zstd_decompress(small, most, out), "Decompressed data is larger than allowed");
    }
  }
  Bytes ten(10);
  EXPECT_NE(zstd_decompress_into(zstd_compressed(bytes, 1), ten), "");
  EXPECT_EQ(zstd_decompress_into(zstd_compressed(text(9), 1), ten),
            "Decompressed size is not the expected one");
}

TEST(Zstd, RefusesTruncatedOrOtherData) {
  const Bytes bytes = text(10000), sized = zstd_compressed(bytes, 9);
  for (const Bytes& whole : {sized, frame_without_size(bytes), sized + frame_without_size(bytes)}) {
    for (int part = 0; part < 64; ++part) {
      Bytes cut = whole;
      cut.resize(whole.size() * part / 64);
      Buffer out;
      if (cut.size() == sized.size()) continue;  // a whole frame
      EXPECT_NE(zstd_decompress(cut, 1 << 20, out), "") << part;
    }
  }
  Buffer out;
  EXPECT_NE(zstd_decompress(bytes, 1 << 20, out), "");
}

TEST(Zstd, SurvivesFlippedBits) {
  const Bytes bytes = text(3000);
  for (const Bytes& whole : {zstd_compressed(bytes, 9), frame_without_size(bytes)}) {
    for (size_t bit = 0; bit < whole.size() * 8; bit += 5) {
      Bytes damaged = whole;
      damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      Buffer out;
      if (zstd_decompress(damaged, 1 << 16, out).empty()) {
        EXPECT_LE(out.size(), size_t{1} << 16);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
