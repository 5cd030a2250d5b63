// SPDX-License-Identifier: Apache-2.0
// How long a GPU takes to decode, resize and finish JPEGs, next to the predictions of
// docs/internals/gpu-kernels.md: copies over the bus, each kernel on batches of 256 random crops,
// entropy decoding with row indexes of several spacings, one to six batches in flight, and 1,024
// samples in parts. First batches are compared with the CPU's pixels, decoded and resized. One line
// per figure; needs no network.
//
//     gpu_figures [--device cuda|cpu] [FOLDER]    # JPEG files; default: generated pictures
//     gpu_figures --devices                       # how many GPUs are usable, or why none is
//
// Exit status 1: the pixels differ; 4: no such device. `cpu` runs the kernels as loops on one core
// to test the program; its times are meaningless.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu_flight.h"
#include "bench/gpu_pixels.h"
#include "headrace/base/error.h"
#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/device.h"
#include "headrace/kernels/batch/compose_tables.h"
#include "headrace/kernels/batch/mix_rows.h"
#include "headrace/kernels/device_jpeg/clear_words.h"

using namespace headrace;
using namespace headrace::gpu_flight;

namespace {

// Figures of an H100 (SXM); docs/internals/gpu-kernels.md has their sources.
constexpr double kCopy = 50e9;             // bytes per second
constexpr double kInstructions = 0.23e12;  // warp instructions per second: a quarter of the peak
constexpr double kSymbol = 192e-9;         // of the entropy decoder if few warps run: 380 cycles
// A batch of 256 finished samples: overhead that does not overlap, and its copy to the device.
constexpr double kAlone = 0.45e-3, kUpload = 0.41e-3;
constexpr double kCrowd = 0.07;  // slowdown of the entropy decoder per batch in flight

// Row index spacings in bits. The largest possible one gives one entry per row in photos.
constexpr int kRowsAlone = 65535 * 64, kUsual = 8192;

double predicted_walk(int64_t chain) { return double(chain) * kSymbol; }
double predicted_dc(int spacing) { return spacing == kRowsAlone ? 0.08e-3 : 0.02e-3; }
// Number of 256-sample batches started together.
double predicted_seconds(const Flight& flight, double batches) {
  return predicted_walk(flight.longest_chain()) * (1 + kCrowd * batches) +
         predicted_dc(flight.spacing()) + kUpload + batches * kAlone;
}

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

// The device is the CPU: one round, and smaller batches.
bool is_cpu = false;
int batch_size() { return is_cpu ? 16 : 256; }

// The median time of some rounds, in seconds; each ends with an empty stream.
template <class Work>
double seconds(Stream& stream, int rounds, Work&& work) {
  std::vector<double> times;
  if (is_cpu) rounds = 0;
  for (int i = 0; i <= rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    stream.synchronize();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (i > 0 || is_cpu) times.push_back(taken.count());  // the first one loads the kernels
  }
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[size_t(rounds / 2)];
}

void time_copies(Device& device) {
  const StreamPtr stream = device.make_stream();
  for (const size_t bytes : {size_t{64} << 10, size_t{1} << 20, size_t{20} << 20}) {
    Pinned host(device, bytes);
    // shared_ptr, because that is what Device returns
    const std::shared_ptr<void> there = device.allocate(bytes);
    const std::string size = std::to_string(bytes >> 10) + " KiB";
    const double up = seconds(*stream, 20, [&] { stream->copy(there.get(), host.data(), bytes); });
    const double down =
        seconds(*stream, 20, [&] { stream->copy(host.data(), there.get(), bytes); });
    const double predicted = bytes > (1 << 20) ? kCopy / 1e9 : 0;
    Line::figure(("copy to the device, " + size).c_str(), double(bytes) / up / 1e9, predicted,
                 "GB/s");
    Line::figure(("copy to the host, " + size).c_str(), double(bytes) / down / 1e9, predicted,
                 "GB/s");
  }
}

double seconds_of(const Flight& flight, double instructions) {
  return instructions * double(flight.samples()) / kInstructions;
}

// Each kernel alone. tools/device_costs.py has the warp instructions per sample.
void time_kernels(Flight& flight) {
  struct Step {
    const char* name;
    double predicted;  // seconds
  };
  const auto by_cost = [&](double instructions) { return seconds_of(flight, instructions); };
  // In the order of for_each_kernel().
  const Step steps[] = {{"flags", 0},
                        {"tables", by_cost(29e3)},
                        {"walk", predicted_walk(flight.longest_chain())},
                        {"DC sums", predicted_dc(flight.spacing())},
                        {"transform", by_cost(114e3)},
                        {"color of 4:4:4", by_cost(51e3)},
                        {"color of 4:2:0", by_cost(39e3)}};
  size_t number = 0;
  for_each_kernel(flight.sizes(), flight.memory(), [&](const auto& kernel) {
    const Step& step = steps[std::min(number++, std::size(steps) - 1)];
    const double taken = seconds(flight.stream(), 9, [&] { queue(flight.stream(), kernel); });
    Line::figure(step.name, taken * 1e3, step.predicted * 1e3, "ms a batch of 256");
  });
  // The decoder clears its blocks; the time of a kernel that only does that.
  const ClearWords zeros{.memory = flight.memory().coefficients,
                         .bytes = flight.sizes().blocks * 128};
  const double taken = seconds(flight.stream(), 9, [&] { queue(flight.stream(), zeros); });
  Line::figure("zeros by a separate kernel", taken * 1e3, 0.06, "ms a batch of 256");
}

std::string name_of(int spacing) {
  return spacing == kRowsAlone ? "rows alone" : "every " + std::to_string(spacing) + " bits";
}

void time_walks(Device& device, Files& files) {
  for (const int spacing : {kRowsAlone, 16384, kUsual, 4096}) {
    Flight flight(device, files, {.samples = batch_size(), .spacing = spacing});
    const int64_t chain = flight.longest_chain();
    flight.make_samples();
    const std::string index = ", " + name_of(spacing);
    for_each_kernel(flight.sizes(), flight.memory(), [&]<class Kernel>(const Kernel& kernel) {
      constexpr bool walks = std::is_same_v<Kernel, WalkRows>, sums = std::is_same_v<Kernel, SumDc>;
      if constexpr (!walks && !sums) return;
      const double taken = seconds(flight.stream(), 9, [&] { queue(flight.stream(), kernel); });
      const double predicted = walks ? predicted_walk(chain) : predicted_dc(spacing);
      Line::figure(((walks ? "walk" : "DC sums") + index).c_str(), taken * 1e3, predicted * 1e3,
                   "ms a batch of 256");
      if (!walks) return;
      Line::figure(("its longest stretch" + index).c_str(), double(chain), 0, "symbols");
      Line::figure(("a symbol of it" + index).c_str(), taken / double(chain) * 1e9, kSymbol * 1e9,
                   "ns");
    });
  }
}

// The resize, whose passes come in either order, and the conversion to 16 bits.
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
                    if constexpr (requires { kernel.max_outputs; }) {
                      add(weights, kernel);
                    } else if constexpr (Kernel::kColumns == 4) {
                      add(along, kernel);
                    } else {
                      add(across, kernel);
                    }
                  });
  add(finish, flight.finish());
  for (const Step& step : {weights, along, across, finish}) {
    Line::figure(step.name, step.taken * 1e3, seconds_of(flight, step.instructions) * 1e3,
                 "ms a batch of 256");
  }
}

