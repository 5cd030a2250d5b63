// SPDX-License-Identifier: Apache-2.0
// Batches of JPEGs through the streams of a device, two at a time: the host, a simulated device
// that works late and out of order, and a GPU if there is one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "headrace/codecs/image/jpeg/device/batch.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/simulated/simulated_device.h"

namespace headrace::jpeg_test {
namespace {

enum class Where { kHost, kSimulated, kGpu };

std::vector<Where> everywhere() {
  std::vector<Where> all{Where::kHost, Where::kSimulated};
  if (cuda_devices().count > 0) all.push_back(Where::kGpu);
  return all;
}

class JpegDeviceStream : public testing::TestWithParam<Where> {
 protected:
  static DevicePtr device(uint64_t seed) {
    if (GetParam() == Where::kSimulated) return std::make_shared<SimulatedDevice>(seed);
    return open_device(GetParam() == Where::kGpu ? "cuda" : "cpu");
  }
};

// A batch in progress: what is uploaded, the device's working memory, what comes back.
struct Flight {
  JpegDeviceBatch batch;
  std::vector<Pixels> expected;
  std::vector<bool> is_damaged;
  std::vector<uint8_t> upload, flags, out;
  std::shared_ptr<void> there, scratch, rows;  // shared_ptr, because that is what Device returns
};

void fill(Flight& flight, Draw& draw) {
  for (int i = 0; i < 12; ++i) {
    FileSpec spec{.width = 1 + draw.below(120), .height = 1 + draw.below(120)};
    if (i % 3 == 1) spec.sampling = {{1, 1}, {1, 1}, {1, 1}};
    if (i % 3 == 2) spec.sampling = {{2, 1}, {1, 1}, {1, 1}};
    spec.quality = 40 + draw.below(60);
    Bytes bytes = encode(spec);
    Decoder decoder;
    const std::vector<uint8_t> index = decoder.row_index(bytes);
    const bool damaged = i == 5;
    // All ones: not a valid code.
    if (damaged) {
      for (size_t k = bytes.size() / 2; k + 2 < bytes.size(); ++k) bytes[k] = k % 2 ? 0 : 0xFF;
    }
    const Window window =
        damaged ? Window{0, 0, spec.width, spec.height} : draw.window(spec.width, spec.height);
    if (!flight.batch.add(bytes, index, window, ColorMode::kRGB)) continue;
    flight.is_damaged.push_back(damaged);
    flight.expected.push_back(damaged ? Pixels{} : oracle(bytes).slice(window));
  }
}

void begin(Flight& flight, Device& device, Stream& copies, Stream& work) {
  const DeviceJpegSizes& sizes = flight.batch.sizes();
  flight.upload.resize(size_t(upload_bytes(sizes)));
  flight.flags.resize(size_t(flag_bytes(sizes)));
  flight.out.resize(size_t(sizes.out_bytes));
  flight.there = device.allocate(flight.upload.size());
  flight.scratch = device.allocate(size_t(scratch_bytes(sizes)));
  flight.rows = device.allocate(flight.out.size());
  flight.batch.write(flight.upload.data());
  const DeviceJpegMemory at =
      place(sizes, static_cast<uint8_t*>(flight.there.get()),
            static_cast<uint8_t*>(flight.scratch.get()), static_cast<uint8_t*>(flight.rows.get()));
  copies.copy(flight.there.get(), flight.upload.data(), flight.upload.size());
  work.wait(copies.record());
  queue_decoding(work, sizes, at);
  work.copy(flight.flags.data(), at.refused, flight.flags.size());
  work.copy(flight.out.data(), flight.rows.get(), flight.out.size());
}

void expect_whole(const Flight& flight) {
  for (size_t i = 0; i < flight.expected.size(); ++i) {
    ASSERT_EQ(flight.flags[i] != 0, flight.is_damaged[i]) << i;
    if (flight.is_damaged[i]) continue;
    const Pixels& expected = flight.expected[i];
    for (int y = 0; y < expected.height; ++y) {
      for (int x = 0; x < expected.width; ++x) {
        for (int c = 0; c < 3; ++c) {
          ASSERT_EQ(flight.out[size_t(flight.batch.row_offset(i, c, y) + x)],
                    expected.data[(size_t(y) * expected.width + x) * 3 + c])
              << i << ' ' << x << ',' << y;
        }
      }
    }
  }
}

TEST_P(JpegDeviceStream, BatchesInFlightEqualLibjpegs) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Draw draw(uint32_t(seed) + 40);
    const DevicePtr there = device(seed);
    const StreamPtr copies = there->make_stream(), first = there->make_stream(),
                    second = there->make_stream();
    Flight flights[2];
    for (Flight& flight : flights) fill(flight, draw);
    begin(flights[0], *there, *copies, *first);
    begin(flights[1], *there, *copies, *second);
    first->synchronize();
    second->synchronize();
    for (const Flight& flight : flights) ASSERT_NO_FATAL_FAILURE(expect_whole(flight));
  }
}

std::string name_of_place(const testing::TestParamInfo<Where>& info) {
  return std::vector<std::string>{"Host", "Simulated", "Gpu"}[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(, JpegDeviceStream, testing::ValuesIn(everywhere()), name_of_place);

}  // namespace
}  // namespace headrace::jpeg_test
