// SPDX-License-Identifier: Apache-2.0
// One core, pictures in memory: how long a picture takes from its stored bytes to a training sample
// (random resized crop to 224 x 224, flip, normalize, float16), in each format that Headrace reads,
// at each SIMD level and the one without pdep, compared with libjpeg-turbo, which only decodes the
// same picture to RGB. "all" are the pictures of the folder HEADRACE_BENCH_PHOTOS, otherwise
// HEADRACE_TEST_DATA's photos/, otherwise generated ones; "420" those of them with 4:2:0 chroma.
// Names are work/format/pictures/level.
//
// For comparable figures: --benchmark_enable_random_interleaving --benchmark_repetitions=9, and the
// minimum time of each.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "bench/micro/photos.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/image/render.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

constexpr int kSize = 224, kChannels = 3;
constexpr size_t kSampleBytes = size_t{kChannels} * kSize * kSize * 2;
constexpr int kBatch = 128;  // 38 MB of float16: samples are written to cold memory
constexpr int kGroup = 12;   // pictures rendered together, like a loader's worker does

// Pictures in one format.
struct Form {
  std::vector<Buffer> files;
  std::vector<std::vector<uint8_t>> row_indexes;  // empty, or one per file
};

struct Crop {
  Window window;
  bool flip = false;
};

struct Pictures {
  std::string name;
  Form plain, indexed, packed, dense;
  std::vector<Crop> crops;
  size_t size() const { return crops.size(); }
};

std::vector<Buffer> read_files() {
  const char* const photos = std::getenv("HEADRACE_BENCH_PHOTOS");
  std::vector<Buffer> files =
      bench::pictures_below(photos ? photos : bench::test_data("photos"), "jpeg");
  for (int i = 0; files.size() == size_t(i) && i < 20; ++i) {  // no pictures found
    const jpeg_test::FileSpec half = {.width = 467, .height = 397};
    jpeg_test::FileSpec full = half;
    full.sampling = {{1, 1}, {1, 1}, {1, 1}};
    files.push_back(bench::buffer_from(jpeg_test::encode(i % 2 ? half : full)));
  }
  return files;
}

struct Kind {
  bool usable = false;  // a JPEG that libjpeg converts to RGB
  bool is_420 = false;
};

Kind kind_of(std::span<const uint8_t> file) {
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, file.data(), file.size());
  jpeg_read_header(&cinfo, TRUE);
  const auto factors = [&](int c, int h, int v) {
    return cinfo.comp_info[c].h_samp_factor == h && cinfo.comp_info[c].v_samp_factor == v;
  };
  Kind kind{.usable = cinfo.num_components == 1 || cinfo.num_components == 3};
  kind.is_420 =
      cinfo.num_components == 3 && factors(0, 2, 2) && factors(1, 1, 1) && factors(2, 1, 1);
  jpeg_destroy_decompress(&cinfo);
  return kind;
}

template <class T>
const Result<T>& required(const Result<T>& result) {
  if (result) return result;
  std::fprintf(stderr, "one_core_bench: %s\n", result.error().what.c_str());
  std::exit(1);
}

Pictures make_pictures(std::string name, const std::vector<const Buffer*>& files) {
  Pictures made;
  made.name = std::move(name);
  int left_out = 0;
  Renderer renderer;
  const auto decoder = jpeg_test::Decoder::codec()->make();
  std::mt19937 engine(1);
  for (const Buffer* file : files) {
    const Result<std::vector<uint8_t>> packed = pack_jpeg(file->bytes(), PackLevel::kFast);
    const Result<std::vector<uint8_t>> dense = pack_jpeg(file->bytes(), PackLevel::kDense);
    const Result<std::vector<uint8_t>> index = decoder->row_index(file->bytes());
    if (!packed || !index || index->empty()) {
      ++left_out;
      continue;
    }
    const Result<EncodedImage> picture = renderer.open(file->bytes(), {});
    const ImageHeader& header = required(picture)->header;
    const Window window = bench::random_resized_crop(header.width, header.height, engine);
    made.crops.push_back({window, made.crops.size() % 2 == 1});
    made.plain.files.push_back(bench::buffer_from(file->bytes()));
    made.indexed.files.push_back(bench::buffer_from(file->bytes()));
    made.indexed.row_indexes.push_back(*index);
    made.packed.files.push_back(bench::buffer_from(*packed));
    if (dense) made.dense.files.push_back(bench::buffer_from(*dense));
  }
  std::fprintf(stderr, "%s: %zu pictures; %d more that have no index or no packed form\n",
               made.name.c_str(), made.size(), left_out);
  return made;
}

