// SPDX-License-Identifier: Apache-2.0
// Batches that a device finishes equal the host's batches, for any delay and any size of parts; if
// the device fails, the process continues with the CPU.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "headrace/base/sweep_test_width.h"
#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/loader/loader_feed.h"

namespace headrace {
namespace loader_finish_test {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kRecords = 90, kBatch = 16;
constexpr int kHeight = 60, kWidth = 72;

// Pictures of random bytes, with their numbers.
class Pictures final : public Source {
 public:
  Pictures() {
    std::mt19937 random(5);
    for (Bytes& picture : pictures_) {
      picture.resize(size_t{3} * kHeight * kWidth);
      for (uint8_t& sample : picture) sample = uint8_t(random());
    }
    schema_.push_back({.name = "image",
                       .kind = FieldKind::kImage,
                       .dtype = DType::kUInt8,
                       .shape = {3, kHeight, kWidth}});
    schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
  }
  int64_t size() const override { return kRecords; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out[i].index = indices[i];
      out[i].result = {};
      out[i].fields.resize(2);
      out[i].fields[0] = {.bytes = pictures_[size_t(indices[i])], .shape = {}};
      out[i].fields[1] = {.bytes = {}, .shape = {}, .scalar = indices[i]};
    }
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 42; }
  std::string description() const override { return "pictures"; }

 private:
  Schema schema_;
  std::vector<Bytes> pictures_{size_t{kRecords}};
};

using Given = std::map<std::string, ParamValue>;
Spec spec(const std::string& name, const Given& given = {}) { return {name, given, {}, {}}; }

Pipeline pipeline() {
  using Reals = std::vector<double>;
  const Spec dtype{"ToDtype", {{"dtype", std::string("float32")}, {"scale", true}}, {}, {}};
  const Spec normalize{"Normalize", {{"mean", Reals{0.4}}, {"std", Reals{0.2}}}, {}, {}};
  const Spec erase{"RandomErasing", {{"p", 0.5}}, {}, {}};
  return {{{"RandomCrop", {{"size", std::vector<int64_t>{48, 56}}}, {}, {}},
           {"RandomHorizontalFlip", {}, {}, {}},
           dtype,
           normalize,
           erase,
           erase},  // if both do, the record is copied in its final form
          {},
          {}};
}

LoaderOptions finish_options() {
  LoaderOptions out;
  out.batch_size = kBatch;
  out.threads = 2;
  out.shuffle = true;
  out.memory_limit = size_t{256} << 20;
  return out;
}

Bytes bytes_of(const TensorView& view) {
  const auto* data = static_cast<const uint8_t*>(view.data);
  return {data, data + view.dense_bytes()};
}

// By batch of an epoch, as the host finishes them.
std::vector<Bytes> on_host(const LoaderState* from = nullptr, const Pipeline& steps = pipeline()) {
  Loader loader(std::make_shared<Pictures>(), steps, finish_options());
  if (from) loader.load_state(*from);
  std::vector<Bytes> out;
  while (auto batch = loader.next()) out.push_back(bytes_of((*batch)["image"].view));
  return out;
}

// A run on a device, read by a separate stream when that stream reaches the read.
struct Delivery {
  std::shared_ptr<SimulatedDevice> device;
  PrefetchOptions prefetch = {};
  std::shared_ptr<Loader> loader = {};
  std::unique_ptr<Prefetcher> prefetcher = {};
  LoaderState received = {};
  int64_t taken = 0, wrong = 0;

