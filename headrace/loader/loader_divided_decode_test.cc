// SPDX-License-Identifier: Apache-2.0
// Batches that are divided over devices, each of which decodes its part, equal the host's batches:
// for any delay of one device, damage in any part, and any failure.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "headrace/base/sweep_test_width.h"
#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/loader/loader_feed.h"
#include "headrace/loader/loader_test_jpegs.h"

namespace headrace {
namespace {

using Place = DeviceDecoding::Place;

// A run on several devices, each part read by a stream of its device when that stream reaches the
// read.
struct DividedDelivery {
  std::vector<DevicePtr> devices;
  Pipeline pipeline;
  bool damaged = false;
  OnError policy = OnError::kSubstitute;
  int depth = 2;
  DecodeUse decode = DecodeUse::kDevice;
  std::vector<std::string> said = {};  // by the loader
  std::shared_ptr<Loader> loader = {};
  std::vector<std::unique_ptr<Prefetcher>> prefetchers = {};
  LoaderState received = {};
  int64_t taken = 0;
  std::atomic<int64_t> wrong = 0;  // devices work at the same time

  void make() {
    LoaderOptions given = decode_options(damaged, policy);
    given.device = devices[0];
    given.finish = FinishUse::kAuto;
    given.decode = decode;
    given.warn = [this](const std::string& text) { said.push_back(text); };
    loader = std::make_shared<Loader>(std::make_shared<Jpegs>(damaged), pipeline, given);
    received = loader->state();
    for (const DevicePtr& device : devices) {
      prefetchers.push_back(std::make_unique<Prefetcher>(device, PrefetchOptions{.depth = depth}));
    }
    start();
  }
  void start() {
    auto batches = std::make_shared<SharedBatches>(loader, int(devices.size()), depth);
    for (size_t part = 0; part < prefetchers.size(); ++part) {
      prefetchers[part]->start(std::make_unique<LoaderFeed>(batches, int(part)));
    }
  }
  void stop() {
    for (auto& prefetcher : prefetchers) prefetcher->stop();
  }
  void take_all(const std::vector<Bytes>& expected, int64_t most = kRecords) {
    std::vector<Prefetcher*> all;
    for (auto& prefetcher : prefetchers) all.push_back(prefetcher.get());
    std::vector<StreamPtr> streams;
    for (const DevicePtr& device : devices) streams.push_back(device->foreign_stream(0));
    while (taken < most) {
      auto parts = next_of_all(all);
      if (!parts) break;
      ASSERT_LT(taken, int64_t(expected.size()));
      const Bytes& wanted = expected[size_t(taken)];
      size_t at = 0;
      for (size_t part = 0; part < parts->size(); ++part) {
        const DeviceTensor& image = (*parts)[part].tensors[0];
        image.lease->use_on(0);
        const size_t bytes = image.view.dense_bytes();
        ASSERT_LE(at + bytes, wanted.size());
        streams[part]->run([this, data = image.view.data, its = wanted.data() + at, bytes] {
          wrong += bytes > 0 && std::memcmp(data, its, bytes) != 0;
        });
        at += bytes;
      }
      ASSERT_EQ(at, wanted.size());
      received = static_cast<FedBatch*>(parts->front().rest.get())->state;
      ++taken;
    }
    for (const StreamPtr& stream : streams) stream->synchronize();
  }
  int64_t counted(Place place) const { return loader->stats().decoded[size_t(place)]; }
  uint64_t transferred() const {
    uint64_t out = 0;
    for (const auto& prefetcher : prefetchers) out += prefetcher->stats().bytes;
    return out;
  }
};

std::vector<DevicePtr> simulated(int count, uint64_t seed) {
  std::vector<DevicePtr> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(std::make_shared<SimulatedDevice>(seed * 10 + uint64_t(i)));
  }
  return out;
}

void expect_hosts(DividedDelivery& run, const OnHost& expected) {
  run.make();
  ASSERT_NO_FATAL_FAILURE(run.take_all(expected.batches));
  EXPECT_EQ(run.taken, int64_t(expected.batches.size()));
  EXPECT_EQ(run.wrong.load(), 0);
  EXPECT_GT(run.counted(Place::kDevice), kRecords / 3);
}

TEST(LoaderDividedDecode, DevicesTogetherGiveTheBatchesOfTheHost) {
  for (const Pipeline& pipeline : {train(true), train(false), eval()}) {
    const OnHost expected = on_host(pipeline);
    std::vector<std::vector<DevicePtr>> all{{host_device(), host_device()},
                                            {host_device(), std::make_shared<SimulatedDevice>(1)}};
    for (const int count : {2, 3, 8, 23}) all.push_back(simulated(count, uint64_t(count)));
    for (const std::vector<DevicePtr>& devices : all) {
      DividedDelivery run{.devices = devices, .pipeline = pipeline};
      ASSERT_NO_FATAL_FAILURE(expect_hosts(run, expected));
      EXPECT_EQ(run.counted(Place::kDamaged), 0);
    }
  }
}

// Only the rows of each part are copied, wherever they are in the slot, not the slot to each
// device.
TEST(LoaderDividedDecode, EachDeviceGetsOnlyTheBytesOfItsPart) {
  const OnHost expected = on_host(train(true));
  DividedDelivery one{.devices = simulated(1, 1), .pipeline = train(true)};
  ASSERT_NO_FATAL_FAILURE(expect_hosts(one, expected));
  DividedDelivery two{.devices = simulated(2, 2), .pipeline = train(true)};
  ASSERT_NO_FATAL_FAILURE(expect_hosts(two, expected));
  for (const auto& prefetcher : two.prefetchers) {
    EXPECT_GT(prefetcher->stats().bytes, one.transferred() / 4);
  }
  // Small rows of other parts between them are copied, too: a separate copy would take as long.
  EXPECT_LT(two.transferred(), one.transferred() + one.transferred() / 2);
}

TEST(LoaderDividedDecode, DamageInAnyPartIsTreatedAsOnTheHost) {
  for (const OnError policy : {OnError::kSubstitute, OnError::kSkip}) {
    const OnHost expected = on_host(train(true), true, nullptr, policy);
    for (uint64_t seed = 0; seed < 6; seed += kSweepStep) {
      DividedDelivery run{.devices = simulated(2 + int(seed % 3), seed),
                          .pipeline = train(true),
                          .damaged = true,
                          .policy = policy};
      run.depth = 1 + int(seed % 4);
      ASSERT_NO_FATAL_FAILURE(expect_hosts(run, expected));
      EXPECT_GT(run.counted(Place::kDamaged), 2);
      const LoaderStats stats = run.loader->stats();
      EXPECT_EQ(stats.bad_records, expected.stats.bad_records);
      EXPECT_EQ(stats.batches, expected.stats.batches);
      EXPECT_EQ(stats.records, expected.stats.records);
      EXPECT_EQ(stats.remarks.repaired, expected.stats.remarks.repaired);
      // There is also a warning that devices which are far apart occupy many slots.
      std::erase_if(run.said, [](const std::string& text) { return text.starts_with("all "); });
      EXPECT_EQ(run.said, expected.said);
    }
  }
}

// A second epoch, with different devices in between, finds the loader at the correct position.
TEST(LoaderDividedDecode, ARunMayBeInterruptedAtAnyBatchAndContinued) {
  const OnHost expected = on_host(train(true), true);
  for (int64_t batch = 0; batch < int64_t(expected.batches.size()); ++batch) {
    for (uint64_t seed = 0; seed < 4; seed += kSweepStep) {
      DividedDelivery run{.devices = simulated(2, seed), .pipeline = train(true), .damaged = true};
      run.depth = 1 + int(seed % 3);
      run.make();
      ASSERT_NO_FATAL_FAILURE(run.take_all(expected.batches, batch));
      run.stop();  // with batches in flight whose verdict is not known yet
      run.loader->load_state(run.received);
      run.start();
      ASSERT_NO_FATAL_FAILURE(run.take_all(expected.batches));
      EXPECT_EQ(run.taken, int64_t(expected.batches.size()));
      EXPECT_EQ(run.wrong.load(), 0);
    }
  }
}

// One of the devices fails: the batches before that were correct, no memory remains in use on any
// device, and a loader on the CPU continues after the last batch received.
void expect_to_go_on(DividedDelivery& run, const OnHost& expected, const char* code) {
  try {
    run.make();
    run.take_all(expected.batches);
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->id, code) << exception.what();
  }
  EXPECT_EQ(run.wrong.load(), 0);
  if (run.taken < int64_t(expected.batches.size())) {
    const OnHost rest = on_host(run.pipeline, run.damaged, &run.received);
    const std::vector<Bytes> wanted(expected.batches.begin() + run.taken, expected.batches.end());
    EXPECT_EQ(rest.batches, wanted);
  }
  run.prefetchers.clear();
  run.loader = nullptr;
  for (const DevicePtr& device : run.devices) {
    EXPECT_EQ(static_cast<SimulatedDevice&>(*device).allocated_bytes(), 0u);
    EXPECT_EQ(static_cast<SimulatedDevice&>(*device).pinned_ranges(), 0);
  }
}

TEST(LoaderDividedDecode, AnyDeviceMayRunOutOfMemoryOrBeLost) {
  const OnHost expected = on_host(train(true), true);
  int64_t refused = 0, lost = 0;
  for (int64_t k = 1; k <= 200; k += kSweepStep * (1 + k / 20)) {
    for (const bool loses : {false, true}) {
      SCOPED_TRACE((loses ? "lost at " : "refused at ") + std::to_string(k));
      const std::vector<DevicePtr> devices = simulated(2, uint64_t(k));
      auto& bad = static_cast<SimulatedDevice&>(*devices[size_t(k % 2)]);
      loses ? bad.fail_at(k) : bad.refuse_allocation(k);
      DividedDelivery run{.devices = devices, .pipeline = train(true), .damaged = true};
      expect_to_go_on(run, expected, loses ? "HR0883" : "HR0880");
      (loses ? lost : refused) += run.taken < int64_t(expected.batches.size());
    }
  }
  EXPECT_GE(refused, kSweepStep > 1 ? 1 : 2);
  EXPECT_GE(lost, 20 / kSweepStep);
}

}  // namespace
}  // namespace headrace
