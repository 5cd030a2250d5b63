// SPDX-License-Identifier: Apache-2.0
// A batch of random crops that a device decodes, resizes and finishes, with all its memory and its
// own stream: what bench/gpu_figures.cc times, alone and next to others.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "headrace/base/pages.h"
#include "headrace/codecs/image/jpeg/decode/baseline.h"
#include "headrace/codecs/image/jpeg/device/batch.h"
#include "headrace/device/device.h"
#include "headrace/kernels/batch/picture_batch.h"
#include "headrace/kernels/batch/queue.h"
#include "headrace/kernels/batch/resize_batch.h"
#include "tools/made_pictures.h"

namespace headrace::gpu_flight {

using made_pictures::Bytes;

constexpr int kSize = 224, kChannels = 3;  // per sample
constexpr size_t kSampleBytes = size_t{kChannels} * kSize * kSize;

inline PictureStrides sample_strides() {
  return PictureStrides::channels_first(kChannels, kSize, kSize);
}

// Pinned memory, if the device supports it.
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

// A copy on the device; the values may be dropped.
template <class T>
std::shared_ptr<void> put(Device& device, Stream& stream, const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  std::shared_ptr<void> memory = device.allocate(bytes);  // shared_ptr, because that is what Device
                                                          // returns
  stream.copy(memory.get(), values.data(), bytes);
  stream.synchronize();
  return memory;
}

// JPEG files, with row indexes by the bits between two entries.
class Files {
 public:
  explicit Files(std::vector<Bytes> files) : files_(std::move(files)) {}
  size_t size() const { return files_.size(); }
  const Bytes& operator[](size_t i) const { return files_[i]; }

  const std::vector<uint8_t>& index(size_t i, int spacing) {
    auto found = std::ranges::find(indexes_, spacing, &Indexes::spacing);
    if (found == indexes_.end()) {
      found = indexes_.insert(found, {spacing, std::vector<std::vector<uint8_t>>(size())});
    }
    std::vector<uint8_t>& index = found->of[i];
    if (index.empty()) {
      Buffer padded(files_[i].size());
      std::memcpy(padded.data(), files_[i].data(), files_[i].size());
      index = decoder_.row_index(padded.bytes(), spacing);
    }
    return index;
  }

 private:
  struct Indexes {
    int spacing = 0;
    std::vector<std::vector<uint8_t>> of;
  };
  std::vector<Bytes> files_;
  std::vector<Indexes> indexes_;
  JpegBaselineDecoder decoder_;
};

struct FlightSpec {
  int samples = 256;
  uint32_t seed = 1;
  int spacing = 8192;  // spacing of the row index, in bits
  int first = 0;       // crop: those before belong to other parts of the same batch
};

class Flight {
 public:
  Flight(Device& device, Files& files, const FlightSpec& spec)
      : spacing_(spec.spacing), stream_(device.make_stream()) {
    jpeg_test::Draw draw(spec.seed);
    jpeg_test::Decoder decoder;
    for (int i = 0, taken = 0;
         taken < spec.first + spec.samples && i < 4 * (spec.first + spec.samples); ++i) {
      const size_t file = size_t(i) % files.size();
      const Result<ImageHeader> header = decoder.header(files[file]);
      if (!header) continue;
      const Window window = made_pictures::crop(draw, header->width, header->height);
      const std::vector<uint8_t>& index = files.index(file, spec.spacing);
      if (index.empty()) continue;
      if (taken++ < spec.first) continue;
      if (!batch_.add(files[file], index, window, ColorMode::kRGB)) continue;
      pictures_.push_back({file, window});
    }
    const DeviceJpegSizes& sizes = batch_.sizes();
    upload_ = std::make_unique<Pinned>(device, size_t(upload_bytes(sizes)));
    batch_.write(upload_->data());
    on_device_ = device.allocate(size_t(upload_bytes(sizes)));
    scratch_ = device.allocate(size_t(scratch_bytes(sizes)));
    out_ = device.allocate(size_t(sizes.out_bytes));
    at_ = place(sizes, static_cast<uint8_t*>(on_device_.get()),
                static_cast<uint8_t*>(scratch_.get()), static_cast<uint8_t*>(out_.get()));
    plan_samples(device);
  }

  int spacing() const { return spacing_; }
  int64_t samples() const { return batch_.sizes().images; }
  const ResizePlan& resizes() const { return resizes_; }
  const ResizeMemory& resize_memory() const { return resize_at_; }
  const PictureBatch& finish() const { return finish_; }
  Stream& stream() { return *stream_; }
  const JpegDeviceBatch& batch() const { return batch_; }
  const DeviceJpegSizes& sizes() const { return batch_.sizes(); }
  const DeviceJpegMemory& memory() const { return at_; }

