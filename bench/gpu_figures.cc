// SPDX-License-Identifier: Apache-2.0
// What a GPU takes for the steps of JPEG decoding, for the resize and for the finish, with what
// docs/cuda.md predicts beside it: copies over the bus, each kernel on batches of 256 random crops,
// batches of other sizes, and several in flight. First a batch is compared with the CPU's pixels,
// decoded and resized. One line a figure; needs no network.
//
//     gpu_figures [--device cuda|cpu] [FOLDER]    # JPEG files; default: pictures that it makes
//     gpu_figures --devices                       # how many GPUs can be used, or why none can
//
// Exit status 1: the pixels differ; 4: there is no such device. `cpu` runs the kernels as loops on
// one core and shows that the program works; its times mean nothing.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/pages.h"
#include "headrace/codecs/image/jpeg/device/batch.h"
#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/device.h"
#include "headrace/kernels/batch/compose_tables.h"
#include "headrace/kernels/batch/mix_rows.h"
#include "headrace/kernels/batch/picture_batch.h"
#include "headrace/kernels/batch/queue.h"
#include "headrace/kernels/batch/resize_batch.h"
#include "tools/made_pictures.h"

using namespace headrace;
using made_pictures::Bytes;

namespace {

// Of an H100 (SXM): docs/cuda.md tells where they come from. Nothing of it was measured.
constexpr double kPredictedCopy = 50e9;             // bytes a second
constexpr double kPredictedWalk = 1.3e-3;           // of 256 crops alone
constexpr double kPredictedInstructions = 0.23e12;  // of warps a second: a quarter of the peak
constexpr double kPredictedSamples = 100e3;         // a second, three batches in flight

constexpr int kSize = 224, kChannels = 3;  // of a sample
constexpr size_t kSampleBytes = size_t{kChannels} * kSize * kSize;

PictureStrides sample_strides() { return PictureStrides::channels_first(kChannels, kSize, kSize); }

class Line {
 public:
  static void figure(const char* what, double measured, double predicted, const char* unit) {
    if (predicted > 0) {
      std::printf("%-44s %12.3f %12.3f  %s\n", what, measured, predicted, unit);
    } else {
      std::printf("%-44s %12.3f %12s  %s\n", what, measured, "-", unit);
    }
    std::fflush(stdout);
  }
};

// The median time of some rounds, in seconds; each ends with an empty stream.
template <class Work>
double seconds(Stream& stream, int rounds, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i <= rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    stream.synchronize();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (i > 0) times.push_back(taken.count());  // the first one loads the kernels
  }
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[size_t(rounds / 2)];
}

// Pinned, where the device can.
class Pinned {
 public:
  Pinned(Device& device, size_t bytes) : device_(device), bytes_(bytes), pages_(map_pages(bytes)) {
    pinned_ = device.pin(pages_, bytes);
  }
  ~Pinned() {
    if (pinned_) device_.unpin(pages_);
    unmap_pages(pages_, bytes_);
  }
  Pinned(const Pinned&) = delete;
  uint8_t* data() { return static_cast<uint8_t*>(pages_); }

 private:
  Device& device_;
  size_t bytes_;
  void* pages_;
  bool pinned_ = false;
};

// A copy on the device; the values may go.
template <class T>
std::shared_ptr<void> put(Device& device, Stream& stream, const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  std::shared_ptr<void> memory = device.allocate(bytes);  // shared: as it hands it out
  stream.copy(memory.get(), values.data(), bytes);
  stream.synchronize();
  return memory;
}