// Samples per second of batches that start together, each on its own stream.
double rate(std::span<const std::unique_ptr<Flight>> flights) {
  int64_t samples = 0;
  for (const auto& flight : flights) samples += flight->samples();
  const double taken = seconds(flights[0]->stream(), 9, [&] {
    for (const auto& flight : flights) flight->make_samples();
    for (const auto& flight : flights) flight->stream().synchronize();
  });
  return double(samples) / taken;
}

void time_in_flight(Device& device, Files& files) {
  for (const int spacing : {kRowsAlone, kUsual}) {
    std::vector<std::unique_ptr<Flight>> flights;
    for (uint32_t i = 0; i < 6; ++i) {
      flights.push_back(std::make_unique<Flight>(
          device, files, FlightSpec{.samples = batch_size(), .seed = 10 + i, .spacing = spacing}));
    }
    for (const size_t n : {1, 2, 3, 4, 6}) {
      const auto some = std::span(flights).first(n);
      Line::figure(("finished, " + std::to_string(n) + " in flight, " + name_of(spacing)).c_str(),
                   rate(some), 256 * double(n) / predicted_seconds(*some[0], double(n)),
                   "samples/s");
    }
  }
}

void time_parts(Device& device, Files& files) {
  const int batch = 4 * batch_size();
  for (const int spacing : {kRowsAlone, kUsual}) {
    for (const int parts : {1, 4, 8}) {
      std::vector<std::unique_ptr<Flight>> flights;
      for (int i = 0; i < parts; ++i) {
        flights.push_back(std::make_unique<Flight>(device, files,
                                                   FlightSpec{.samples = batch / parts,
                                                              .seed = 3,
                                                              .spacing = spacing,
                                                              .first = i * batch / parts}));
      }
      // In a single part, nothing overlaps with its transfer.
      const double more = parts == 1 ? 3 * kUpload : 0;
      const double predicted = 1024 / (predicted_seconds(*flights[0], 4) + more);
      Line::figure(("finished, 1,024 in " + std::to_string(parts) +
                    (parts == 1 ? " part, " : " parts, ") + name_of(spacing))
                       .c_str(),
                   rate(flights), predicted, "samples/s");
    }
  }
}