const PixelMap* normalized_float16() {
  return PixelMap::identity(DType::kUInt8)
      ->then({.dtype = DType::kFloat32, .scale = true, .mean = {}, .std = {}})
      ->then({.kind = MapStep::Kind::kNormalize,
              .mean = {0.485f, 0.456f, 0.406f},
              .std = {0.229f, 0.224f, 0.225f}})
      ->then({.dtype = DType::kFloat16, .mean = {}, .std = {}});
}

void report(benchmark::State& state, const Pictures& pictures, const Form& form) {
  size_t bytes = 0;
  for (const Buffer& file : form.files) bytes += file.size();
  for (const auto& index : form.row_indexes) bytes += index.size();
  state.SetItemsProcessed(state.iterations() * int64_t(pictures.size()));
  state.counters["pictures"] = double(pictures.size());
  state.counters["bytes"] = double(bytes);
  state.counters["us_per_picture"] =
      benchmark::Counter(double(state.iterations() * pictures.size()) * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// The typical loop of a program, with one decompressor for all pictures.
void libjpeg(benchmark::State& state, const Pictures& pictures, bool only_coefficients) {
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&cinfo);
  std::vector<uint8_t> pixels;
  for (auto _ : state) {
    for (const Buffer& file : pictures.plain.files) {
      jpeg_mem_src(&cinfo, file.data(), file.size());
      jpeg_read_header(&cinfo, TRUE);
      if (only_coefficients) {
        benchmark::DoNotOptimize(jpeg_read_coefficients(&cinfo));
      } else {
        cinfo.out_color_space = JCS_RGB;
        jpeg_start_decompress(&cinfo);
        const size_t stride = size_t{cinfo.output_width} * 3;
        pixels.resize(std::max(pixels.size(), stride * cinfo.output_height));
        while (cinfo.output_scanline < cinfo.output_height) {
          JSAMPROW row = pixels.data() + stride * cinfo.output_scanline;
          jpeg_read_scanlines(&cinfo, &row, 1);
        }
      }
      jpeg_abort_decompress(&cinfo);
    }
  }
  jpeg_destroy_decompress(&cinfo);
  report(state, pictures, pictures.plain);
}

void decode(benchmark::State& state, const Pictures& pictures, const Form& form, bool whole,
            SimdForm simd) {
  set_simd_form(simd);
  const CodecRecord* const codec = codec_of(form.files.front().bytes());
  const auto decoder = codec->make();
  std::vector<Window> windows;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const Result<ImageHeader> header = decoder->read_header(form.files[i].bytes());
    windows.push_back(whole ? Window{0, 0, required(header)->width, header->height}
                            : pictures.crops[i].window);
  }
  bench::Drop sink;
  std::vector<DecodeJob> jobs;
  for (auto _ : state) {
    for (size_t first = 0; first < pictures.size(); first += kGroup) {
      jobs.clear();
      for (size_t i = first; i < std::min(first + kGroup, pictures.size()); ++i) {
        jobs.push_back({.bytes = form.files[i].bytes(), .window = windows[i], .result = {}});
        jobs.back().sink = &sink;
        if (!form.row_indexes.empty()) jobs.back().row_index.known = form.row_indexes[i];
      }
      decoder->decode(jobs);
      for (const DecodeJob& job : jobs) required(job.result);
    }
  }
  report(state, pictures, form);
}