// A batch of crops with all its memory.
class Flight {
 public:
  Flight(Device& device, const std::vector<Bytes>& files, int samples, uint32_t seed)
      : stream_(device.make_stream()) {
    jpeg_test::Draw draw(seed);
    jpeg_test::Decoder decoder;
    std::vector<std::vector<uint8_t>> index(files.size());
    for (int i = 0; batch_.sizes().pictures < samples && i < 4 * samples; ++i) {
      const size_t file = size_t(i) % files.size();
      const Result<ImageHeader> header = decoder.header(files[file]);
      if (!header) continue;
      if (index[file].empty()) index[file] = decoder.row_index(files[file]);
      const Window window = made_pictures::crop(draw, header->width, header->height);
      if (!batch_.add(files[file], index[file], window, ColorMode::kRGB)) continue;
      pictures_.push_back({file, window});
    }
    const DeviceJpegSizes& sizes = batch_.sizes();
    upload_ = std::make_unique<Pinned>(device, size_t(upload_bytes(sizes)));
    batch_.write(upload_->data());
    there_ = device.allocate(size_t(upload_bytes(sizes)));
    scratch_ = device.allocate(size_t(scratch_bytes(sizes)));
    out_ = device.allocate(size_t(sizes.out_bytes));
    at_ = place(sizes, static_cast<uint8_t*>(there_.get()), static_cast<uint8_t*>(scratch_.get()),
                static_cast<uint8_t*>(out_.get()));
    plan_samples(device);
  }

  int64_t samples() const { return batch_.sizes().pictures; }
  const ResizePlan& resizes() const { return resizes_; }
  const ResizeMemory& resize_memory() const { return resize_at_; }
  const PictureBatch& finish() const { return finish_; }
  Stream& stream() { return *stream_; }
  const DeviceJpegSizes& sizes() const { return batch_.sizes(); }
  const DeviceJpegMemory& memory() const { return at_; }

  void upload() {
    stream_->copy(there_.get(), upload_->data(), size_t(upload_bytes(batch_.sizes())));
  }
  void decode() { queue_decoding(*stream_, batch_.sizes(), at_); }
  void make_samples() {
    upload();
    decode();
    queue_resize(*stream_, resizes_, resize_at_);
    queue(*stream_, finish_);
  }

  // Whether every picture is there, and every pixel is the CPU's.
  bool is_exact(const std::vector<Bytes>& files) {
    make_samples();
    std::vector<uint8_t> flags(size_t(flag_bytes(sizes()))), out(size_t(sizes().out_bytes));
    std::vector<uint8_t> resized(size_t(samples()) * kSampleBytes);
    stream_->copy(flags.data(), at_.refused, flags.size());
    stream_->copy(out.data(), out_.get(), out.size());
    stream_->copy(resized.data(), resize_at_.batch, resized.size());
    stream_->synchronize();
    if (resized != resized_here(out)) return false;
    jpeg_test::Decoder decoder;
    for (size_t i = 0; i < pictures_.size(); ++i) {
      const auto& [file, window] = pictures_[i];
      const jpeg_test::Pixels expected = decoder.window(files[file], window);
      if (flags[i] != 0 || !expected.ok) return false;
      for (int y = 0; y < window.height; ++y) {
        for (int x = 0; x < window.width; ++x) {
          for (int c = 0; c < 3; ++c) {
            if (out[size_t(batch_.row_offset(i, c, y) + x)] !=
                expected.data[(size_t(y) * window.width + x) * 3 + c]) {
              return false;
            }
          }
        }
      }
    }
    return true;
  }

