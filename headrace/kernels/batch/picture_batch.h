// SPDX-License-Identifier: Apache-2.0
// PictureBatch: makes a batch from pictures in memory, in one pass: gather, crop with padding,
// horizontal flip, cutout, value mapping, dtype and layout. Each part is optional, so the same
// kernel is a flip, a crop, a cutout, a normalization or a change of layout alone. The kernel does
// no arithmetic: 8-bit samples go through a table made by the CPU's own code (kernels/store.h), all
// other samples are copied. So a batch has the same bits on every device.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/lanes.h"
#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/batch/picture_layout.h"
#include "headrace/kernels/batch/row_choice.h"
#include "headrace/kernels/store.h"

namespace headrace {

// The operations on one picture, in this order: crop, flip, map, cutout.
struct PictureEdit {
  // Position of the batch's first pixel in the picture. Everything outside the picture is padding.
  int32_t top = 0, left = 0;
  int32_t flip = 0;  // 1: the crop is mirrored left to right
  // A rectangle of the finished picture to overwrite; it may extend past its edges. Empty: none.
  int32_t cut_top = 0, cut_left = 0, cut_bottom = 0, cut_right = 0;
  int32_t tables = 0;  // index of the set in ElementMap::table
  // The rectangle's value per channel: the bits of a batch element, in the low bytes. It is applied
  // after the map; for a color given before the map, look it up in the table.
  uint32_t cut[4] = {};
};

// Maps a sample. Elements are 1, 2 or 4 bytes; their dtype does not matter.
struct ElementMap {
  int bytes = 1;  // bytes per element of the batch
  // [sets][channels][256] elements, for 8-bit samples; in the memory of the device that runs the
  // kernel. Null: samples are `bytes` wide and are copied unchanged.
  const void* table = nullptr;
  uint32_t padding[4] = {};  // value outside of a picture, by channel, in the format of
                             // PictureEdit::cut
};

struct PictureBatch {
  static constexpr int kMaxChannels = 4;

  const void* pictures = nullptr;
  PictureStrides from = {};
  int32_t channels = 1;           // 1 to 4
  int32_t height = 0, width = 0;  // of each picture

  RowChoice choice = RowChoice::slice(0);  // which pictures
  int64_t count = 0;                       // how many
  const PictureEdit* edits = nullptr;      // [count], in the memory of the device that runs the
                                           // kernel; null: no edits

  void* batch = nullptr;  // must not overlap the pictures
  PictureStrides to = {};
  int32_t to_height = 0, to_width = 0;
  ElementMap map = {};

  // Rows of a picture per item, so that the picture's parameters are loaded only once for them.
  static constexpr int kRows = 8;

  HEADRACE_HD int64_t items() const { return to_width > 0 ? count * row_groups() : 0; }

  HEADRACE_HD void operator()(int64_t item, Lane lane) const {
    switch (map.bytes) {
      case 1:
        return map.table ? rows<uint8_t, uint8_t>(item, lane) : rows<uint8_t, void>(item, lane);
      case 2:
        return map.table ? rows<uint16_t, uint8_t>(item, lane) : rows<uint16_t, void>(item, lane);
      default:
        return map.table ? rows<uint32_t, uint8_t>(item, lane) : rows<uint32_t, void>(item, lane);
    }
  }

 private:
  HEADRACE_HD int64_t row_groups() const { return (int64_t{to_height} + kRows - 1) / kRows; }

  // Converts a sample to an element: 8-bit samples by table; unchanged if Sample is void.
  template <class Element, class Sample>
  struct Look {
    using Stored = Sample;
    const Element* table;
    HEADRACE_HD Look(const ElementMap& map, int64_t channel)
        : table(static_cast<const Element*>(map.table) + channel * 256) {}
    HEADRACE_HD Element operator()(Sample sample) const { return table[sample]; }
  };
  template <class Element>
  struct Look<Element, void> {
    using Stored = Element;
    HEADRACE_HD Look(const ElementMap&, int64_t) {}
    HEADRACE_HD Element operator()(Element sample) const { return sample; }
  };

