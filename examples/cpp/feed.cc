// SPDX-License-Identifier: Apache-2.0
// Feeds a C++ program with augmented batches, without Python: a checksum of the first epoch, then
// the rate of further ones.
//   feed PATH [--batch-size N] [--epochs N] [--threads N]
// PATH is anything that headrace opens: here a folder with one folder of images per class.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/formats/format.h"
#include "headrace/loader.h"

namespace {

struct Options {
  std::string path;
  int64_t batch_size = 32, epochs = 2;
  int threads = 0;  // 0: the cores that this process may use
};

bool parse(std::span<char*> arguments, Options& options) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (!name.starts_with("--")) {
      options.path = name;
      continue;
    }
    if (++i == arguments.size()) return false;
    const long value = std::strtol(arguments[i], nullptr, 10);
    if (name == "--batch-size") {
      options.batch_size = value;
    } else if (name == "--epochs") {
      options.epochs = value;
    } else if (name == "--threads") {
      options.threads = int(value);
    } else {
      return false;
    }
  }
  return !options.path.empty();
}

// The training recipe for ImageNet: names, arguments and defaults are torchvision's.
headrace::Pipeline training_pipeline() {
  using headrace::DType;
  using Numbers = std::vector<double>;
  headrace::Pipeline pipeline;
  pipeline.transforms = {
      {.name = "RandomResizedCrop", .arguments = {{"size", int64_t{224}}}},
      {.name = "RandomHorizontalFlip"},
      {.name = "ToDtype", .arguments = {{"dtype", DType::kFloat32}, {"scale", true}}},
      {.name = "Normalize",
       .arguments = {{"mean", Numbers{0.485, 0.456, 0.406}},
                     {"std", Numbers{0.229, 0.224, 0.225}}}},
  };
  return pipeline;
}

// "image (32, 3, 224, 224) float32"
std::string description(const headrace::BatchField& field) {
  std::string shape;
  for (int64_t extent : field.view.shape) {
    if (!shape.empty()) shape += ", ";
    shape += std::to_string(extent);
  }
  return field.name + " (" + shape + ") " + std::string(name_of(field.view.dtype));
}

// Adler-32, as Python's zlib.adler32() computes it: tests compare it with that of Python's batches.
struct Adler32 {
  uint32_t low = 1, high = 0;
  void add(const headrace::TensorView& values) {
    for (uint8_t byte : std::span(static_cast<const uint8_t*>(values.data), values.dense_bytes())) {
      low = (low + byte) % 65521;
      high = (high + low) % 65521;
    }
  }
};

// The first epoch, with a checksum of all its values.
void check_epoch(headrace::Loader& loader) {
  Adler32 sum;
  // A batch may be kept: its memory returns to the loader when the last copy of its fields is
  // destroyed.
  while (const std::optional<headrace::Batch> batch = loader.next()) {
    if (batch->index < 3) {
      std::printf("  batch %lld: %s, %s\n", static_cast<long long>(batch->index),
                  description((*batch)["image"]).c_str(), description((*batch)["label"]).c_str());
    }
    for (const headrace::BatchField& field : batch->fields) sum.add(field.view);
  }
  std::printf("epoch 0: Adler-32 %08x\n", unsigned(sum.high << 16 | sum.low));
}

void time_epoch(headrace::Loader& loader, int64_t epoch) {
  const auto start = std::chrono::steady_clock::now();
  int64_t batches = 0, records = 0;
  while (const std::optional<headrace::Batch> batch = loader.next()) {
    ++batches;
    records += batch->size;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("epoch %lld: %lld batches, %lld records, %.0f records/s\n",
              static_cast<long long>(epoch), static_cast<long long>(batches),
              static_cast<long long>(records), double(records) / seconds.count());
}

void run(const Options& options) {
  const headrace::SourcePtr source = headrace::open_source(options.path);
  std::printf("%s\n", source->description().c_str());

  headrace::LoaderOptions loader_options;
  loader_options.batch_size = options.batch_size;
  loader_options.threads = options.threads;
  loader_options.shuffle = true;
  headrace::Loader loader(source, training_pipeline(), loader_options);
  std::printf("threads: %s, memory limit: %s\n", loader.resolved("threads").c_str(),
              loader.resolved("memory_limit").c_str());
  check_epoch(loader);
  for (int64_t epoch = 1; epoch < options.epochs; ++epoch) time_epoch(loader, epoch);
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  if (!parse({arguments, size_t(count)}, options)) {
    std::fprintf(stderr, "usage: feed PATH [--batch-size N] [--epochs N] [--threads N]\n");
    return 2;
  }
  try {
    run(options);
  } catch (const headrace::Exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