Recipe recipe_of(Renderer& renderer, const Form& form, size_t i, const Crop& crop,
                 const PixelMap* map) {
  Result<EncodedImage> picture = renderer.open(form.files[i].bytes(), {});
  required(picture);
  if (!form.row_indexes.empty()) picture->row_index.known = form.row_indexes[i];
  Recipe recipe(std::move(*picture));
  (void)recipe.crop(crop.window);
  (void)recipe.resize({kSize, kSize}, Filter::kBilinear);
  if (crop.flip) (void)recipe.flip_horizontal();
  for (const MapStep& step : map->steps()) (void)recipe.map(step);
  return recipe;
}

void sample(benchmark::State& state, const Pictures& pictures, const Form& form, SimdForm simd) {
  set_simd_form(simd);
  Renderer renderer;
  const PixelMap* const map = normalized_float16();
  static Buffer batch(kSampleBytes * kBatch);
  std::fill_n(batch.data(), batch.size(), uint8_t{0});  // no page faults during the timing
  std::vector<Recipe> recipes;
  std::vector<RenderTask> tasks;
  size_t row = 0;
  for (auto _ : state) {
    for (size_t first = 0; first < pictures.size(); first += kGroup) {
      const size_t end = std::min(first + kGroup, pictures.size());
      recipes.clear();
      tasks.clear();
      for (size_t i = first; i < end; ++i) {
        recipes.push_back(recipe_of(renderer, form, i, pictures.crops[i], map));
      }
      for (const Recipe& recipe : recipes) {
        uint8_t* const data = batch.data() + row++ % kBatch * kSampleBytes;
        tasks.push_back({.recipe = &recipe, .target = {.data = data}, .result = {}});
      }
      renderer.render(tasks);
      for (const RenderTask& task : tasks) required(task.result);
    }
  }
  report(state, pictures, form);
}

void register_all(const Pictures& pictures) {
  const auto add = [&](const std::string& name, auto&& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond);
  };
  for (const bool only : {false, true}) {
    add("libjpeg/" + std::string(only ? "coefficients/" : "rgb/") + pictures.name,
        [&, only](benchmark::State& state) { libjpeg(state, pictures, only); });
  }
  const std::pair<const char*, const Form*> forms[] = {{"plain", &pictures.plain},
                                                       {"indexed", &pictures.indexed},
                                                       {"packed", &pictures.packed},
                                                       {"dense", &pictures.dense}};
  for (const auto& [form_name, form] : forms) {
    if (form->files.size() != pictures.size()) {
      std::fprintf(stderr, "%s/%s is skipped: not all pictures have that form\n", form_name,
                   pictures.name.c_str());
      continue;
    }
    for (const SimdForm simd : available_forms()) {
      const std::string tail =
          std::string("/") + form_name + "/" + pictures.name + "/" + std::string(name_of(simd));
      add("sample" + tail, [&pictures, form = form, simd](benchmark::State& state) {
        sample(state, pictures, *form, simd);
      });
      for (const bool whole : {false, true}) {
        add((whole ? "whole" : "crop") + tail,
            [&pictures, form = form, simd, whole](benchmark::State& state) {
              decode(state, pictures, *form, whole, simd);
            });
      }
    }
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  using namespace headrace;
  benchmark::Initialize(&argc, argv);
  const std::vector<Buffer> files = read_files();
  std::vector<const Buffer*> all, subsampled;
  for (const Buffer& file : files) {
    const Kind kind = kind_of(file.bytes());
    if (kind.usable) all.push_back(&file);
    if (kind.is_420) subsampled.push_back(&file);
  }
  std::vector<Pictures> sets;
  if (!all.empty()) sets.push_back(make_pictures("all", all));
  if (!subsampled.empty()) sets.push_back(make_pictures("420", subsampled));
  for (const Pictures& pictures : sets) {
    if (pictures.size() > 0) register_all(pictures);
  }
  benchmark::RunSpecifiedBenchmarks();
}
