// SPDX-License-Identifier: Apache-2.0
// From quantized blocks to pixel rows, stage by stage and at every SIMD level, compared with
// libjpeg-turbo's own code for the same stage, which is called inside of its decompressor. The
// blocks come from a picture made by the tests' encoder.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/photos.h"
#include "headrace/codecs/image/jpeg/decode/rows.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/idct.h"
// Must be included after jpeglib.h: the decompressor's internal stages.
#include "jpegint.h"

namespace headrace {
namespace {

using jpeg_test::Bytes;
using jpeg_test::Factors;

constexpr int kWidth = 500, kHeight = 375;

struct Sampling {
  const char* name;
  std::vector<Factors> factors;
};
const Sampling kSamplings[] = {{"444", {{1, 1}, {1, 1}, {1, 1}}},
                               {"422", {{2, 1}, {1, 1}, {1, 1}}},
                               {"420", {{2, 2}, {1, 1}, {1, 1}}},
                               {"440", {{1, 2}, {1, 1}, {1, 1}}},
                               {"411", {{4, 1}, {1, 1}, {1, 1}}}};

// The coefficients of a picture, ready for idct_row().
struct Source {
  explicit Source(const Sampling& sampling)
      : bytes(jpeg_test::encode(
            {.width = kWidth, .height = kHeight, .sampling = sampling.factors, .quality = 90})) {
    jpeg_test::Decoder decoder;
    planes = std::move(*decoder.coefficients(bytes));
    frame.width = kWidth;
    frame.height = kHeight;
    frame.count = static_cast<int>(planes.size());
    for (size_t c = 0; c < planes.size(); ++c) {
      frame.component[c].h = planes[c].h_sampling;
      frame.component[c].v = planes[c].v_sampling;
    }
    lay_out(frame);
    for (size_t c = 0; c < planes.size(); ++c) {
      const CoefficientPlane& plane = planes[c];
      tables[c].set(plane.quantization);
      const size_t count = plane.coefficients.size();
      Buffer& to = blocks.emplace_back(count * sizeof(int16_t));
      for (size_t i = 0; i < count; ++i) {
        reinterpret_cast<int16_t*>(to.data())[i / 64 * 64 + kIdctFromNatural[i % 64]] =
            plane.coefficients[i];
      }
    }
  }
  const int16_t* row(int c, int y, int first) const {
    const auto* all = reinterpret_cast<const int16_t*>(blocks[c].data());
    return all + (ptrdiff_t{y} * planes[c].blocks_wide + first) * 64;
  }

