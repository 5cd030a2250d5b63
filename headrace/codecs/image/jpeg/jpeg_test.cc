// SPDX-License-Identifier: Apache-2.0
// Tests of the JPEG codec on single files. Expected values come from libjpeg-turbo (the reference
// in jpeg_test_images.h), from Pillow's published formulas, or from the file's maker.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string>

#include "headrace/base/pages.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/exif.h"
#include "headrace/codecs/image/jpeg/decode/session.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace::jpeg_test {
namespace {

Bytes with_app1(const Bytes& jpeg, Bytes body) {
  Bytes out(jpeg.begin(), jpeg.begin() + 2);
  const size_t length = body.size() + 2;
  out.insert(out.end(), {0xFF, 0xE1, uint8_t(length >> 8), uint8_t(length)});
  out.insert(out.end(), body.begin(), body.end());
  out.insert(out.end(), jpeg.begin() + 2, jpeg.end());
  return out;
}

Bytes tiff(bool big, uint16_t type, uint16_t value) {
  Bytes out = big ? Bytes{'M', 'M', 0, 42} : Bytes{'I', 'I', 42, 0};
  auto put = [&](uint32_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(uint8_t(number >> 8 * (big ? bytes - 1 - i : i)));
  };
  put(8, 4);
  put(2, 2);
  for (const uint32_t tag : {0x010Fu, 0x0112u}) {
    put(tag, 2);
    put(tag == 0x0112 ? type : 3, 2);
    put(1, 4);
    if (type == 4) {
      put(value, 4);
    } else {
      put(value, 2);
      put(0, 2);
    }
  }
  put(0, 4);
  return out;
}

Bytes exif(const Bytes& tiff) {
  Bytes out = {'E', 'x', 'i', 'f', 0, 0};
  out.insert(out.end(), tiff.begin(), tiff.end());
  return out;
}

TEST(JpegCodec, IsFoundByItsFirstBytes) {
  ASSERT_NE(Decoder::codec(), nullptr);
  EXPECT_EQ(Decoder::codec()->name, "jpeg");
  const Bytes png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_FALSE(Decoder::codec()->sniff(png));
}

TEST(JpegHeader, GivesTheEncodersSettings) {
  Decoder decoder;
  Result<ImageHeader> header = decoder.header(encode({.width = 321, .height = 123}));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->width, 321);
  EXPECT_EQ(header->height, 123);
  EXPECT_EQ(header->channels, 3);
  EXPECT_EQ(header->bits, 8);
  EXPECT_EQ(header->exif_orientation, 1);
  EXPECT_EQ(decoder.header(encode(gray(5, 7)))->channels, 1);
  EXPECT_EQ(decoder.header(encode(cmyk(true, JCS_YCCK)))->channels, 4);
}

TEST(JpegHeader, ProgressiveFilesAnnounceTheirCoefficients) {
  Decoder decoder;
  const FileSpec plain{.width = 800, .height = 600};
  FileSpec progressive = plain, scans = plain;
  progressive.progressive = true;
  scans.one_scan_per_component = true;
  const size_t coefficients = size_t{800} * 608 * 3 / 2 * sizeof(JCOEF);
  EXPECT_LT(decoder.header(encode(plain))->working_bytes, size_t{1} << 20);
  EXPECT_GT(decoder.header(encode(progressive))->working_bytes, coefficients);
  EXPECT_GT(decoder.header(encode(scans))->working_bytes, coefficients);
}

// Measures the heap while an image is being decoded.
class HeapMeter : public RowSink {
 public:
  HeapMeter() : before_(held()) {}
  void rows(const RowBlock&) override { most_ = std::max(most_, held() - before_); }
  size_t most() const { return most_; }

 private:
  static size_t held() {  // zero under sanitizers, which have their own allocator
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd + mapped_bytes();
  }
  size_t before_, most_ = 0;
};

