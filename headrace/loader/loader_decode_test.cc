// SPDX-License-Identifier: Apache-2.0
// Batches whose pictures a device decodes equal the host's batches: for any choice of pictures, any
// delay, any size of parts, any damage, and any failure.
#include <gtest/gtest.h>

#include <cstring>

#include "headrace/base/sweep_test_width.h"
#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/loader/loader_feed.h"
#include "headrace/loader/loader_test_jpegs.h"
#include "headrace/sources/subset.h"

namespace headrace {
namespace {

using Place = DeviceDecoding::Place;

// A run on a device, read by a separate stream when that stream reaches the read.
struct Delivery {
  DevicePtr device;
  Pipeline pipeline;
  bool damaged = false;
  PrefetchOptions prefetch = {};
  std::vector<std::string> said = {};  // by the loader
  std::shared_ptr<Loader> loader = {};
  std::unique_ptr<Prefetcher> prefetcher = {};
  LoaderState received = {};
  int64_t taken = 0, wrong = 0;

  void make() {
    LoaderOptions given = decode_options(damaged);
    given.device = device;
    given.finish = FinishUse::kAuto;
    given.decode = DecodeUse::kDevice;
    given.warn = [this](const std::string& text) { said.push_back(text); };
    loader = std::make_shared<Loader>(std::make_shared<Jpegs>(damaged), pipeline, given);
    received = loader->state();
    prefetcher = std::make_unique<Prefetcher>(device, prefetch);
    start();
  }
  void start() {
    prefetcher->start(
        std::make_unique<LoaderFeed>(std::make_shared<SharedBatches>(loader, 1, 2), 0));
  }
  void take_all(const std::vector<Bytes>& expected, int64_t most = kRecords) {
    const StreamPtr stream = device->foreign_stream(0);
    while (taken < most) {
      auto batch = prefetcher->next();
      if (!batch) break;
      ASSERT_LT(taken, int64_t(expected.size()));
      const DeviceTensor& image = batch->tensors[0];
      image.lease->use_on(0);
      const Bytes& wanted = expected[size_t(taken)];
      ASSERT_EQ(image.view.dense_bytes(), wanted.size());
      stream->run([this, data = image.view.data, &wanted] {
        wrong += std::memcmp(data, wanted.data(), wanted.size()) != 0;
      });
      received = static_cast<FedBatch*>(batch->rest.get())->state;
      ++taken;
    }
    stream->synchronize();
  }
  int64_t counted(Place place) const { return loader->stats().decoded[size_t(place)]; }
};

void expect_hosts(Delivery& run, const OnHost& expected) {
  run.make();
  ASSERT_NO_FATAL_FAILURE(run.take_all(expected.batches));
  EXPECT_EQ(run.taken, int64_t(expected.batches.size()));
  EXPECT_EQ(run.wrong, 0);
  EXPECT_GT(run.counted(Place::kDevice), kRecords / 3);
}

TEST(LoaderDecode, EveryDeviceGivesTheBatchesOfTheHost) {
  for (const Pipeline& pipeline : {train(true), train(false), eval()}) {
    const OnHost expected = on_host(pipeline);
    std::vector<DevicePtr> devices{host_device()};
    for (uint64_t seed = 0; seed < 4; seed += kSweepStep) {
      devices.push_back(std::make_shared<SimulatedDevice>(seed));
    }
    for (const DevicePtr& device : devices) {
      Delivery run{.device = device, .pipeline = pipeline};
      ASSERT_NO_FATAL_FAILURE(expect_hosts(run, expected));
      EXPECT_GT(run.counted(Place::kNoIndex), 5);
      EXPECT_EQ(run.counted(Place::kDamaged), 0);
    }
  }
}

TEST(LoaderDecode, ABatchLargerThanTheScratchMemoryIsDecodedInParts) {
  const OnHost expected = on_host(train(true));
  for (const size_t limit : {size_t{1}, size_t{1} << 20, size_t{3} << 20}) {
    Delivery run{.device = std::make_shared<SimulatedDevice>(limit), .pipeline = train(true)};
    run.prefetch.scratch_limit = limit;
    ASSERT_NO_FATAL_FAILURE(expect_hosts(run, expected));
    // Four lanes; a single picture may use as much memory as it needs.
    const size_t least = size_t{1} << 20;
    EXPECT_LE(run.prefetcher->stats().scratch_bytes, 4 * std::max(limit, least));
  }
}

// Damage that only decoding detects, and wrong indexes: the CPU makes the batch again.
TEST(LoaderDecode, DamageIsTreatedAsOnTheHost) {
  for (const Pipeline& pipeline : {train(true), eval()}) {
    const OnHost expected = on_host(pipeline, true);
    for (uint64_t seed = 0; seed < 4; seed += kSweepStep) {
      for (const int depth : {1, 2, 4}) {
        Delivery run{.device = std::make_shared<SimulatedDevice>(seed),
                     .pipeline = pipeline,
                     .damaged = true};
        run.prefetch.depth = depth;
        ASSERT_NO_FATAL_FAILURE(expect_hosts(run, expected));
        EXPECT_GT(run.counted(Place::kDamaged), 2);
        const LoaderStats stats = run.loader->stats();
        EXPECT_EQ(stats.bad_records, expected.stats.bad_records);
        EXPECT_EQ(stats.batches, expected.stats.batches);
        EXPECT_EQ(stats.records, expected.stats.records);
        EXPECT_EQ(stats.remarks.repaired, expected.stats.remarks.repaired);
        EXPECT_EQ(run.said, expected.said);
      }
    }
  }
}

TEST(LoaderDecode, ARunMayBeInterruptedAtAnyBatchAndContinued) {
  const OnHost expected = on_host(train(true), true);
  for (int64_t batch = 0; batch < int64_t(expected.batches.size()); ++batch) {
    for (uint64_t seed = 0; seed < 6; seed += kSweepStep) {
      Delivery run{.device = std::make_shared<SimulatedDevice>(seed),
                   .pipeline = train(true),
                   .damaged = true};
      run.prefetch.depth = 1 + int(seed % 3);
      run.make();
      ASSERT_NO_FATAL_FAILURE(run.take_all(expected.batches, batch));
      run.prefetcher->stop();  // with batches in flight whose verdict is not known yet
      run.loader->load_state(run.received);
      run.start();
      ASSERT_NO_FATAL_FAILURE(run.take_all(expected.batches));
      EXPECT_EQ(run.taken, int64_t(expected.batches.size()));
      EXPECT_EQ(run.wrong, 0);
    }
  }
}

// Whatever fails, the batches before it were correct, no memory remains in use on the device, and a
// loader on the CPU continues after the last batch received.
void expect_to_go_on(Delivery& run, const OnHost& expected, const char* code, int64_t k) {
  try {
    run.make();
    run.take_all(expected.batches);
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->id, code) << exception.what();
  }
  SCOPED_TRACE("k = " + std::to_string(k) + ", after " + std::to_string(run.taken) + " batches");
  EXPECT_EQ(run.wrong, 0);
  if (run.taken < int64_t(expected.batches.size())) {
    const OnHost rest = on_host(run.pipeline, run.damaged, &run.received);
    const std::vector<Bytes> wanted(expected.batches.begin() + run.taken, expected.batches.end());
    EXPECT_EQ(rest.batches, wanted);
  }
  run.prefetcher = nullptr;
  run.loader = nullptr;
  auto& device = static_cast<SimulatedDevice&>(*run.device);
  EXPECT_EQ(device.allocated_bytes(), 0u);
  EXPECT_EQ(device.pinned_ranges(), 0);
}

TEST(LoaderDecode, AfterAFailedAllocationTheCpuStillWorks) {
  const OnHost expected = on_host(train(true), true);
  int64_t refused = 0;
  for (int64_t k = 1; k <= 200; k += kSweepStep * (k < 40 ? 1 : 5)) {
    auto device = std::make_shared<SimulatedDevice>(uint64_t(k));
    device->refuse_allocation(k);
    Delivery run{.device = device, .pipeline = train(true), .damaged = true};
    expect_to_go_on(run, expected, "HR0880", k);
    refused += run.taken < int64_t(expected.batches.size());
  }
  EXPECT_GE(refused, 1);  // the first slabs: later ones get the lanes' memory
}

TEST(LoaderDecode, AfterALostDeviceTheCpuStillWorks) {
  const OnHost expected = on_host(train(true), true);
  int64_t lost = 0;
  for (int64_t k = 1; k <= 200; k += kSweepStep * (k < 40 ? 1 : 5)) {
    auto device = std::make_shared<SimulatedDevice>(uint64_t(k));
    device->fail_at(k);
    Delivery run{.device = device, .pipeline = train(true), .damaged = true};
    expect_to_go_on(run, expected, "HR0883", k);
    lost += run.taken < int64_t(expected.batches.size());
  }
  EXPECT_GE(lost, 30 / kSweepStep);
}

// A device that "auto" treats as a GPU.
class Gpu final : public Device {
 public:
  std::string_view backend() const override { return "cuda"; }
  int index() const override { return 0; }
  std::string name() const override { return "cuda:0"; }
  std::shared_ptr<void> allocate(size_t bytes) override { return its_.allocate(bytes); }
  bool pin(void* pages, size_t bytes) override { return its_.pin(pages, bytes); }
  void unpin(void* pages) noexcept override { its_.unpin(pages); }
  size_t free_bytes() const override { return its_.free_bytes(); }
  size_t total_bytes() const override { return its_.total_bytes(); }
  StreamPtr make_stream() override { return its_.make_stream(); }
  StreamPtr foreign_stream(uintptr_t handle) override { return its_.foreign_stream(handle); }

