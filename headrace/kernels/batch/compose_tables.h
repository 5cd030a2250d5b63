// SPDX-License-Identifier: Apache-2.0
// ComposeTables: composes a picture's lookup table with a value mapping, to one set of tables for
// PictureBatch (ElementMap::table). So a record's brightness or gamma is copied as 256 bytes per
// channel, and costs nothing in the pass over its pixels.
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/lanes.h"

namespace headrace {

// The tables that make up a set, by number.
struct TablePair {
  int32_t bytes = -1;  // index of the byte table; negative: none, only the map
  int32_t map = 0;
};

struct ComposeTables {
  const TablePair* pairs = nullptr;  // [sets]
  const uint8_t* bytes = nullptr;    // [..][channels][256]
  const void* maps = nullptr;        // [..][channels][256] elements
  void* tables = nullptr;            // [sets][channels][256] elements
  int64_t sets = 0;
  int32_t channels = 1;
  int element = 1;  // bytes per element: 1, 2 or 4

  HEADRACE_HD int64_t items() const { return sets * channels; }

  HEADRACE_HD void operator()(int64_t item, Lane lane) const {
    switch (element) {
      case 1:
        return table<uint8_t>(item, lane);
      case 2:
        return table<uint16_t>(item, lane);
      default:
        return table<uint32_t>(item, lane);
    }
  }

 private:
  template <class Element>
  HEADRACE_HD void table(int64_t item, Lane lane) const {
    const int64_t set = item / channels, channel = item - set * channels;
    const TablePair pair = pairs[set];
    const Element* const map =
        static_cast<const Element*>(maps) + (int64_t{pair.map} * channels + channel) * 256;
    const uint8_t* const first =
        pair.bytes < 0 ? nullptr : bytes + (int64_t{pair.bytes} * channels + channel) * 256;
    Element* const to = static_cast<Element*>(tables) + item * 256;
    for (int32_t value = lane.number; value < 256; value += lane.count) {
      to[value] = map[first ? first[value] : value];
    }
  }
};

}  // namespace headrace
