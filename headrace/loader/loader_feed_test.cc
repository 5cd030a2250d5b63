// SPDX-License-Identifier: Apache-2.0
// A loader's batches on devices equal those on the host, with any work in flight.
#include "headrace/loader/loader_feed.h"

#include <gtest/gtest.h>

#include <cstring>

#include "headrace/device/simulated/simulated_device.h"
#include "headrace/loader/loader_test_numbers.h"

namespace headrace {
namespace loader_feed_test {

std::vector<int64_t> on_host(const DeviceTensor& tensor) {
  tensor.lease->wait_on_host();
  std::vector<int64_t> values(static_cast<size_t>(tensor.view.elements()));
  if (!values.empty()) std::memcpy(values.data(), tensor.view.data, tensor.view.dense_bytes());
  return values;
}

// One loader, and the devices that its batches are divided over.
struct Delivery {
  std::shared_ptr<Loader> loader;
  std::vector<std::shared_ptr<SimulatedDevice>> devices;
  std::vector<std::unique_ptr<Prefetcher>> prefetchers;

  Delivery(LoaderOptions given, int parts, std::set<int64_t> bad = {}) {
    for (int part = 0; part < parts; ++part) {
      devices.push_back(std::make_shared<SimulatedDevice>(static_cast<uint64_t>(part) + 1));
      prefetchers.push_back(
          std::make_unique<Prefetcher>(devices.back(), PrefetchOptions{.depth = 2}));
    }
    given.device = devices[0];
    loader =
        std::make_shared<Loader>(std::make_shared<Numbers>(500, std::move(bad)), Pipeline{}, given);
  }

  void start() {
    auto batches = std::make_shared<SharedBatches>(loader, static_cast<int>(prefetchers.size()), 2);
    for (size_t part = 0; part < prefetchers.size(); ++part) {
      prefetchers[part]->start(std::make_unique<LoaderFeed>(batches, static_cast<int>(part)));
    }
  }

  // Labels of the parts of the next batch, concatenated; empty at the end.
  std::optional<std::vector<int64_t>> next() {
    std::vector<int64_t> labels;
    bool any = false;
    for (auto& prefetcher : prefetchers) {
      std::optional<DeviceBatch> part = prefetcher->next();
      if (!part) continue;
      any = true;
      const std::vector<int64_t> values = on_host(part->tensors[0]),
                                 own = on_host(part->tensors[1]);
      for (size_t i = 0; i < own.size(); ++i) {
        EXPECT_EQ(3 * values[i * Numbers::kWidth], own[i]);
        EXPECT_EQ(3 * values[(i + 1) * Numbers::kWidth - 1], own[i]);
      }
      labels.insert(labels.end(), own.begin(), own.end());
      received = static_cast<FedBatch*>(part->rest.get())->state;
    }
    if (!any) return std::nullopt;
    return labels;
  }
  LoaderState received;
};

TEST(LoaderFeed, DevicesTogetherGetTheBatchesOfTheLoader) {
  for (int parts : {1, 2, 3, 8}) {
    Loader alone(std::make_shared<Numbers>(500), Pipeline{}, options(64));
    Delivery delivery(options(64), parts);
    for (int epoch = 0; epoch < 2; ++epoch) {
      delivery.start();
      while (auto batch = alone.next()) EXPECT_EQ(delivery.next(), labels_of(*batch));
      EXPECT_EQ(delivery.next(), std::nullopt);
      for (auto& prefetcher : delivery.prefetchers) prefetcher->stop();
      EXPECT_EQ(delivery.loader->epoch(), epoch + 1);
    }
  }
}

TEST(LoaderFeed, AStoppedRunContinuesAfterTheLastBatchReceived) {
  Loader alone(std::make_shared<Numbers>(500), Pipeline{}, options(32));
  Delivery delivery(options(32), 2);
  delivery.start();
  for (int number = 0; number < 15; ++number) {
    EXPECT_EQ(delivery.next(), labels_of(*alone.next()));
    if (number % 4 != 3) continue;
    for (auto& prefetcher : delivery.prefetchers) prefetcher->stop();
    delivery.loader->load_state(delivery.received);
    delivery.start();
  }
}

TEST(LoaderFeed, AnErrorIsRaisedAtItsBatchOnEveryDevice) {
  LoaderOptions given = options(50);
  given.shuffle = false;
  Delivery delivery(given, 2, {123});
  delivery.start();
  for (int number = 0; number < 2; ++number) EXPECT_TRUE(delivery.next());
  for (auto& prefetcher : delivery.prefetchers) {
    EXPECT_THROW((void)prefetcher->next(), Exception);
    EXPECT_EQ(prefetcher->next(), std::nullopt);
  }
}

TEST(LoaderFeed, SlotsArePinnedForTheDeviceAndReleasedWithTheLoader) {
  Delivery delivery(options(64), 1);
  delivery.start();
  while (delivery.next()) {
  }
  EXPECT_GE(delivery.devices[0]->pinned_ranges(), 2);  // slots, and staging for the labels
  EXPECT_LT(delivery.prefetchers[0]->stats().pinned_bytes, 64u * 1024);  // small
  const auto device = delivery.devices[0];
  delivery.prefetchers.clear();
  delivery.loader = nullptr;
  EXPECT_EQ(device->pinned_ranges(), 0);
  EXPECT_EQ(device->allocated_bytes(), 0u);
}

}  // namespace loader_feed_test
}  // namespace headrace