 private:
  void plan_samples(Device& device) {
    std::vector<ResizeWindow> windows;
    for (size_t i = 0; i < size_t(samples()); ++i) {
      const DevicePicture& picture = batch_.picture(i);
      windows.push_back(
          {.from = batch_.row_offset(i, 0, 0),
           .strides = {.row = picture.out_stride, .column = 1, .channel = picture.out_plane},
           .height = picture.height,
           .width = picture.width,
           .flip = i % 2 == 1});
    }
    resizes_ = plan_resize({.height = kSize, .width = kSize, .strides = sample_strides()}, windows);
    std::vector<uint8_t> told(size_t(upload_bytes(resizes_)));
    write(resizes_, told.data());
    told_ = put(device, *stream_, told);
    between_ = device.allocate(size_t(scratch_bytes(resizes_)));
    resized_ = device.allocate(size_t(samples()) * kSampleBytes);
    finished_ = device.allocate(size_t(samples()) * kSampleBytes * 2);
    table_ = put(device, *stream_, std::vector<uint16_t>(kChannels * 256));
    resize_at_ = {.upload = static_cast<const uint8_t*>(told_.get()),
                  .scratch = static_cast<uint8_t*>(between_.get()),
                  .pictures = static_cast<const uint8_t*>(out_.get()),
                  .batch = static_cast<uint8_t*>(resized_.get())};
    finish_ = {.pictures = resized_.get(),
               .from = sample_strides(),
               .channels = kChannels,
               .height = kSize,
               .width = kSize,
               .count = samples(),
               .batch = finished_.get(),
               .to = sample_strides(),
               .to_height = kSize,
               .to_width = kSize,
               .map = {.bytes = 2, .table = table_.get()}};
  }

  // By the same functions on the CPU, whose tests compare them with Pillow.
  std::vector<uint8_t> resized_here(std::vector<uint8_t> pictures) const {
    pictures.resize((pictures.size() + 7) / 8 * 8);
    std::vector<uint8_t> resized(size_t(samples()) * kSampleBytes);
    std::vector<uint8_t> told(size_t(upload_bytes(resizes_))),
        between(size_t(scratch_bytes(resizes_)));
    write(resizes_, told.data());
    for_each_kernel(resizes_,
                    {.upload = told.data(),
                     .scratch = between.data(),
                     .pictures = pictures.data(),
                     .batch = resized.data()},
                    [](const auto& kernel) { run_items(kernel, 0, kernel.items()); });
    return resized;
  }

  StreamPtr stream_;
  JpegDeviceBatch batch_;
  ResizePlan resizes_;
  PictureBatch finish_;
  std::vector<std::pair<size_t, Window>> pictures_;
  std::unique_ptr<Pinned> upload_;
  // shared: as a Device hands them out
  std::shared_ptr<void> there_, scratch_, out_, told_, between_, resized_, table_, finished_;
  DeviceJpegMemory at_;
  ResizeMemory resize_at_;
};

void time_copies(Device& device) {
  const StreamPtr stream = device.make_stream();
  for (const size_t bytes : {size_t{64} << 10, size_t{1} << 20, size_t{20} << 20}) {
    Pinned host(device, bytes);
    const std::shared_ptr<void> there = device.allocate(bytes);  // shared: as it hands it out
    const std::string size = std::to_string(bytes >> 10) + " KiB";
    const double up = seconds(*stream, 20, [&] { stream->copy(there.get(), host.data(), bytes); });
    const double down =
        seconds(*stream, 20, [&] { stream->copy(host.data(), there.get(), bytes); });
    const double predicted = bytes > (1 << 20) ? kPredictedCopy / 1e9 : 0;
    Line::figure(("copy to the device, " + size).c_str(), double(bytes) / up / 1e9, predicted,
                 "GB/s");
    Line::figure(("copy to the host, " + size).c_str(), double(bytes) / down / 1e9, predicted,
                 "GB/s");
  }
}

double predicted_seconds(const Flight& flight, double instructions) {
  return instructions * double(flight.samples()) / kPredictedInstructions;
}

// Each kernel by itself. How many warp instructions a sample takes: tools/device_costs.py.
void time_kernels(Flight& flight) {
  struct Step {
    const char* name;
    double instructions;  // of a warp, a sample
  };
  // In the order of for_each_kernel().
  constexpr Step kSteps[] = {{"flags", 0},
                             {"tables", 29e3},
                             {"walk", 0},
                             {"DC sums", 10e3},
                             {"transform", 114e3},
                             {"colour of 4:4:4", 51e3},
                             {"colour of 4:2:0", 39e3}};
  size_t number = 0;
  for_each_kernel(flight.sizes(), flight.memory(), [&](const auto& kernel) {
    const Step& step = kSteps[std::min(number++, std::size(kSteps) - 1)];
    const double taken = seconds(flight.stream(), 9, [&] { queue(flight.stream(), kernel); });
    double predicted = predicted_seconds(flight, step.instructions);
    if (std::string_view(step.name) == "walk") predicted = kPredictedWalk;
    Line::figure(step.name, taken * 1e3, predicted * 1e3, "ms a batch of 256");
  });
}

