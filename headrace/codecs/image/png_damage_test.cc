// SPDX-License-Identifier: Apache-2.0
// Broken and truncated files, and files meant to exhaust memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "headrace/codecs/image/png_session.h"
#include "headrace/codecs/image/png_test_checksums.h"
#include "headrace/codecs/image/png_test_images.h"

namespace headrace::png_test {
namespace {

TEST(PngDamage, CompressedTextAndProfilesAreNotInflated) {
  Bytes zeros(size_t{64} << 20);
  Bytes packed(compressBound(zeros.size()));
  uLongf size = packed.size();
  ASSERT_EQ(compress(packed.data(), &size, zeros.data(), zeros.size()), Z_OK);
  packed.resize(size);
  const Bytes plain = write_png({PNG_COLOR_TYPE_RGB, 8}, 30, 20);
  for (const char* type : {"zTXt", "iCCP", "iTXt", "tEXt", "sPLT", "prVt"}) {
    Bytes data{'k', 0, 0};
    if (std::string(type) == "iTXt") data = {'k', 0, 1, 0, 0, 0};
    data.insert(data.end(), packed.begin(), packed.end());
    Bytes file = plain;
    for (int i = 0; i < 40; ++i) insert_chunk(file, kAfterHeader, type, data);
    PngSession session(file);
    ASSERT_TRUE(session.read_info()) << type << ": " << session.error();
    EXPECT_LE(session.peak_memory(), size_t{256} << 10) << type;
    EXPECT_EQ(session.warnings(), 0) << type;
    EXPECT_EQ(whole(*png_codec().make(), file, ColorMode::kRGB),
              plain_decode(plain, ColorMode::kRGB));
  }
}

TEST(PngDamage, AHugeHeaderIsRejectedWithoutAllocating) {
  Bytes file = write_png({PNG_COLOR_TYPE_RGB_ALPHA, 16, true}, 5, 4);
  Bytes header(file.begin() + 16, file.begin() + 29);
  for (size_t at : {size_t{0}, size_t{4}}) {
    header[at] = header[at + 1] = 0;
    header[at + 2] = 65500 >> 8;
    header[at + 3] = 65500 & 255;
  }
  file.erase(file.begin() + 8, file.begin() + kAfterHeader);
  insert_chunk(file, 8, "IHDR", header);
  const Buffer bytes = padded(file);
  const auto decoder = png_codec().make();
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kib();
  const auto read = decoder->read_header(bytes.bytes());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->width, 65500);
  EXPECT_EQ(read->height, 65500);
  EXPECT_GE(read->working_bytes, size_t{65500} * 65500 * 4);
  EXPECT_LT(peak_kib() - before, 8 << 10);
  const auto limits = check_limits(*read, DecodeLimits{});
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().code->id, "HR0310");
}

TEST(PngDamage, TruncationIsAnErrorWithAnOffset) {
  const auto decoder = png_codec().make();
  for (const Kind& kind : {Kind{PNG_COLOR_TYPE_RGB, 8}, Kind{PNG_COLOR_TYPE_RGB, 16, true},
                           Kind{PNG_COLOR_TYPE_PALETTE, 4}, Kind{PNG_COLOR_TYPE_GRAY, 16}}) {
    const Bytes file = write_png(kind, 80, 60);
    const size_t end_chunk = 12;  // IEND; libpng does not need it for the rows
    for (size_t i = 0; i < 64; ++i) {
      const Bytes cut(file.begin(), file.begin() + ptrdiff_t((file.size() - end_chunk) * i / 64));
      const Buffer bytes = padded(cut);
      const auto header = decoder->read_header(bytes.bytes());
      const Decoded out = decode(*decoder, bytes, {0, 0, 80, 60}, ColorMode::kRGB,
                                 *decoder->read_header(padded(file).bytes()));
      ASSERT_FALSE(out.result) << name_of(kind) << " at " << i << "/64";
      const Error& error = header ? out.result.error() : header.error();
      EXPECT_EQ(error.code->id, "HR0331") << error.message();
      EXPECT_EQ(error.where.offset, int64_t(cut.size()));
    }
    EXPECT_FALSE(plain_decode(Bytes(file.begin(), file.end() - end_chunk - 1), ColorMode::kRGB));
  }
}

TEST(PngDamage, RowsBelowTheWindowAreNotRead) {
  const Bytes file = write_png({PNG_COLOR_TYPE_RGB, 8}, 80, 60);
  const auto expected = plain_decode(file, ColorMode::kRGB);
  Bytes cut(file.begin(), file.begin() + ptrdiff_t(file.size() * 3 / 4));
  const Buffer bytes = padded(cut);
  const auto decoder = png_codec().make();
  const auto header = decoder->read_header(bytes.bytes());
  ASSERT_TRUE(header);
  const Window top{3, 5, 50, 20};
  const Decoded out = decode(*decoder, bytes, top, ColorMode::kRGB, *header);
  ASSERT_TRUE(out.result);
  EXPECT_TRUE(out.pixels == expected->slice(top));
  EXPECT_FALSE(decode(*decoder, bytes, top, ColorMode::kRGB, *header, true).result);
}

