// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/compose_tables.h"

#include "headrace/kernels/batch/batch_test_devices.h"

namespace headrace {
namespace {

class ComposeTablesOn : public OnTestDevice {
 protected:
  template <class Element>
  void expect_composed(int channels) {
    TestDraws draws(uint32_t(channels) + sizeof(Element));
    const int tables = 5, maps = 3, sets = 17;
    const size_t table = size_t(channels) * 256;
    const auto bytes = draws.values<uint8_t>(table * tables);
    const auto elements = draws.values<Element>(table * maps);
    std::vector<TablePair> pairs;
    for (int set = 0; set < sets; ++set) {
      pairs.push_back({draws.between(-1, tables - 1), draws.below(maps)});
    }
    Element* const out = room<Element>(table * sets);
    run_here(ComposeTables{.pairs = put(pairs),
                           .bytes = put(bytes),
                           .maps = put(elements),
                           .tables = out,
                           .sets = sets,
                           .channels = channels,
                           .element = int(sizeof(Element))});
    const std::vector<Element> got = get(out, table * sets);
    for (size_t i = 0; i < got.size(); ++i) {
      const TablePair& pair = pairs[i / table];
      const size_t channel = i % table / 256 * 256;
      size_t value = i % 256;  // two successive lookups
      if (pair.bytes >= 0) value = bytes[table * size_t(pair.bytes) + channel + value];
      ASSERT_EQ(got[i], elements[table * size_t(pair.map) + channel + value]) << i;
    }
  }
};

TEST_P(ComposeTablesOn, ASetCombinesTheByteTableAndTheMap) {
  for (const int channels : {1, 3}) {
    expect_composed<uint8_t>(channels);
    expect_composed<uint16_t>(channels);
    expect_composed<uint32_t>(channels);
  }
}

TEST_P(ComposeTablesOn, NoSetsMeanNoWork) {
  EXPECT_EQ(ComposeTables{.channels = 3}.items(), 0);
  run_here(ComposeTables{.channels = 3});
}

INSTANTIATE_TEST_SUITE_P(Devices, ComposeTablesOn, testing::ValuesIn(test_devices()),
                         test_device_name);

}  // namespace
}  // namespace headrace