  void make() {
    LoaderOptions given = finish_options();
    given.device = device;
    given.finish = FinishUse::kDevice;
    loader = std::make_shared<Loader>(std::make_shared<Pictures>(), pipeline(), given);
    received = loader->state();
    prefetcher = std::make_unique<Prefetcher>(device, prefetch);
    prefetcher->start(
        std::make_unique<LoaderFeed>(std::make_shared<SharedBatches>(loader, 1, 2), 0));
  }
  void take_all(const std::vector<Bytes>& expected) {
    const StreamPtr stream = device->foreign_stream(0);
    while (auto batch = prefetcher->next()) {
      const DeviceTensor& image = batch->tensors[0];
      image.lease->use_on(0);
      const Bytes& wanted = expected[size_t(taken)];
      stream->run([this, data = image.view.data, &wanted] {
        wrong += std::memcmp(data, wanted.data(), wanted.size()) != 0;
      });
      received = static_cast<FedBatch*>(batch->rest.get())->state;
      ++taken;
    }
    stream->synchronize();
  }
};

TEST(LoaderFinish, ADelayedAndReorderedDeviceGivesTheBatchesOfTheHost) {
  const std::vector<Bytes> expected = on_host();
  for (uint64_t seed = 0; seed < 30; seed += kSweepStep) {
    Delivery run{.device = std::make_shared<SimulatedDevice>(seed)};
    run.prefetch.depth = 1 + int(seed % 3);
    run.make();
    run.take_all(expected);
    EXPECT_EQ(run.taken, int64_t(expected.size()));
    EXPECT_EQ(run.wrong, 0) << "seed " << seed;
  }
}

TEST(LoaderFinish, ScratchMemoryIsBoundedAndABatchThatNeedsMoreIsFinishedInParts) {
  const std::vector<Bytes> expected = on_host();
  constexpr size_t kRow = size_t{3} * 48 * 56;
  for (const size_t limit : {size_t{1}, kRow * 2, kRow * 7}) {
    for (uint64_t seed = 0; seed < 10; seed += kSweepStep) {
      Delivery run{.device = std::make_shared<SimulatedDevice>(seed)};
      run.prefetch.scratch_limit = limit;
      run.make();
      run.take_all(expected);
      EXPECT_EQ(run.taken, int64_t(expected.size()));
      EXPECT_EQ(run.wrong, 0);
      // Four lanes; a single record may use as much memory as it needs.
      const size_t least = kRow + 8192;
      EXPECT_LE(run.prefetcher->stats().scratch_bytes, 4 * std::max(limit, least));
    }
  }
}

TEST(LoaderFinish, ABatchHasOneCopyOfItsBytesAndOneKernel) {
  Delivery run{.device = std::make_shared<SimulatedDevice>(1)};
  run.make();
  const std::vector<Bytes> expected = on_host();
  run.take_all(expected);
  size_t kernels = 0;
  for (const SimulatedWork& work : run.device->timeline()) {
    kernels += work.kind == SimulatedWork::Kind::kRun;
  }
  EXPECT_EQ(kernels, 2 * expected.size());  // and the test's own look at each
}

// Whatever fails, the batches before it were correct, no memory remains in use on the device, and a
// loader on the CPU continues after the last batch received.
void expect_to_go_on(Delivery& run, const std::vector<Bytes>& expected, const char* code,
                     int64_t k) {
  try {
    run.make();
    run.take_all(expected);
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->id, code) << exception.what();
  }
  SCOPED_TRACE("k = " + std::to_string(k) + ", after " + std::to_string(run.taken) + " batches");
  EXPECT_EQ(run.wrong, 0);
  if (run.taken < int64_t(expected.size())) {
    const std::vector<Bytes> rest = on_host(&run.received);
    const std::vector<Bytes> wanted(expected.begin() + run.taken, expected.end());
    EXPECT_EQ(rest, wanted);
  }
  run.prefetcher = nullptr;
  run.loader = nullptr;
  EXPECT_EQ(run.device->allocated_bytes(), 0u);
  EXPECT_EQ(run.device->pinned_ranges(), 0);
}

TEST(LoaderFinish, AfterAFailedAllocationTheCpuStillWorks) {
  const std::vector<Bytes> expected = on_host();
  int64_t refused = 0;
  for (int64_t k = 1; k <= 200; k += kSweepStep) {
    Delivery run{.device = std::make_shared<SimulatedDevice>(uint64_t(k))};
    run.device->refuse_allocation(k);
    expect_to_go_on(run, expected, "HR0880", k);
    refused += run.taken < int64_t(expected.size());
  }
  EXPECT_GE(
      refused,
      kSweepStep > 1 ? 1 : 2);  // the first slab of each ring: later ones get the lanes' memory
}

TEST(LoaderFinish, AfterALostDeviceTheCpuStillWorks) {
  const std::vector<Bytes> expected = on_host();
  int64_t lost = 0;
  for (int64_t k = 1; k <= 200; k += kSweepStep) {
    Delivery run{.device = std::make_shared<SimulatedDevice>(uint64_t(k))};
    run.device->fail_at(k);
    expect_to_go_on(run, expected, "HR0883", k);
    lost += run.taken < int64_t(expected.size());
  }
  EXPECT_GE(lost, 50 / kSweepStep);
}