TEST(JpegHeader, WorkingBytesCoverAllocationsOfDecoding) {
  for (const std::vector<Factors>& sampling : {std::vector<Factors>{{1, 1}},
                                               {{1, 1}, {1, 1}, {1, 1}},
                                               {{2, 2}, {1, 1}, {1, 1}},
                                               {{1, 4}, {1, 1}, {1, 1}},
                                               {{2, 2}, {1, 1}, {1, 1}, {2, 2}}}) {
    for (const auto& [progressive, damaged] :
         {std::pair{false, false}, {true, false}, {true, true}}) {
      for (const int width : {16, 1500}) {
        FileSpec spec{.width = width, .height = damaged ? 24 : 1100, .sampling = sampling};
        spec.progressive = progressive;
        if (sampling.size() == 4) spec.file_space = JCS_CMYK;
        Bytes jpeg = encode(spec);
        // Our own decoder stops after the first rows, and libjpeg then decodes the whole image.
        if (damaged) std::fill_n(jpeg.end() - jpeg.size() / 8, 24, uint8_t{0});
        Buffer bytes(jpeg.size());
        std::copy(jpeg.begin(), jpeg.end(), bytes.data());
        const std::unique_ptr<ImageDecoder> decoder = Decoder::codec()->make();
        Result<ImageHeader> header = decoder->read_header(bytes.bytes());
        ASSERT_TRUE(header);
        HeapMeter watch;
        DecodeJob job;
        job.bytes = bytes.bytes();
        job.window = {0, 0, width, spec.height};
        job.color = ColorMode::kGray;
        job.sink = &watch;
        decoder->decode({&job, 1});
        ASSERT_TRUE(job.result);
        EXPECT_LE(watch.most(), header->working_bytes) << width << " " << sampling.size();
      }
    }
  }
}

TEST(JpegHeader, AHugeImageAllocatesNothingUntilDecoded) {
  for (const bool progressive : {false, true}) {
    Bytes bytes = encode({.width = 16, .height = 16, .progressive = progressive});
    const size_t frame = marker_offsets(bytes, progressive ? 0xC2 : 0xC0).at(0);
    for (const size_t at : {frame + 5, frame + 7}) {
      bytes[at] = 65500 >> 8;
      bytes[at + 1] = 65500 & 255;
    }
    Decoder decoder;
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    Result<ImageHeader> header = decoder.header(bytes);
    getrusage(RUSAGE_SELF, &after);
    ASSERT_TRUE(header);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 4096);  // KiB
    EXPECT_EQ(header->width, 65500);
    EXPECT_FALSE(check_limits(*header, DecodeLimits{}));
    if (progressive) {
      EXPECT_GT(header->working_bytes, size_t{65500} * 65500 * 3);
    }
  }
}

TEST(JpegExif, OrientationIsReadInBothByteOrders) {
  const Bytes jpeg = encode(gray(8, 8));
  Decoder decoder;
  for (const bool big : {false, true}) {
    for (int value = 1; value <= 8; ++value) {
      for (const uint16_t type : {3, 4}) {
        const Bytes file = with_app1(jpeg, exif(tiff(big, type, uint16_t(value))));
        EXPECT_EQ(decoder.header(file)->exif_orientation, value);
      }
    }
    for (const uint16_t value : {0, 9, 65535}) {
      EXPECT_EQ(decoder.header(with_app1(jpeg, exif(tiff(big, 3, value))))->exif_orientation, 1);
    }
  }
}

TEST(JpegExif, TruncatedOrInvalidExifIsTreatedAsUpright) {
  const Bytes good = tiff(false, 3, 6);
  ASSERT_EQ(orientation_tag(good), 6);
  const size_t needed = 8 + 2 + 2 * 12;
  for (size_t length = 0; length < needed; ++length) {
    const Bytes cut(good.begin(), good.begin() + length);  // exact length: ASan detects any overrun
    EXPECT_EQ(orientation_tag(cut), 0) << length;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int value : {0, 1, 127, 128, 255}) {
      Bytes bad = good;
      bad[at] = uint8_t(value);
      const int orientation = orientation_tag(bad);
      EXPECT_TRUE(orientation >= 0 && orientation <= 8);
    }
  }
}