  void upload() {
    stream_->copy(on_device_.get(), upload_->data(), size_t(upload_bytes(batch_.sizes())));
  }
  void decode() { queue_decoding(*stream_, batch_.sizes(), at_); }
  void make_samples() {
    upload();
    decode();
    queue_resize(*stream_, resizes_, resize_at_);
    queue(*stream_, finish_);
  }

  // Symbols of the longest segment of MCUs: it determines the batch's decoding time.
  int64_t longest_chain() const {
    std::vector<uint8_t> upload(size_t(upload_bytes(sizes())) + 256);
    uint8_t* const begin =
        upload.data() + (256 - reinterpret_cast<uintptr_t>(upload.data()) % 256) % 256;
    batch_.write(begin);
    const DeviceJpegMemory at = place(sizes(), begin, nullptr, nullptr);
    WalkTables tables;
    std::vector<int16_t> nowhere;
    int64_t longest = 0;
    uint32_t made = ~0u;  // the picture that the tables belong to
    for (const WalkGroup& group : batch_.walk_groups()) {
      DeviceImage picture = batch_.image(group.image);
      if (made != group.image) make_tables(at, picture, tables);
      made = group.image;
      picture.first_block = 0;
      for (RowJob job : batch_.row_jobs().subspan(group.first_job, group.jobs)) {
        job.first_block = 0;
        nowhere.resize(size_t(job.mcus) * size_t(picture.blocks) * 64);
        RowWalk<TablesInMemory> walk(TablesInMemory(tables), picture, job, at.streams,
                                     nowhere.data());
        int64_t symbols = 0;
        for (; walk.more(); ++symbols) walk.step();
        longest = std::max(longest, symbols);
      }
    }
    return longest;
  }

  // Whether every picture was decoded, and every pixel equals the CPU's.
  bool is_exact(const Files& files) {
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
  static void make_tables(const DeviceJpegMemory& at, DeviceImage picture, WalkTables& tables) {
    const MakeTables kernel{
        .images = &picture, .codes = at.codes, .places = at.places, .tables = &tables, .count = 1};
    run_items(kernel, 0, kernel.items());
  }

  void plan_samples(Device& device) {
    std::vector<ResizeWindow> windows;
    for (size_t i = 0; i < size_t(samples()); ++i) {
      const DeviceImage& picture = batch_.image(i);
      windows.push_back(
          {.from = batch_.row_offset(i, 0, 0),
           .strides = {.row = picture.out_stride, .column = 1, .channel = picture.out_plane},
           .height = picture.height,
           .width = picture.width,
           .flip = i % 2 == 1});
    }
    resizes_ = plan_resize({.height = kSize, .width = kSize, .strides = sample_strides()}, windows);
    std::vector<uint8_t> parameters(size_t(upload_bytes(resizes_)));
    write(resizes_, parameters.data());
    parameters_ = put(device, *stream_, parameters);
    between_ = device.allocate(size_t(scratch_bytes(resizes_)));
    resized_ = device.allocate(size_t(samples()) * kSampleBytes);
    finished_ = device.allocate(size_t(samples()) * kSampleBytes * 2);
    table_ = put(device, *stream_, std::vector<uint16_t>(kChannels * 256));
    resize_at_ = {.upload = static_cast<const uint8_t*>(parameters_.get()),
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

  // The same functions on the CPU, whose tests compare them with Pillow.
  std::vector<uint8_t> resized_here(std::vector<uint8_t> pictures) const {
    pictures.resize((pictures.size() + 7) / 8 * 8);
    std::vector<uint8_t> resized(size_t(samples()) * kSampleBytes);
    std::vector<uint8_t> parameters(size_t(upload_bytes(resizes_))),
        between(size_t(scratch_bytes(resizes_)));
    write(resizes_, parameters.data());
    for_each_kernel(resizes_,
                    {.upload = parameters.data(),
                     .scratch = between.data(),
                     .pictures = pictures.data(),
                     .batch = resized.data()},
                    [](const auto& kernel) { run_items(kernel, 0, kernel.items()); });
    return resized;
  }

  int spacing_;
  StreamPtr stream_;
  JpegDeviceBatch batch_;
  ResizePlan resizes_;
  PictureBatch finish_;
  std::vector<std::pair<size_t, Window>> pictures_;
  std::unique_ptr<Pinned> upload_;
  // shared_ptr, because that is what Device returns
  std::shared_ptr<void> on_device_, scratch_, out_, parameters_, between_, resized_, table_,
      finished_;
  DeviceJpegMemory at_;
  ResizeMemory resize_at_;
};

}  // namespace headrace::gpu_flight
