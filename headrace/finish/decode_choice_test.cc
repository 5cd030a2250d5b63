// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/decode_choice.h"

#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"

namespace headrace {
namespace {

// A fake GPU with only what the choice inspects.
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

// A picture that may be decoded on the device.
DecodeInputs question(DecodeUse use, const Device& device) {
  return {
      .use = use, .finish = FinishUse::kAuto, .device = &device, .encoded = true, .strict = false};
}

const FinishChoice kFinished{
    .places = {FinishPlace::kDevice}, .text = "cuda:0", .decodable = {true}};

TEST(DecodeChoice, DeviceModeAcceptsAnyAvailableDevice) {
  const Gpu gpu;
  const SimulatedDevice simulated(1);
  for (const Device* device :
       std::initializer_list<const Device*>{&gpu, host_device().get(), &simulated}) {
    const DecodeChoice choice = choose_decode(question(DecodeUse::kDevice, *device), kFinished);
    EXPECT_TRUE(choice.on_device);
    EXPECT_EQ(choice.text, "device: " + device->name());
  }
}

TEST(DecodeChoice, AutoModeRequiresAGpuThatCanDecode90Percent) {
  using Place = DeviceDecoding::Place;
  const Gpu gpu;
  const DecodeChoice chosen = choose_decode(question(DecodeUse::kAuto, gpu), kFinished);
  EXPECT_EQ(chosen.text, "device: cuda:0");
  EXPECT_EQ(choose_decode(question(DecodeUse::kAuto, *host_device()), kFinished).text,
            "cpu: cpu is not a GPU");
  const auto tried = [&](int64_t on_device, int64_t without_index, int64_t progressive) {
    DeviceDecoding::Counts counts{};
    counts[size_t(Place::kDevice)] = on_device;
    counts[size_t(Place::kNoIndex)] = without_index;
    counts[size_t(Place::kFormat)] = progressive;
    counts[size_t(Place::kField)] = 1000;  // of another field
    return choose_decode(chosen, DecodedShare(counts), "`headrace index a/` makes one").text;
  };
  EXPECT_EQ(tried(64, 0, 0), "device: cuda:0");
  EXPECT_EQ(tried(58, 6, 0), "device: cuda:0");
  EXPECT_EQ(tried(0, 0, 0), "device: cuda:0");  // no picture could be sampled
  EXPECT_EQ(tried(57, 7, 0),
            "cpu: 10.9 % of 64 images have no row index (`headrace index a/` makes one)");
  EXPECT_EQ(tried(0, 1, 1999),
            "cpu: 99.9 % of 2,000 images are not baseline JPEGs, 0.1 % have no row index "
            "(`headrace index a/` makes one)");
}

TEST(DecodeChoice, TheCpuDecodesOnRequestOrIfBatchesStayOnTheHost) {
  const Gpu gpu;
  EXPECT_EQ(choose_decode(question(DecodeUse::kCpu, gpu)).text, "cpu");
  DecodeInputs asked = question(DecodeUse::kDevice, gpu);
  asked.device = nullptr;
  EXPECT_EQ(choose_decode(asked).text, "cpu: batches stay on the host");
  asked.strict = true;  // obstacles to device decoding do not matter then
  EXPECT_FALSE(choose_decode(asked).on_device);
}

// An obstacle is an error for "device" and a reason for "auto".
TEST(DecodeChoice, ObstaclesAreNamed) {
  const Gpu gpu;
  const auto expect = [&](auto&& change, const FinishChoice& finish, const std::string& why) {
    for (const DecodeUse use : {DecodeUse::kAuto, DecodeUse::kDevice}) {
      DecodeInputs asked = question(use, gpu);
      change(asked);
      if (use == DecodeUse::kAuto) {
        const DecodeChoice choice = choose_decode(asked, finish);
        EXPECT_FALSE(choice.on_device);
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
  expect([](DecodeInputs& asked) { asked.finish = FinishUse::kHost; }, kFinished,
         "finish=\"cpu\" requires finished rows");
  expect([](DecodeInputs& asked) { asked.encoded = false; }, kFinished,
         "the source has no encoded images");
  expect([](DecodeInputs& asked) { asked.strict = true; }, kFinished,
         "strict=True inspects the whole file");
  expect([](DecodeInputs&) {}, {{}, "cpu: RandomAffine prevents it"},
         "images are finished on the CPU: RandomAffine prevents it");
  expect([](DecodeInputs&) {},
         {.places = {FinishPlace::kDevice}, .text = "cuda:0", .decodable = {false}},
         "only clips or masks are finished there, and threads decode these");
}

}  // namespace
}  // namespace headrace