TEST(JpegErrors, UnsupportedKindsAreRefusedAndNamed) {
  const Bytes jpeg = encode({});
  const size_t frame = marker_offsets(jpeg, 0xC0).at(0);
  Decoder decoder;
  const auto expect = [&](Bytes bytes, std::string_view name) {
    Result<ImageHeader> header = decoder.header(bytes);
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().code->id, "HR0303") << header.error().message();
    EXPECT_EQ(header.error().code->kind, ErrorKind::kUnsupported);
    EXPECT_NE(header.error().what.find(name), std::string::npos) << header.error().message();
  };
  Bytes twelve = jpeg;
  twelve[frame + 1] = 0xC1;
  twelve[frame + 4] = 12;
  expect(twelve, "12-bit");
  Bytes lossless = jpeg;
  lossless[frame + 1] = 0xC3;
  expect(lossless, "lossless");
  Bytes hierarchical = jpeg;
  hierarchical[frame + 1] = 0xC5;
  expect(hierarchical, "hierarchical");
  Bytes ls = jpeg;
  ls[frame + 1] = 0xF7;
  expect(ls, "JPEG-LS");
}

TEST(JpegErrors, NameTheProblemAndItsOffset) {
  Decoder decoder;
  const Bytes jpeg = encode({});
  Result<ImageHeader> empty = decoder.header({});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code->id, "HR0302");
  const Bytes cut(jpeg.begin(), jpeg.begin() + 100);
  Result<ImageHeader> header = decoder.header(cut);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code->id, "HR0302");
  EXPECT_FALSE(header.error().what.empty());
  EXPECT_FALSE(header.error().hint.empty());
  EXPECT_EQ(header.error().where.offset, 100);
}

TEST(JpegErrors, NothingIsPrinted) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  Decoder decoder;
  Bytes jpeg = encode({});
  jpeg.resize(jpeg.size() / 2);
  EXPECT_GT(decoder.whole(jpeg).warnings, 0);
  jpeg.resize(50);
  EXPECT_FALSE(decoder.whole(jpeg).ok);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(JpegErrors, AWindowOutsideTheImageIsAnError) {
  Decoder decoder;
  EXPECT_FALSE(decoder.window(encode(gray(8, 8)), {0, 0, 9, 8}, ColorMode::kGray, 1).ok);
  EXPECT_EQ(decoder.last_code(), "HR0308");
}

TEST(JpegDecoder, AnImageNeverSeesThePreviousOnesTables) {
  // Without DHT a fresh libjpeg-turbo uses the standard tables; without DQT it reports an error. A
  // previous image's optimized and unusual tables must change neither.
  FileSpec spec{.quality = 40};
  const Bytes progressive = encode({.progressive = true, .quality = 97});
  const Bytes jpeg = encode(spec);
  for (const int marker : {0xC4, 0xDB}) {
    Bytes stripped = jpeg;
    for (auto at = marker_offsets(stripped, marker); !at.empty();
         at = marker_offsets(stripped, marker)) {
      const size_t length = stripped[at[0] + 2] << 8 | stripped[at[0] + 3];
      stripped.erase(stripped.begin() + at[0], stripped.begin() + at[0] + 2 + length);
    }
    Decoder decoder;
    EXPECT_TRUE(decoder.whole(progressive).ok);
    const Pixels expected = oracle(stripped);
    const Pixels got = decoder.whole(stripped);
    EXPECT_EQ(got.ok, expected.ok) << expected.error;
    if (expected.ok) {
      EXPECT_EQ(got.data, expected.data);
    }
    EXPECT_EQ(expected.ok, marker == 0xC4);
  }
}

TEST(JpegDecoder, SeveralJobsAreIndependent) {
  const Bytes good = encode({.width = 40, .height = 30});
  Buffer first(good.size()), second(size_t{20});
  std::copy(good.begin(), good.end(), first.data());
  std::copy_n(good.begin(), 20, second.data());
  Collector a(40, 30, 3), b(40, 30, 3), c(40, 30, 3);
  std::array<DecodeJob, 3> jobs;
  for (DecodeJob& job : jobs) job.window = {0, 0, 40, 30};
  jobs[0].bytes = jobs[2].bytes = first.bytes();
  jobs[1].bytes = second.bytes();
  jobs[0].sink = &a;
  jobs[1].sink = &b;
  jobs[2].sink = &c;
  const std::unique_ptr<ImageDecoder> decoder = Decoder::codec()->make();
  decoder->decode(jobs);
  EXPECT_TRUE(jobs[0].result);
  EXPECT_FALSE(jobs[1].result);
  EXPECT_TRUE(jobs[2].result);
  const Pixels expected = oracle(good);
  EXPECT_EQ(a.pixels.data, expected.data);
  EXPECT_EQ(c.pixels.data, expected.data);
}