// Of the resize, whose passes come in either order, and of the finish to 16 bits.
void time_resize(Flight& flight) {
  struct Step {
    const char* name;
    double instructions, taken = 0;
  };
  Step weights{"weights of the resize", 24e3}, along{"resize, along rows", 88e3},
      across{"resize, across rows", 67e3}, finish{"finish: bytes to 16 bits", 95e3};
  const auto add = [&](Step& step, const auto& kernel) {
    step.taken += seconds(flight.stream(), 9, [&] { queue(flight.stream(), kernel); });
  };
  for_each_kernel(flight.resizes(), flight.resize_memory(),
                  [&]<class Kernel>(const Kernel& kernel) {
                    if constexpr (requires { kernel.most_outputs; }) {
                      add(weights, kernel);
                    } else if constexpr (Kernel::kColumns == 4) {
                      add(along, kernel);
                    } else {
                      add(across, kernel);
                    }
                  });
  add(finish, flight.finish());
  for (const Step& step : {weights, along, across, finish}) {
    Line::figure(step.name, step.taken * 1e3, predicted_seconds(flight, step.instructions) * 1e3,
                 "ms a batch of 256");
  }
}

void time_batches(Device& device, const std::vector<Bytes>& files) {
  for (const int samples : {64, 256, 1024}) {
    Flight flight(device, files, samples, 3);
    const double taken = seconds(flight.stream(), 5, [&] {
      flight.upload();
      flight.decode();
    });
    Line::figure(("upload and decode, " + std::to_string(samples) + " at a time").c_str(),
                 double(flight.samples()) / taken, 0, "samples/s");
  }
  std::vector<std::unique_ptr<Flight>> flights;
  for (uint32_t i = 0; i < 3; ++i) {
    flights.push_back(std::make_unique<Flight>(device, files, 256, 10 + i));
  }
  int64_t samples = 0;
  for (const auto& flight : flights) samples += flight->samples();
  const auto in_flight = [&](const char* what, double predicted, auto&& queue_all) {
    const double taken = seconds(flights[0]->stream(), 9, [&] {
      for (const auto& flight : flights) queue_all(*flight);
      for (const auto& flight : flights) flight->stream().synchronize();
    });
    Line::figure(what, double(samples) / taken, predicted, "samples/s");
  };
  in_flight("upload and decode, 3 batches of 256 in flight", 0, [](Flight& flight) {
    flight.upload();
    flight.decode();
  });
  in_flight("finished samples, 3 batches of 256 in flight", kPredictedSamples,
            [](Flight& flight) { flight.make_samples(); });
}

