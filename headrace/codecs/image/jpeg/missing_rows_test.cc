// SPDX-License-Identifier: Apache-2.0
// Truncated JPEGs used to be delivered with gray rows. Whether a row exists must depend on the file
// and the window alone, and be the same for every decoder, instruction set and format. Expected
// values come from where the intact file's rows begin.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "headrace/codecs/image/jpeg/decode/library.h"
#include "headrace/codecs/image/jpeg/decode/row_index.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/kernels/dispatch.h"

namespace headrace::jpeg_test {
namespace {

// "" or the error code of a window, with one of the decoders.
std::string verdict(AnyDecoder& decoder, const Bytes& file, const Window& window) {
  decoder.repair = false;
  return decoder.window(file, window).ok ? "" : std::string(decoder.last_code());
}

std::string libjpeg_result(const Bytes& file, const Window& window, bool repair = false) {
  JpegLibraryDecoder library;
  Buffer bytes(file.size());
  std::copy(file.begin(), file.end(), bytes.data());
  Collector sink(window.width, window.height, 3);
  DecodeJob job;
  job.bytes = bytes.bytes();
  job.window = window;
  job.repair = repair;
  job.sink = &sink;
  library.decode(job);
  return job.result ? "" : std::string(job.result.error().code->id);
}

// A file whose MCU rows begin at known offsets; the last entry is the end of its data.
struct LaidOutFile {
  Bytes file;
  int mcu = 8, width = 0, height = 0;
  bool reads_row_below = false;
  std::vector<size_t> row_ends;  // the end of each row's data