 private:
  SimulatedDevice its_{1};
};

// At any number of threads.
TEST(LoaderDecode, AutoDependsOnTheFractionThatAGpuCanDecode) {
  const SourcePtr files = std::make_shared<Jpegs>(false);
  std::vector<int64_t> indexed;
  for (int64_t i = 0; i < kRecords; ++i) {
    if (i % 7 != 5 && i % 11 != 3) indexed.push_back(i);
  }
  LoaderOptions given = decode_options();
  given.device = std::make_shared<Gpu>();
  given.finish = FinishUse::kAuto;
  given.decode = DecodeUse::kAuto;
  const auto decode = [&](const SourcePtr& source, const Pipeline& pipeline) {
    return Loader(source, pipeline, given).resolved("decode");
  };
  for (const int threads : {1, 16}) {
    given.threads = threads;
    EXPECT_EQ(decode(subset(files, indexed), train(true)), "device: cuda:0");
    EXPECT_EQ(decode(subset(files, indexed), train(false)), "device: cuda:0");
  }
  const std::string some = decode(files, train(true));
  EXPECT_TRUE(some.starts_with("cpu: ")) << some;
  EXPECT_NE(some.find("of 64 images have no row index (index=False disables it)"),
            std::string::npos)
      << some;
  EXPECT_NE(some.find("are not baseline JPEGs"), std::string::npos) << some;
  Pipeline twice;
  twice.transforms = {{"Resize", {{"size", std::vector<int64_t>{60, 60}}}, {}, {}},
                      {"Resize", {{"size", std::vector<int64_t>{40, 40}}}, {}, {}}};
  const std::string pixels = decode(subset(files, indexed), twice);
  // It stops after half a second, with fewer under a sanitizer.
  const std::string inspected = kSweepStep == 1 ? "63 images " : "";
  EXPECT_TRUE(pixels.starts_with("cpu: 100 % of " + inspected)) << pixels;
  EXPECT_NE(pixels.find("images must be decoded early"), std::string::npos) << pixels;
}

}  // namespace
}  // namespace headrace