enum class Where { kHost, kSimulated, kGpu };

std::vector<Where> everywhere() {
  std::vector<Where> all{Where::kHost, Where::kSimulated};
  if (cuda_devices().count > 0) all.push_back(Where::kGpu);
  return all;
}
std::string name_of_place(const testing::TestParamInfo<Where>& info) {
  static const char* const names[] = {"Host", "Simulated", "Gpu"};
  return names[static_cast<int>(info.param)];
}

class LoaderFinishOn : public testing::TestWithParam<Where> {
 protected:
  // By batch, read back by the consumer's stream.
  static std::vector<Bytes> on_device(const Pipeline& steps, int64_t scratch_rows) {
    const DevicePtr device = GetParam() == Where::kSimulated
                                 ? std::make_shared<SimulatedDevice>(4)
                                 : open_device(GetParam() == Where::kGpu ? "cuda" : "cpu");
    LoaderOptions given = finish_options();
    given.device = device;
    auto loader = std::make_shared<Loader>(std::make_shared<Pictures>(), steps, given);
    Prefetcher prefetcher(
        device, {.depth = 2, .scratch_limit = size_t(scratch_rows) * 3 * kHeight * kWidth});
    prefetcher.start(
        std::make_unique<LoaderFeed>(std::make_shared<SharedBatches>(loader, 1, 2), 0));
    const StreamPtr stream = device->foreign_stream(0);
    std::vector<Bytes> out;
    while (auto batch = prefetcher.next()) {
      const DeviceTensor& image = batch->tensors[0];
      image.lease->use_on(0);
      Bytes& back = out.emplace_back(image.view.dense_bytes());
      stream->copy(back.data(), image.view.data, back.size());
      stream->synchronize();
    }
    return out;
  }

  static void expect_same(std::vector<Spec> steps) {
    steps.insert(steps.begin(), {spec("RandomCrop", {{"size", std::vector<int64_t>{48, 56}}}),
                                 spec("ToDevice"), spec("RandomHorizontalFlip")});
    const Pipeline whole{std::move(steps), {}, {}};
    const std::vector<Bytes> expected = on_host(nullptr, whole);
    EXPECT_EQ(on_device(whole, 1000), expected);
    EXPECT_EQ(on_device(whole, 5), expected);  // in parts
  }
  static Spec to(DType dtype) { return spec("ToDtype", {{"dtype", dtype}, {"scale", true}}); }
};

TEST_P(LoaderFinishOn, TablesMapsAndRectanglesEqualTheHosts) {
  const Spec posterize = spec("RandomPosterize", {{"bits", int64_t{3}}});
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const Spec erase = spec("RandomErasing", {{"value", 0.3}});
    expect_same({posterize, spec("RandomEqualize"), to(dtype),
                 spec("Normalize", {{"mean", 0.4}, {"std", 0.2}}), erase});
  }
  expect_same({posterize, spec("RandomErasing", {{"value", 7.0}})});
}

TEST_P(LoaderFinishOn, RowsAreMixedAsOnTheHost) {
  for (const char* mixing : {"MixUp", "CutMix"}) {
    const Spec mix =
        spec(mixing, {{"num_classes", kRecords}, {"group", int64_t{4}}, {"uint8", true}});
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      expect_same({to(dtype), mix});
    }
    expect_same({mix});
  }
}

INSTANTIATE_TEST_SUITE_P(Places, LoaderFinishOn, testing::ValuesIn(everywhere()), name_of_place);

TEST(LoaderFinish, TheErrorNamesTheBatch) {
  Delivery run{.device = std::make_shared<SimulatedDevice>(3)};
  run.device->refuse_allocation(1);
  run.make();
  try {
    (void)run.prefetcher->next();
    FAIL() << "nothing was refused";
  } catch (const Exception& exception) {
    EXPECT_NE(std::string(exception.what()).find("batch 0 of epoch 0, on its way to simulated"),
              std::string::npos)
        << exception.what();
  }
}

}  // namespace loader_finish_test
}  // namespace headrace