// The finish of 256 pictures of 3 x 224 x 224, whose bytes are there already, in float32: rows with
// tables of their own, all mixed in groups of eight.
void time_finish(Device& device) {
  constexpr int kRows = 256, kSamples = int(kSampleBytes), kGroup = 8;
  constexpr size_t kTable = 3 * 256;
  const StreamPtr stream = device.make_stream();
  // Whatever the bytes are, the work is the same.
  const auto room = [&](size_t bytes) {
    std::shared_ptr<void> memory = device.allocate(bytes);
    const std::vector<uint8_t> zeros(bytes);
    stream->copy(memory.get(), zeros.data(), bytes);
    stream->synchronize();
    return memory;
  };
  std::vector<PictureEdit> edits(kRows);
  std::vector<TablePair> pairs(kRows);
  std::vector<RowGroup> groups(kRows / kGroup);
  for (int i = 0; i < kRows; ++i) {
    edits[size_t(i)] = {.flip = i % 2, .tables = i};
    pairs[size_t(i)] = {.bytes = i, .map = 0};
    groups[size_t(i / kGroup)] = {i / kGroup * kGroup, kGroup};
  }
  const std::vector<RowMix> mixes(kRows,
                                  {.own = 0.4f, .rest = 0.6f, .bottom = kSize, .right = kSize});
  const auto slot = room(size_t{kRows} * kSamples), batch = room(size_t{kRows} * kSamples * 4),
             bytes = room(kRows * kTable), map = room(kTable * 4),
             tables = room(kRows * kTable * 4), there_edits = put(device, *stream, edits),
             there_pairs = put(device, *stream, pairs), there_groups = put(device, *stream, groups),
             there_mixes = put(device, *stream, mixes);
  const auto strides = sample_strides();
  const auto figure = [&](const char* what, const auto& kernel, double predicted) {
    const double taken = seconds(*stream, 9, [&] { queue(*stream, kernel); });
    Line::figure(what, 1e3 * taken, predicted, "ms a batch of 256");
  };
  figure("finish: tables composed",
         ComposeTables{.pairs = static_cast<const TablePair*>(there_pairs.get()),
                       .bytes = static_cast<const uint8_t*>(bytes.get()),
                       .maps = map.get(),
                       .tables = tables.get(),
                       .sets = kRows,
                       .channels = 3,
                       .element = 4},
         0.005);
  figure("finish: bytes to float32",
         PictureBatch{.pictures = slot.get(),
                      .from = strides,
                      .channels = 3,
                      .height = kSize,
                      .width = kSize,
                      .count = kRows,
                      .edits = static_cast<const PictureEdit*>(there_edits.get()),
                      .batch = batch.get(),
                      .to = strides,
                      .to_height = kSize,
                      .to_width = kSize,
                      .map = {.bytes = 4, .table = tables.get()}},
         0.1);
  figure("finish: rows mixed",
         MixRows{.batch = batch.get(),
                 .height = kSize,
                 .lines = 3 * kSize,
                 .samples = kSize,
                 .groups = static_cast<const RowGroup*>(there_groups.get()),
                 .mixes = static_cast<const RowMix*>(there_mixes.get()),
                 .group_count = kRows / kGroup},
         0.12);
}

int measure(const std::string& name, const std::vector<Bytes>& files) {
  const DevicePtr device = open_device(name);
  std::printf("%s, %zu JPEG files\n%-44s %12s %12s\n", device->name().c_str(), files.size(), "",
              "measured", "predicted");
  Flight flight(*device, files, 256, 1);
  const bool exact = flight.is_exact(files);
  std::printf("%-44s %12s %12s  of %ld crops\n", "pixels that are the CPU's",
              exact ? "all" : "NOT ALL", "all", long(flight.samples()));
  if (!exact) return 1;
  Line::figure("bytes that cross", double(upload_bytes(flight.sizes())) / double(flight.samples()),
               85e3, "a sample");
  time_copies(*device);
  time_kernels(flight);
  time_resize(flight);
  time_finish(*device);
  time_batches(*device, files);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cuda", folder;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--devices") == 0) {
      const CudaDevices found = cuda_devices();
      std::printf("%d GPUs%s%s\n", found.count, found.count ? "" : ": ", found.why_none.c_str());
      return found.count > 0 ? 0 : 4;
    }
    if (std::strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
      device = argv[++i];
    } else {
      folder = argv[i];
    }
  }
  if (device == "cuda" && cuda_devices().count == 0) {
    std::printf("skipped: no GPU can be used: %s\n", cuda_devices().why_none.c_str());
    return 4;
  }
  try {
    return measure(device,
                   folder.empty() ? made_pictures::made() : made_pictures::files_of(folder));
  } catch (const Exception& error) {
    std::printf("%s\n", error.what());
    return 4;
  }
}
