// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/slots.h"

#include <gtest/gtest.h>

#include <thread>

namespace headrace {
namespace {

TEST(SlotRing, LendsEachBufferOnceAndTakesItBack) {
  int returned = 0;
  auto ring = std::make_shared<SlotRing>(1000, 2, [&] { ++returned; });
  auto a = ring->take(), b = ring->take();
  EXPECT_NE(a.get(), b.get());
  EXPECT_EQ(ring->take(), nullptr);
  void* memory = a.get();
  a.reset();
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(ring->take().get(), memory);
}

TEST(SlotRing, OutlivesItsOwnerAsLongAsALeaseDoes) {
  auto ring = std::make_shared<SlotRing>(64, 1, [] {});
  auto lease = ring->take();
  ring->detach();
  ring.reset();
  static_cast<char*>(lease.get())[63] = 1;
  std::thread([&] { lease.reset(); }).join();
}

TEST(SlotRing, MapsMemoryOnlyWhenItIsTaken) {
  auto ring = std::make_shared<SlotRing>(4096, 8, [] {});
  EXPECT_EQ(ring->mapped_bytes(), 0u);
  auto lease = ring->take();
  EXPECT_EQ(ring->mapped_bytes(), 4096u);
}

}  // namespace
}  // namespace headrace