  struct Columns {
    int32_t begin, end;
  };
  // Clips a range of columns to the width of the batch's rows.
  HEADRACE_HD Columns clipped(int64_t begin, int64_t end) const {
    begin = begin < 0 ? 0 : begin < to_width ? begin : to_width;
    end = end < begin ? begin : end < to_width ? end : to_width;
    return {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
  }

  template <class Element>
  HEADRACE_HD void fill(Element* to_row, int32_t begin, int32_t end, uint32_t bits,
                        Lane lane) const {
    HEADRACE_ROLLED
    for (int32_t x = lane.first_from(begin); x < end; x += lane.count) {
      to_row[x * to.column] = static_cast<Element>(bits);
    }
  }

  // Whether a row without padding and cutout can be read and written four columns at a time.
  template <class Element>
  HEADRACE_HD bool is_in_words(const uint8_t* lowest, const Element* to_row) const {
    constexpr uintptr_t kFour = 4 * sizeof(Element);
    return from.column == 1 && to.column == 1 &&
           ((to_width | from.channel | to.channel) & 3) == 0 &&
           (reinterpret_cast<uintptr_t>(lowest) & 3) == 0 &&
           (reinterpret_cast<uintptr_t>(to_row) & (kFour - 1)) == 0;
  }

  // `lowest`: the lowest address of the samples that the row shows, in forward or mirrored order.
  template <class Element>
  HEADRACE_HD void row_in_words(const uint8_t* lowest, Element* to_row, bool flip, int32_t tables,
                                Lane lane) const {
    const Element* table =
        static_cast<const Element*>(map.table) + int64_t{tables} * channels * 256;
    HEADRACE_ROLLED
    for (int c = 0; c < channels; ++c, lowest += from.channel, to_row += to.channel, table += 256) {
      HEADRACE_ROLLED
      for (int32_t x = lane.number * 4; x < to_width; x += lane.count * 4) {
        uint32_t four = words::load<1>(lowest + (flip ? to_width - 4 - x : x)).word[0];
        if (flip) four = words::swapped(four);
        words::Together<sizeof(Element)> elements = {};
        HEADRACE_UNROLLED
        for (int i = 0; i < 4; ++i) {
          const uint32_t bits = table[words::byte_of(four, i)];
          elements.word[i * sizeof(Element) / 4] |= bits << (i * sizeof(Element) % 4 * 8);
        }
        words::store(to_row + x, elements);
      }
    }
  }

  template <class Element, class Sample>
  HEADRACE_HD void rows(int64_t item, Lane lane) const {
    const int64_t i = item / row_groups();
    const int32_t begin = static_cast<int32_t>(item - i * row_groups()) * kRows;
    const int32_t end = begin < to_height - kRows ? begin + kRows : to_height;
    const PictureEdit* const edit = edits ? edits + i : nullptr;
    const int32_t left = edit ? edit->left : 0, top = edit ? edit->top : 0;
    const bool flip = edit && edit->flip;
    // The columns that show the picture, and the picture column that corresponds to column 0.
    const int64_t from_x = flip ? int64_t{left} + to_width - 1 : left;
    const Columns across =
        flip ? clipped(from_x - width + 1, from_x + 1) : clipped(-from_x, int64_t{width} - from_x);
    const int64_t from_picture = choice(i) * from.picture + from_x * from.column;
    HEADRACE_ROLLED
    for (int32_t y = begin; y < end; ++y) {
      const int64_t from_y = int64_t{top} + y;
      const bool is_inside = 0 <= from_y && from_y < height;
      row<Element, Sample>(i, y, edit, is_inside ? across : Columns{0, 0},
                           from_picture + from_y * from.row, flip, lane);
    }
  }

  // `first`: the sample of column 0, which may not exist.
  template <class Element, class Sample>
  HEADRACE_HD void row(int64_t i, int32_t y, const PictureEdit* edit, Columns shown, int64_t first,
                       bool flip, Lane lane) const {
    using Map = Look<Element, Sample>;
    using Stored = typename Map::Stored;
    const bool is_cut = edit && edit->cut_top <= y && y < edit->cut_bottom;
    const Columns cut = is_cut ? clipped(edit->cut_left, edit->cut_right) : Columns{0, 0};
    const int32_t tables = edit ? edit->tables : 0;
    const Stored* const samples = static_cast<const Stored*>(pictures);
    const int64_t step = flip ? -from.column : from.column;
    Element* const to_picture = static_cast<Element*>(batch) + i * to.picture + y * to.row;
    if constexpr (std::is_same_v<Sample, uint8_t>) {
      const Stored* const lowest = samples + first - (flip ? to_width - 1 : 0);
      if (shown.begin == 0 && shown.end == to_width && cut.begin == cut.end &&
          is_in_words(lowest, to_picture)) {
        return row_in_words<Element>(lowest, to_picture, flip, tables, lane);
      }
    }
    HEADRACE_ROLLED
    for (int c = 0; c < channels; ++c) {
      Element* const to_row = to_picture + c * to.channel;
      const int64_t origin = first + c * from.channel;
      const Map look(map, int64_t{tables} * channels + c);
      fill(to_row, 0, shown.begin, map.padding[c], lane);
      HEADRACE_ROLLED
      for (int32_t x = lane.first_from(shown.begin); x < shown.end; x += lane.count) {
        to_row[x * to.column] = look(samples[origin + x * step]);
      }
      fill(to_row, shown.end, to_width, map.padding[c], lane);
      // Overwrites safely: a column belongs to the same lane in every range.
      fill(to_row, cut.begin, cut.end, edit ? edit->cut[c] : 0, lane);
    }
  }
};

// Throws Exception HR0862 if channel counts, element sizes or dimensions are unsupported.
void check(const PictureBatch& batch);

// The elements of the tables, concatenated, in the format of ElementMap::table. REQUIRES: all
// tables have the same dtype.
std::vector<uint8_t> element_table(std::span<const StoreTable* const> tables);
// The bits of a channel's table entry for a sample; for ElementMap::padding and cut.
uint32_t element_bits(const StoreTable& table, uint8_t sample);

}  // namespace headrace