TEST(PngDamage, StrictTurnsWarningsIntoErrors) {
  const auto decoder = png_codec().make();
  Bytes file = write_png({PNG_COLOR_TYPE_RGB, 8}, 30, 20);
  const auto run = [&](bool strict) {
    const Buffer bytes = padded(file);
    const auto header = decoder->read_header(bytes.bytes());
    return decode(*decoder, bytes, {0, 0, 30, 20}, ColorMode::kRGB, *header, strict);
  };
  EXPECT_TRUE(run(true).result);
  insert_chunk(file, kAfterHeader, "tEXt", {'k', 0, 'v'});
  EXPECT_TRUE(run(true).result);
  file[kAfterHeader + 10] ^= 1;  // the text no longer matches its checksum
  const Decoded lenient = run(false);
  EXPECT_TRUE(lenient.result);
  EXPECT_EQ(lenient.warnings, 1);
  EXPECT_TRUE(lenient.pixels == *plain_decode(file, ColorMode::kRGB));
  const Decoded strict = run(true);
  ASSERT_FALSE(strict.result);
  EXPECT_EQ(strict.result.error().code->id, "HR0333");
  EXPECT_NE(strict.result.error().message().find("CRC"), std::string::npos);
}

TEST(PngDamage, AWrongChecksumOfThePixelsIsAnError) {
  Bytes file = write_png({PNG_COLOR_TYPE_RGB, 8}, 30, 20);
  file[file.size() - 12 - 2] ^= 1;  // the last IDAT's checksum
  const auto decoder = png_codec().make();
  const Buffer bytes = padded(file);
  const auto header = decoder->read_header(bytes.bytes());
  const Decoded out = decode(*decoder, bytes, {0, 0, 30, 20}, ColorMode::kRGB, *header);
  ASSERT_FALSE(out.result);
  EXPECT_EQ(out.result.error().code->id, "HR0330");
  EXPECT_NE(out.result.error().message().find("IDAT: CRC error"), std::string::npos);
}

// The same errors and pixels as libpng; only the error text is ours.
void expect_as_libpng(ImageDecoder& decoder, const Bytes& file, const std::string& what) {
  for (ColorMode mode : kModes) {
    EXPECT_TRUE(whole(decoder, file, mode) == plain_decode(file, mode))
        << what << " mode " << int(mode);
  }
}

// Changes a few bytes; half of the files get valid checksums again, otherwise only those would be
// tested.
Bytes mutated(Bytes file, std::mt19937& random) {
  for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
    const size_t at = random() % file.size();
    switch (random() % 4) {
      case 0:
        file.erase(file.begin() + ptrdiff_t(at));
        break;
      case 1:
        file.insert(file.begin() + ptrdiff_t(at), uint8_t(random()));
        break;
      default:
        file[at] = uint8_t(random());
        break;
    }
  }
  if (random() % 2) repair_checksums(file);
  return file;
}

TEST(PngDamage, MutatedFilesAreDecodedAsLibpngDoes) {
  const auto decoder = png_codec().make();
  std::mt19937 random(20240607);
  const std::vector<Kind> kinds = all_kinds();
  for (int i = 0; i < 1000; ++i) {
    const int width = 1 + int(random() % 40), height = 1 + int(random() % 40);
    const Bytes file = write_png(kinds[size_t(i) % kinds.size()], width, height, uint32_t(i));
    expect_as_libpng(*decoder, mutated(file, random), "mutation " + std::to_string(i));
  }
}

void expect_folder_as_libpng(const char* folder, size_t at_least) {
  const char* root = std::getenv("HEADRACE_TEST_DATA");
  if (!root) GTEST_SKIP() << "HEADRACE_TEST_DATA names no corpus";
  const auto decoder = png_codec().make();
  size_t files = 0;
  const auto base = std::filesystem::path(root) / folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const Bytes file{std::istreambuf_iterator<char>(stream), {}};
    expect_as_libpng(*decoder, file, entry.path().filename());
    ++files;
  }
  EXPECT_GE(files, at_least);
}

TEST(PngDamage, CorpusFilesEqualLibpng) { expect_folder_as_libpng("png", 300); }
TEST(PngDamage, MalformedFilesEqualLibpngOrAreErrors) {
  expect_folder_as_libpng("corrupt/png", 500);
}

}  // namespace
}  // namespace headrace::png_test
