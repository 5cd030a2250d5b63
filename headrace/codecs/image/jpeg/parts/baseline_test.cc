// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/codecs/image/jpeg/parts/parts.h"
#include "headrace/codecs/image/jpeg/parts/parts_test_files.h"

namespace headrace {
namespace {

using jpeg_test::Bytes;
using jpeg_test::Factors;
using jpeg_test::FileSpec;

TEST(BaselineJpeg, HasTheSamePixelsAndTheBestTables) {
  for (const std::vector<Factors>& sampling : test_samplings()) {
    for (const bool progressive : {false, true}) {
      for (const int quality : {3, 85, 100}) {
        FileSpec spec{.width = 157, .height = 101, .sampling = sampling, .quality = quality};
        spec.progressive = progressive;
        if (sampling.size() == 4) spec.file_space = JCS_YCCK, spec.adobe = true;
        SCOPED_TRACE(testing::Message() << sampling.size() << " components, " << sampling[0].h
                                        << "x" << sampling[0].v << ", quality " << quality);
        const Bytes file = jpeg_test::encode(spec);
        const Result<JpegParts> parts = split_jpeg(file);
        ASSERT_TRUE(parts);
        const Result<Bytes> baseline = baseline_jpeg(*parts);
        ASSERT_TRUE(baseline) << baseline.error().message();
        EXPECT_EQ(jpeg_test::marker_offsets(*baseline, 0xC0).size(), 1u);
        const J_COLOR_SPACE space = sampling.size() == 1 ? JCS_GRAYSCALE : JCS_RGB;
        const jpeg_test::Pixels expected = jpeg_test::oracle(file, space);
        const jpeg_test::Pixels got = jpeg_test::oracle(*baseline, space);
        ASSERT_EQ(got.data, expected.data);
        EXPECT_EQ(got.warnings, 0);
        // libjpeg's own optimized file of the same image, without its additional header segments.
        spec.progressive = false;
        const Bytes best = encode_with(spec, JpegScript{}, true);
        EXPECT_EQ(entropy_bytes(*baseline), entropy_bytes(best));
      }
    }
  }
}

TEST(BaselineJpeg, PreservesColors) {
  for (const FileSpec& spec :
       {FileSpec{.sampling = {{1, 1}, {1, 1}, {1, 1}}, .file_space = JCS_RGB, .progressive = true},
        jpeg_test::cmyk(true, JCS_CMYK), jpeg_test::cmyk(true, JCS_YCCK),
        jpeg_test::cmyk(false, JCS_CMYK)}) {
    const Bytes file = jpeg_test::encode(spec);
    const Result<Bytes> baseline = baseline_jpeg(*split_jpeg(file));
    ASSERT_TRUE(baseline);
    EXPECT_EQ(jpeg_test::oracle(*baseline).data, jpeg_test::oracle(file).data);
  }
}

}  // namespace
}  // namespace headrace
