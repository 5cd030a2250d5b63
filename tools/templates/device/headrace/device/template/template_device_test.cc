// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "headrace/base/error.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

TEST(TemplateDevice, IsOpenedByItsName) {
  EXPECT_EQ(open_device("template")->name(), "template:0");
  EXPECT_EQ(open_device("template:2")->index(), 2);
  EXPECT_EQ(open_device("template:2"), open_device("template:2"));
  EXPECT_THROW(open_device("template:4"), Exception);
}

TEST(TemplateDevice, CopiesToItsMemoryAndBackInOrder) {
  const DevicePtr device = open_device("template:1");
  const std::string sent = "a batch";
  const auto memory = device->allocate(sent.size());
  std::string received(sent.size(), ' ');
  const StreamPtr there = device->make_stream(), back = device->make_stream();
  there->copy(memory.get(), sent.data(), sent.size());
  back->wait(there->record());
  back->copy(received.data(), memory.get(), sent.size());
  back->record()->wait_on_host();
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace headrace