TEST(JpegDecoder, AScanBombIsRefused) {
  // Repeats the last scan many times: legal syntax, without end.
  const Bytes jpeg = encode({.width = 16, .height = 16, .progressive = true});
  const size_t last_scan = marker_offsets(jpeg, 0xDA).back();
  const auto repeated = [&](int scans) {
    Bytes bomb(jpeg.begin(), jpeg.end() - 2);
    const int first = int(marker_offsets(jpeg, 0xDA).size());
    for (int i = first; i < scans; ++i) {
      bomb.insert(bomb.end(), jpeg.begin() + last_scan, jpeg.end() - 2);
    }
    bomb.insert(bomb.end(), {0xFF, 0xD9});
    return bomb;
  };
  Decoder decoder;
  EXPECT_TRUE(decoder.whole(repeated(JpegSession::kMaxScans)).ok) << decoder.last_error.message();
  EXPECT_FALSE(decoder.whole(repeated(JpegSession::kMaxScans + 1)).ok);
  EXPECT_EQ(decoder.last_code(), "HR0306");
  EXPECT_FALSE(decoder.coefficients(repeated(JpegSession::kMaxScans + 1)));
  EXPECT_TRUE(decoder.whole(jpeg).ok);  // and the decoder still works
}

TEST(JpegCoefficients, EqualThoseInTheFile) {
  // Written into a new file by libjpeg's transcoder, they must give the same pixels; they must also
  // equal what a fresh libjpeg reads.
  Decoder decoder;
  for (const bool progressive : {false, true}) {
    const FileSpec spec{.width = 83,
                        .height = 61,
                        .sampling = {{2, 2}, {1, 2}, {2, 1}},
                        .progressive = progressive};
    const Bytes jpeg = encode(spec);
    Result<std::vector<CoefficientPlane>> planes = decoder.coefficients(jpeg);
    ASSERT_TRUE(planes);
    ASSERT_EQ(planes->size(), 3u);

    jpeg_decompress_struct cinfo{};
    jpeg_error_mgr errors{};
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, jpeg.data(), jpeg.size());
    jpeg_read_header(&cinfo, TRUE);
    jvirt_barray_ptr* blocks = jpeg_read_coefficients(&cinfo);
    for (int c = 0; c < 3; ++c) {
      const CoefficientPlane& plane = (*planes)[c];
      EXPECT_EQ(plane.h_sampling, spec.sampling[c].h);
      EXPECT_EQ(plane.v_sampling, spec.sampling[c].v);
      EXPECT_EQ(plane.blocks_wide, (83 * spec.sampling[c].h + 15) / 16);
      EXPECT_EQ(plane.blocks_high, (61 * spec.sampling[c].v + 15) / 16);
      ASSERT_EQ(plane.coefficients.size(), size_t(plane.blocks_wide) * plane.blocks_high * 64);
      const JQUANT_TBL* table = cinfo.quant_tbl_ptrs[cinfo.comp_info[c].quant_tbl_no];
      EXPECT_TRUE(
          std::equal(plane.quantization.begin(), plane.quantization.end(), table->quantval));
      for (int y = 0; y < plane.blocks_high; ++y) {
        JBLOCKARRAY row = cinfo.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&cinfo),
                                                        blocks[c], JDIMENSION(y), 1, FALSE);
        EXPECT_EQ(std::memcmp(&plane.coefficients[size_t(y) * plane.blocks_wide * 64], row[0],
                              size_t(plane.blocks_wide) * 128),
                  0);
      }
    }
    jpeg_destroy_decompress(&cinfo);
  }
}

TEST(JpegCoefficients, FailForADamagedFile) {
  Decoder decoder;
  Bytes jpeg = encode({});
  jpeg.resize(jpeg.size() * 3 / 4);
  Result<std::vector<CoefficientPlane>> planes = decoder.coefficients(jpeg);
  ASSERT_FALSE(planes);
  EXPECT_EQ(planes.error().code->id, "HR0305");
}

}  // namespace
}  // namespace headrace::jpeg_test