// Finishing 256 pictures of 3 x 224 x 224 whose bytes are already on the device, as float32: rows
// with tables of their own, all mixed in groups of eight.
void time_finish(Device& device) {
  constexpr int kRows = 256, kSamples = int(kSampleBytes), kGroup = 8;
  constexpr size_t kTable = 3 * 256;
  const StreamPtr stream = device.make_stream();
  // The cost does not depend on the values.
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

// Color and tone operations on decoded images: here noise, which contains all values.
void time_colors(Device& device) {
  const int64_t images_made = batch_size();
  const StreamPtr stream = device.make_stream();
  std::vector<uint8_t> images(size_t(images_made) * kSampleBytes);
  uint32_t state = 1;
  for (uint8_t& sample : images) {
    state = state * 1664525 + 1013904223;
    sample = uint8_t(state >> 24);
  }
  gpu_pixels::time_pixels(
      images, images_made, [&](const auto& values) { return put(device, *stream, values); },
      [&](const char* what, const auto& kernel, double predicted) {
        const double taken = seconds(*stream, 9, [&] { queue(*stream, kernel); });
        Line::figure(what, 1e3 * taken, predicted, "ms a batch of 256");
      });
}

int measure(const std::string& name, Files files) {
  const DevicePtr device = open_device(name);
  is_cpu = name == "cpu";
  std::printf("%s, %zu JPEG files\n%-44s %12s %12s\n", device->name().c_str(), files.size(), "",
              "measured", "predicted");
  for (const int spacing : {kRowsAlone, kUsual}) {
    Flight flight(*device, files, {.samples = batch_size(), .spacing = spacing});
    const bool exact = flight.is_exact(files);
    std::printf("%-44s %12s %12s  of %ld crops, index of %s\n", "pixels that are the CPU's",
                exact ? "all" : "NOT ALL", "all", long(flight.samples()), name_of(spacing).c_str());
    if (!exact) return 1;
  }
  Flight flight(*device, files, {.samples = batch_size(), .spacing = kUsual});
  flight.make_samples();
  Line::figure("bytes that cross", double(upload_bytes(flight.sizes())) / double(flight.samples()),
               85e3, "a sample");
  time_copies(*device);
  time_kernels(flight);
  time_walks(*device, files);
  time_resize(flight);
  time_finish(*device);
  time_colors(*device);
  time_in_flight(*device, files);
  time_parts(*device, files);
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
                   Files(folder.empty() ? made_pictures::made() : made_pictures::files_of(folder)));
  } catch (const Exception& error) {
    std::printf("%s\n", error.what());
    return 4;
  }
}
