// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/decode_choice.h"

#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/device/host/host_device.h"
#include "headrace/device/simulated/simulated_device.h"

namespace headrace {
namespace {

// A GPU, as far as the choice looks at it.
class Gpu final : public Device {
 public:
  std::string_view backend() const override { return "cuda"; }
  int index() const override { return 0; }
  std::string name() const override { return "cuda:0"; }
  std::shared_ptr<void> allocate(size_t) override { return nullptr; }
  bool pin(void*, size_t) override { return false; }
  void unpin(void*) noexcept override {}
  size_t free_bytes() const override { return 0; }
  size_t total_bytes() const override { return 0; }
  StreamPtr make_stream() override { return nullptr; }
  StreamPtr foreign_stream(uintptr_t) override { return nullptr; }
};

// One that may be decoded on the device.
DecodeQuestion question(DecodeUse use, const Device& device) {
  return {.use = use,
          .finish = FinishUse::kAuto,
          .device = &device,
          .encoded = true,
          .strict = false,
          .threads = 1};
}

const FinishChoice kFinished{
    .there = {FinishPlace::kDevice}, .text = "cuda:0", .decodable = {true}};

TEST(DecodeChoice, DeviceMeansWhicheverDeviceThereIs) {
  const Gpu gpu;
  const SimulatedDevice simulated(1);
  for (const Device* device :
       std::initializer_list<const Device*>{&gpu, host_device().get(), &simulated}) {
    DecodeQuestion asked = question(DecodeUse::kDevice, *device);
    asked.threads = 64;
    const DecodeChoice choice = choose_decode(asked, kFinished);
    EXPECT_TRUE(choice.there);
    EXPECT_EQ(choice.text, "device: " + device->name());
  }
}

TEST(DecodeChoice, AutoMeansAGpuBesideFewThreads) {
  const Gpu gpu;
  DecodeQuestion asked = question(DecodeUse::kAuto, gpu);
  EXPECT_EQ(choose_decode(asked, kFinished).text, "device: cuda:0");
  asked.threads = 2;
  EXPECT_TRUE(choose_decode(asked, kFinished).there);
  asked.threads = 3;
  EXPECT_EQ(choose_decode(asked, kFinished).text, "cpu: 3 threads decode");
  asked = question(DecodeUse::kAuto, *host_device());
  EXPECT_EQ(choose_decode(asked, kFinished).text, "cpu: cpu is no GPU");
}

TEST(DecodeChoice, WhereNothingStandsInTheWayOfTheCpu) {
  const Gpu gpu;
  EXPECT_EQ(choose_decode(question(DecodeUse::kCpu, gpu)).text, "cpu");
  DecodeQuestion asked = question(DecodeUse::kDevice, gpu);
  asked.device = nullptr;
  EXPECT_EQ(choose_decode(asked).text, "cpu: batches stay on the host");
  asked.strict = true;  // nor does what would stand in the way of a device
  EXPECT_FALSE(choose_decode(asked).there);
}

// What stands in the way is an error for "device" and a reason for "auto".
TEST(DecodeChoice, WhatStandsInTheWayIsNamed) {
  const Gpu gpu;
  const auto expect = [&](auto&& change, const FinishChoice& finish, const std::string& why) {
    for (const DecodeUse use : {DecodeUse::kAuto, DecodeUse::kDevice}) {
      DecodeQuestion asked = question(use, gpu);
      change(asked);
      if (use == DecodeUse::kAuto) {
        const DecodeChoice choice = choose_decode(asked, finish);
        EXPECT_FALSE(choice.there);
        EXPECT_EQ(choice.text, "cpu: " + why);
        continue;
      }
      try {
        (void)choose_decode(asked, finish);
        ADD_FAILURE() << why;
      } catch (const Exception& exception) {
        EXPECT_EQ(exception.error().code->id, "HR0717");
        EXPECT_NE(exception.error().what.find(why), std::string::npos) << exception.what();
      }
    }
  };
  expect([](DecodeQuestion& asked) { asked.finish = FinishUse::kHost; }, kFinished,
         "finish=\"host\" wants finished rows");
  expect([](DecodeQuestion& asked) { asked.encoded = false; }, kFinished,
         "the source has no encoded pictures");
  expect([](DecodeQuestion& asked) { asked.strict = true; }, kFinished,
         "strict=True looks at all of a file");
  expect([](DecodeQuestion&) {}, {{}, "host: RandomAffine stands in the way"},
         "pictures are finished on the host: RandomAffine stands in the way");
  expect([](DecodeQuestion&) {},
         {.there = {FinishPlace::kDevice}, .text = "cuda:0", .decodable = {false}},
         "only clips are finished there, and threads decode videos");
}

}  // namespace
}  // namespace headrace