  Bytes bytes;
  JpegFrame frame;
  std::vector<CoefficientPlane> planes;
  std::vector<Buffer> blocks;
  std::array<IdctTable, 4> tables;
};

// A decompressor positioned before its first row.
struct Libjpeg {
  explicit Libjpeg(const Bytes& bytes) {
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, bytes.data(), static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&cinfo, TRUE);
    jpeg_start_decompress(&cinfo);
  }
  ~Libjpeg() { jpeg_destroy_decompress(&cinfo); }

  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
};

void count_blocks(benchmark::State& state, int64_t blocks) {
  state.counters["ns/block"] =
      benchmark::Counter(double(blocks) * 1e-9, benchmark::Counter::kIsIterationInvariantRate |
                                                    benchmark::Counter::kInvert);
}
void count_pixels(benchmark::State& state) {
  state.counters["us/MP"] = benchmark::Counter(
      double(kWidth) * kHeight * 1e-12,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Luma rows of blocks, colder in the L1 cache than in a decoder.
void idct(benchmark::State& state, SimdLevel level) {
  set_simd_level(level);
  const Source source(kSamplings[0]);
  const CoefficientPlane& plane = source.planes[0];
  const ptrdiff_t stride = plane.blocks_wide * 8 + 64;
  Buffer out(size_t(8 * stride));
  constexpr int kRows = 4;  // 32 KB of coefficients
  for (auto _ : state) {
    for (int y = 0; y < kRows; ++y) {
      idct_row(source.tables[0], {.first = source.row(0, y, 0)}, plane.blocks_wide, out.data(),
               stride);
    }
    benchmark::ClobberMemory();
  }
  count_blocks(state, int64_t{kRows} * plane.blocks_wide);
}

void idct_libjpeg(benchmark::State& state) {
  const Source source(kSamplings[0]);
  Libjpeg turbo(source.bytes);
  const CoefficientPlane& plane = source.planes[0];
  const size_t stride = size_t(plane.blocks_wide) * 8 + 64;
  Buffer out(8 * stride);
  Buffer aligned(plane.coefficients.size() * sizeof(int16_t));
  std::copy(plane.coefficients.begin(), plane.coefficients.end(),
            reinterpret_cast<int16_t*>(aligned.data()));
  JSAMPROW rows[8];
  for (int i = 0; i < 8; ++i) rows[i] = out.data() + i * stride;
  constexpr int kRows = 4;
  for (auto _ : state) {
    auto* block = reinterpret_cast<JCOEF*>(aligned.data());
    for (int y = 0; y < kRows; ++y) {
      for (int x = 0; x < plane.blocks_wide; ++x, block += 64) {
        turbo.cinfo.idct->inverse_DCT[0](&turbo.cinfo, &turbo.cinfo.comp_info[0], block, rows,
                                         JDIMENSION(8 * x));
      }
    }
    benchmark::ClobberMemory();
  }
  count_blocks(state, int64_t{kRows} * plane.blocks_wide);
}

// Upsampling and color conversion: the samples are in place and arbitrary.
void pixels(benchmark::State& state, SimdLevel level, const Sampling& sampling, bool transform) {
  set_simd_level(level);
  const Source source(sampling);
  JpegRows rows;
  bench::Drop sink;
  for (auto _ : state) {
    rows.begin(source.frame, {0, 0, kWidth, kHeight}, ColorMode::kRGB, &sink);
    for (int m = rows.first_mcu_row(); m < rows.end_mcu_row(); ++m) {
      for (int c = 0; transform && c < source.frame.count; ++c) {
        for (int i = 0; i < source.frame.component[c].v; ++i) {
          const int y = m * source.frame.component[c].v + i;
          if (!rows.needs_block_row(c, y)) continue;
          const JpegRows::Place place = rows.place(c, y);
          idct_row(source.tables[c], {.first = source.row(c, y, rows.columns(c).first)},
                   rows.columns(c).count(), place.samples, place.stride);
        }
      }
      rows.finish(m);
    }
  }
  count_pixels(state);
}

void pixels_libjpeg(benchmark::State& state, const Sampling& sampling) {
  const Source source(sampling);
  Libjpeg turbo(source.bytes);
  jpeg_decompress_struct& cinfo = turbo.cinfo;
  // A single row of samples represents all rows of a component, with neighbors above and below.
  Buffer samples(kWidth + 256), out(3 * kWidth + 256);
  std::vector<JSAMPROW> pointers(64 + 8 * size_t(kHeight), samples.data() + 64);
  JSAMPARRAY input[3] = {&pointers[16], &pointers[16], &pointers[16]};
  JSAMPROW row = out.data() + 8;
  for (auto _ : state) {
    cinfo.upsample->start_pass(&cinfo);
    JDIMENSION group = 0;
    for (int y = 0; y < kHeight; ++y) {
      JDIMENSION done = 0;
      cinfo.upsample->upsample(&cinfo, input, &group, JDIMENSION(kHeight), &row, &done, 1);
    }
    benchmark::ClobberMemory();
  }
  count_pixels(state);
}

const bool registered = [] {
  benchmark::RegisterBenchmark("idct/libjpeg-turbo", idct_libjpeg);
  for (const SimdLevel level : available_levels()) {
    benchmark::RegisterBenchmark(("idct/" + std::string(name_of(level))).c_str(), idct, level);
  }
  for (const Sampling& sampling : kSamplings) {
    const std::string name = std::string("upsample and color/") + sampling.name + "/";
    benchmark::RegisterBenchmark((name + "libjpeg-turbo").c_str(), pixels_libjpeg, sampling);
    for (const SimdLevel level : available_levels()) {
      const std::string level_name(name_of(level));
      benchmark::RegisterBenchmark((name + level_name).c_str(), pixels, level, sampling, false);
      benchmark::RegisterBenchmark(
          ("blocks to pixels/" + std::string(sampling.name) + "/" + level_name).c_str(), pixels,
          level, sampling, true);
    }
  }
  return true;
}();

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
