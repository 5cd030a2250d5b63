// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/headers/frame.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "jpeglib.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

void add_segment(Bytes& file, int marker, std::initializer_list<int> body) {
  const size_t length = body.size() + 2;
  file.insert(file.end(), {0xFF, uint8_t(marker), uint8_t(length >> 8), uint8_t(length & 0xFF)});
  for (const int byte : body) file.push_back(uint8_t(byte));
}

// Everything that libjpeg considers before it decides: the segments up to the first scan.
Bytes header_with(int count, const std::array<int, 4>& ids, bool jfif, int adobe_transform) {
  Bytes file = {0xFF, 0xD8};
  if (jfif) add_segment(file, 0xE0, {'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0});
  if (adobe_transform != kNoAdobeMarker) {
    add_segment(file, 0xEE, {'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, adobe_transform});
  }
  const size_t length = 8 + 3 * size_t(count);
  file.insert(file.end(), {0xFF, 0xC0, 0, uint8_t(length), 8, 0, 8, 0, 8, uint8_t(count)});
  for (int c = 0; c < count; ++c) file.insert(file.end(), {uint8_t(ids[c]), 0x11, 0});
  file.insert(file.end(), {0xFF, 0xDA, 0, uint8_t(6 + 2 * count), uint8_t(count)});
  for (int c = 0; c < count; ++c) file.insert(file.end(), {uint8_t(ids[c]), 0});
  file.insert(file.end(), {0, 63, 0, 0xFF, 0xD9});
  return file;
}

J_COLOR_SPACE guessed_by_libjpeg(const Bytes& file) {
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);  // an error here is a bug in the test and aborts it
  errors.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, file.data(), file.size());
  jpeg_read_header(&cinfo, TRUE);
  const J_COLOR_SPACE guess = cinfo.jpeg_color_space;
  jpeg_destroy_decompress(&cinfo);
  return guess;
}

J_COLOR_SPACE libjpeg_color_space_of(JpegColor color) {
  switch (color) {
    case JpegColor::kGray:
      return JCS_GRAYSCALE;
    case JpegColor::kYCbCr:
      return JCS_YCbCr;
    case JpegColor::kRGB:
      return JCS_RGB;
    case JpegColor::kCMYK:
      return JCS_CMYK;
    case JpegColor::kYCCK:
      return JCS_YCCK;
  }
  return JCS_UNKNOWN;
}

TEST(JpegColorSpace, EqualsLibjpegsGuess) {
  const std::array<std::array<int, 4>, 6> ids = {{{1, 2, 3, 4},
                                                  {0, 1, 2, 3},
                                                  {'R', 'G', 'B', 'A'},
                                                  {'r', 'g', 'b', 'a'},
                                                  {'C', 'M', 'Y', 'K'},
                                                  {34, 35, 36, 37}}};
  for (const int count : {1, 3, 4}) {
    for (const std::array<int, 4>& names : ids) {
      for (const bool jfif : {false, true}) {
        for (const int transform : {kNoAdobeMarker, 0, 1, 2, 3, 255}) {
          SCOPED_TRACE(testing::Message() << count << " components, ids from " << names[0]
                                          << ", JFIF " << jfif << ", transform " << transform);
          EXPECT_EQ(libjpeg_color_space_of(jpeg_color_of(count, names, jfif, transform)),
                    guessed_by_libjpeg(header_with(count, names, jfif, transform)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