  // Whether a file truncated there has all rows that the window needs.
  bool has(const Window& window, size_t cut) const {
    int bottom = window.y + window.height - 1;
    if (reads_row_below && bottom % 2 == 1) bottom = std::min(bottom + 1, height - 1);
    return cut >= row_ends[size_t(bottom / mcu)];
  }
};

LaidOutFile laid_out_file(FileSpec spec) {
  LaidOutFile out;
  out.file = encode(spec);
  out.width = spec.width;
  out.height = spec.height;
  const bool gray = spec.sampling.size() == 1;
  const Factors most = spec.sampling[0];
  out.mcu = 8 * most.v;
  out.reads_row_below = !gray && most.v == 2;
  const int mcu_width = gray ? 8 : 8 * most.h, mcu_height = gray ? 8 : 8 * most.v;
  const int wide = (spec.width + mcu_width - 1) / mcu_width;
  const int high = (spec.height + mcu_height - 1) / mcu_height;
  Decoder decoder;
  JpegRowIndex index;
  EXPECT_TRUE(
      index.parse(decoder.row_index(out.file),
                  {wide, high, spec.restart_interval, static_cast<int>(spec.sampling.size())},
                  out.file.size()));
  const int together = gray ? most.v : 1;
  for (int m = together; m < high; m += together) {
    const JpegRowEntry& next = index.row(m);
    size_t end = next.byte + (next.bit > 0);
    // A stuffed zero belongs to the byte before it; at a restart, the row ended before the marker.
    if (spec.restart_interval > 0 && m * wide % spec.restart_interval == 0) end = next.byte - 2;
    out.row_ends.push_back(end);
  }
  out.row_ends.push_back(out.file.size() - 2);
  return out;
}

std::vector<FileSpec> kinds() {
  std::vector<FileSpec> out;
  for (const std::vector<Factors>& sampling : {std::vector<Factors>{{1, 1}},
                                               {{2, 2}},
                                               {{1, 1}, {1, 1}, {1, 1}},
                                               {{2, 2}, {1, 1}, {1, 1}},
                                               {{2, 1}, {1, 1}, {1, 1}},
                                               {{1, 2}, {1, 1}, {1, 1}}}) {
    for (const int interval : {0, 5, 7}) {
      FileSpec spec{.width = 117, .height = 101, .sampling = sampling};
      spec.restart_interval = interval;
      out.push_back(spec);
    }
  }
  return out;
}

Bytes cut(const Bytes& file, size_t at) {
  return Bytes(file.begin(), file.begin() + ptrdiff_t(at));
}

TEST(JpegMissingRows, ATruncatedImageIsRejectedOnlyIfTheWindowNeedsMissingRows) {
  Draw draw(11);
  int refused = 0, taken = 0;
  for (const SimdLevel level : available_levels()) {
    set_simd_level(level);
    for (const FileSpec& spec : kinds()) {
      const LaidOutFile laid_out = laid_out_file(spec);
      Decoder decoder, indexed;
      indexed.known = decoder.row_index(laid_out.file);
      for (const size_t end : laid_out.row_ends) {
        for (const int beside : {-2, -1, 0, 1, 9}) {
          const size_t at = std::min(size_t(int(end) + beside), laid_out.file.size());
          const Bytes file = cut(laid_out.file, at);
          Window window = draw.window(spec.width, spec.height);
          if (draw.below(4) == 0) window = {0, 0, spec.width, spec.height};
          SCOPED_TRACE("cut at " + std::to_string(at) + ", rows to " +
                       std::to_string(window.y + window.height) + ", columns from " +
                       std::to_string(window.x) + " to " + std::to_string(window.x + window.width) +
                       ", factors " + std::to_string(spec.sampling[0].h) +
                       std::to_string(spec.sampling[0].v) + " of " +
                       std::to_string(spec.sampling.size()) + ", restarts " +
                       std::to_string(spec.restart_interval));
          const std::string expected = laid_out.has(window, at) ? "" : "HR0385";
          ASSERT_EQ(verdict(decoder, file, window), expected);
          ASSERT_EQ(libjpeg_result(file, window), expected);
          // With the rows that lanes found in the truncated file itself.
          Decoder learned;
          learned.known = indexed.known;
          if (expected.empty()) {
            ASSERT_EQ(verdict(learned, file, window), expected);
          }
          (expected.empty() ? taken : refused) += 1;
        }
      }
    }
  }
  set_simd_level(available_levels().back());
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 100);
}

TEST(JpegMissingRows, WithRepairTheyAreGrayAsInLibjpeg) {
  for (const FileSpec& spec : kinds()) {
    const Bytes whole = encode(spec), file = cut(whole, whole.size() * 2 / 3);
    Decoder decoder;
    const Pixels got = decoder.whole(file), expected = oracle(file);
    ASSERT_TRUE(got.ok) << got.error;
    EXPECT_EQ(got.data, expected.data);
    EXPECT_GT(got.warnings, 0);
  }
}

// Like a download tool that terminates an incomplete file with an end marker.
TEST(JpegMissingRows, AnEndMarkerAtTheTruncationHidesNothing) {
  for (const FileSpec& spec : kinds()) {
    const LaidOutFile laid_out = laid_out_file(spec);
    const size_t middle = laid_out.row_ends.size() / 2;
    Bytes file = cut(laid_out.file, laid_out.row_ends[middle] - 4);
    while (file.back() == 0xFF) file.pop_back();
    file.insert(file.end(), {0xFF, 0xD9});
    Decoder decoder;
    const Window above{0, 0, spec.width, int(middle - 1) * laid_out.mcu};
    const Window below{0, 0, spec.width, int(middle + 1) * laid_out.mcu};
    EXPECT_EQ(verdict(decoder, file, above), "");
    EXPECT_EQ(libjpeg_result(file, above), "");
    EXPECT_EQ(verdict(decoder, file, below), "HR0385");
    EXPECT_EQ(libjpeg_result(file, below), "HR0385");
  }
}

TEST(JpegMissingRows, DamageBridgedByRestartsIsOnlyAWarning) {
  FileSpec spec{.width = 160, .height = 120};
  spec.restart_interval = 4;
  Bytes file = encode(spec);
  const size_t first = marker_offsets(file, 0xD2).at(0), second = marker_offsets(file, 0xD3).at(0);
  ASSERT_GT(second, first + 12);
  file.erase(file.begin() + ptrdiff_t(first) + 6, file.begin() + ptrdiff_t(second));
  Decoder decoder;
  decoder.repair = false;
  const Pixels got = decoder.whole(file);
  EXPECT_TRUE(got.ok) << got.error;
  EXPECT_GT(got.warnings, 0);
}

TEST(JpegMissingRows, AFileThatOnlyLacksItsEndMarkerIsComplete) {
  for (const bool progressive : {false, true}) {
    for (const bool scans : {false, true}) {
      FileSpec spec{.width = 90, .height = 70, .progressive = progressive};
      spec.one_scan_per_component = scans && !progressive;
      const Bytes file = encode(spec);
      Decoder decoder;
      decoder.repair = false;
      const Pixels got = decoder.whole(cut(file, file.size() - 2));
      EXPECT_TRUE(got.ok) << got.error;
      EXPECT_EQ(got.data, oracle(file).data);
    }
  }
}

TEST(JpegMissingRows, ATruncatedProgressiveFileLacksDetailEverywhere) {
  FileSpec spec{.width = 90, .height = 70, .progressive = true};
  const Bytes file = encode(spec);
  const std::vector<size_t> scans = marker_offsets(file, 0xDA);
  ASSERT_GT(scans.size(), 5u);
  Decoder decoder;
  const Window top{0, 0, 90, 8};
  for (const size_t scan : scans) {
    const std::string none = scan == scans[0] ? "HR0302" : "HR0385";  // the header ends there
    EXPECT_EQ(verdict(decoder, cut(file, scan), top), none) << scan;
    EXPECT_EQ(verdict(decoder, cut(file, scan + 14), top), "HR0385") << scan;
    decoder.repair = true;
    EXPECT_TRUE(decoder.whole(cut(file, scan + 14)).ok);
  }
  // Truncated in the last scan: every scan has the rows above that point.
  const Bytes late = cut(file, file.size() - 12);
  EXPECT_EQ(verdict(decoder, late, {0, 0, 90, 70}), "HR0385");
}

TEST(JpegMissingRows, AMarkerInALaterScanDoesNotRemoveRows) {
  const Bytes whole = encode({.width = 90, .height = 70, .progressive = true});
  const std::vector<size_t> scans = marker_offsets(whole, 0xDA);
  Decoder decoder;
  decoder.repair = false;
  for (size_t i = 0; i + 1 < scans.size(); ++i) {
    Bytes file = whole;
    file[scans[i] + 16] = 0xFF;
    file[scans[i] + 17] = 0xD5;
    const Pixels got = decoder.whole(file);
    EXPECT_EQ(got.ok, i > 0) << decoder.last_error.message();
    EXPECT_GT(got.warnings, 0);
  }
}

// A file may stop at any precision; only a missing end is damage.
TEST(JpegMissingRows, AProgressiveFileOfFewScansIsComplete) {
  FileSpec spec{.width = 90, .height = 70, .sampling = {{1, 1}}, .progressive = true};
  spec.scans = {{1, {0}, 0, 0, 0, 0}, {1, {0}, 1, 5, 0, 2}};
  const Bytes file = encode(spec);
  Decoder decoder;
  decoder.repair = false;
  EXPECT_TRUE(decoder.whole(file).ok) << decoder.last_error.message();
}

TEST(JpegMissingRows, FilesWithOneScanPerComponentNeedTheRowsOfEachScan) {
  FileSpec spec{.width = 90, .height = 200, .one_scan_per_component = true};
  const Bytes file = encode(spec);
  const std::vector<size_t> scans = marker_offsets(file, 0xDA);
  ASSERT_EQ(scans.size(), 3u);
  Decoder decoder;
  const Window all{0, 0, 90, 200}, top{0, 0, 90, 8};
  // Without the last component's data no row is complete; with a part of it, those above are.
  EXPECT_EQ(verdict(decoder, cut(file, scans[2]), top), "HR0385");
  const size_t late = (scans[2] + 3 * file.size()) / 4;
  EXPECT_EQ(verdict(decoder, cut(file, late), all), "HR0385");
  EXPECT_EQ(verdict(decoder, cut(file, late), top), "");
}

TEST(JpegMissingRows, ArithmeticCodesEndWithTheFile) {
  FileSpec spec{.width = 90, .height = 200, .arithmetic = true};
  const Bytes file = encode(spec);
  Decoder decoder;
  EXPECT_EQ(verdict(decoder, file, {0, 0, 90, 200}), "");
  const Bytes half = cut(file, file.size() / 2);
  EXPECT_EQ(verdict(decoder, half, {0, 0, 90, 200}), "HR0385");
  EXPECT_EQ(verdict(decoder, half, {0, 0, 90, 16}), "");
}

TEST(JpegMissingRows, ThePackedFormsGiveTheSameResult) {
  FileSpec spec{.width = 500, .height = 400};
  const Bytes whole = encode(spec), file = cut(whole, whole.size() / 2);
  EXPECT_FALSE(dense_from_jpeg(file)) << "a file that lacks rows is stored as it is";
  Decoder decoder;
  EXPECT_FALSE(decoder.coefficients(file));
}

TEST(JpegMissingRows, TheMessageNamesTheRowAndHasAHint) {
  FileSpec spec{.width = 90, .height = 200};
  const Bytes whole = encode(spec);
  Decoder decoder;
  ASSERT_EQ(verdict(decoder, cut(whole, whole.size() / 2), {0, 0, 90, 200}), "HR0385");
  const std::string text = decoder.last_error.message();
  EXPECT_NE(text.find("the data ends above row "), std::string::npos) << text;
  EXPECT_NE(text.find(" of 200"), std::string::npos) << text;
  EXPECT_NE(text.find("damaged=\"repair\""), std::string::npos) << text;
}

}  // namespace
}  // namespace headrace::jpeg_test
