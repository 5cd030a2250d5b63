// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/edit_on_host.h"

#include <algorithm>
#include <cstring>

#include "headrace/kernels/batch/gather_on_host.h"
#include "headrace/kernels/rows.h"

namespace headrace {
namespace {

constexpr size_t kStripBytes = 8192;  // bytes per channel: all channels stay in the L1 cache
constexpr size_t kSlack = 256;        // bytes that vector code may read past a row

// Borders are so narrow that a call would cost more than the fill.
constexpr int kNarrow = 8;

void pad_narrow(uint8_t* to, int count, uint8_t value) {
  if (count > kNarrow) {
    std::memset(to, value, size_t(count));
    return;
  }
  for (int i = 0; i < count; ++i) to[i] = value;
}

class PictureEditor {
 public:
  PictureEditor(const HostEdits& how, std::vector<uint8_t>& strip)
      : how_(how),
        element_(size_of(how.tables[0]->dtype)),
        plane_(size_t(how.to_height) * size_t(how.to_width)),
        strip_rows_(std::clamp(int(kStripBytes / size_t(how.to_width)), 1, how.to_height)),
        strip_bytes_(size_t(strip_rows_) * size_t(how.to_width)) {
    if (strip.size() < how.channels * strip_bytes_ + kSlack) {
      strip.resize(how.channels * strip_bytes_ + kSlack);
    }
    for (int c = 0; c < how.channels; ++c) strips_[c] = strip.data() + c * strip_bytes_;
  }

  void operator()(const uint8_t* picture, const PictureEdit& edit, uint8_t* out) const {
    for (int y = 0; y < how_.to_height; y += strip_rows_) {
      const int rows = std::min(strip_rows_, how_.to_height - y);
      how_.channels_last ? interleaved(picture, edit, y, rows, out)
                         : planar(picture, edit, y, rows, out);
    }
    if (edit.cut_top < edit.cut_bottom && edit.cut_left < edit.cut_right) erase(edit, out);
  }

 private:
  void planar(const uint8_t* picture, const PictureEdit& edit, int y, int rows,
              uint8_t* out) const {
    const size_t at = size_t(y) * size_t(how_.to_width);
    for (int c = 0; c < how_.channels; ++c) {
      uint8_t* const to = out + (c * plane_ + at) * element_;
      if (how_.tables[c]->identity) {
        assemble(picture, edit, c, y, rows, to);
        continue;
      }
      assemble(picture, edit, c, y, rows, strips_[c]);
      store_row(*how_.tables[c], strips_[c], rows * how_.to_width, to);
    }
  }

  void interleaved(const uint8_t* picture, const PictureEdit& edit, int y, int rows,
                   uint8_t* out) const {
    for (int c = 0; c < how_.channels; ++c) assemble(picture, edit, c, y, rows, strips_[c]);
    const size_t at = size_t(y) * size_t(how_.to_width);
    store_row_interleaved(how_.tables.data(), strips_.data(), how_.channels, rows * how_.to_width,
                          out + at * how_.channels * element_);
  }

  // Rows [y, y + rows) of channel c, as bytes.
  void assemble(const uint8_t* picture, const PictureEdit& edit, int c, int y, int rows,
                uint8_t* to) const {
    const int width = how_.width, to_width = how_.to_width;
    const uint8_t* const plane = picture + size_t(c) * size_t(how_.height) * size_t(width);
    // The source column of column 0, which may not exist, and the columns that show the picture.
    const int64_t first = edit.flip ? int64_t{edit.left} + to_width - 1 : edit.left;
    const int begin = clipped(edit.flip ? first - width + 1 : -first);
    const int end = std::max(begin, clipped(edit.flip ? first + 1 : width - first));
    const int64_t from_y = int64_t{edit.top} + y;
    const int shown_from = static_cast<int>(std::clamp<int64_t>(-from_y, 0, rows));
    const int shown_to = static_cast<int>(
        std::clamp<int64_t>(how_.height - from_y, shown_from, begin < end ? rows : shown_from));
    const auto pad = [&](int row, int column, int count) {
      if (count > 0) std::memset(to + size_t(row) * to_width + column, how_.padding[c], count);
    };
    pad(0, 0, shown_from * to_width);
    pad(shown_to, 0, (rows - shown_to) * to_width);
    if (shown_from == shown_to) return;
    const uint8_t* const from = plane + (from_y + shown_from) * width;
    uint8_t* const shown = to + size_t(shown_from) * to_width;
    const size_t shown_rows = size_t(shown_to - shown_from);
    if (edit.flip) {
      for (size_t row = 0; row < shown_rows; ++row) {
        mirror_row(from + row * width + (first - end + 1), end - begin,
                   shown + row * to_width + begin);
      }
    } else if (width == to_width) {  // rows are contiguous, so copy all at once; the padding is
                                     // filled in afterwards
      std::memcpy(shown + begin, from + first + begin,
                  shown_rows * width - (width - (end - begin)));
    } else {
      for (size_t row = 0; row < shown_rows; ++row) {
        std::memcpy(shown + row * to_width + begin, from + row * width + first + begin,
                    size_t(end - begin));
      }
    }
    if (end - begin == to_width) return;
    for (int row = shown_from; row < shown_to; ++row) {
      pad_narrow(to + size_t(row) * to_width, begin, how_.padding[c]);
      pad_narrow(to + size_t(row) * to_width + end, to_width - end, how_.padding[c]);
    }
  }

  void erase(const PictureEdit& edit, uint8_t* out) const {
    const int left = clipped(edit.cut_left), right = clipped(edit.cut_right);
    const int top = std::clamp(edit.cut_top, 0, how_.to_height);
    const int bottom = std::clamp(edit.cut_bottom, 0, how_.to_height);
    const size_t pixel = how_.channels_last ? how_.channels * element_ : element_;
    const size_t channel = how_.channels_last ? element_ : plane_ * element_;
    for (int c = 0; c < how_.channels; ++c) {
      for (int y = top; y < bottom; ++y) {
        uint8_t* to = out + c * channel + (size_t(y) * how_.to_width + left) * pixel;
        for (int x = left; x < right; ++x, to += pixel) {
          std::memcpy(to, &edit.cut[c], element_);  // little-endian
        }
      }
    }
  }

  int clipped(int64_t column) const {
    return static_cast<int>(std::clamp<int64_t>(column, 0, how_.to_width));
  }

  const HostEdits& how_;
  const size_t element_, plane_;
  const int strip_rows_;
  const size_t strip_bytes_;
  std::array<uint8_t*, 4> strips_{};
};

}  // namespace

void edit_on_host(const HostEdits& how, const int64_t* indices, const PictureEdit* edits,
                  int64_t count, void* batch, std::vector<uint8_t>& strip) {
  if (how.to_width <= 0 || how.to_height <= 0) return;
  const PictureEditor editor(how, strip);
  const size_t bytes = size_t(how.channels) * size_t(how.height) * size_t(how.width);
  const size_t to_bytes = size_t(how.channels) * size_t(how.to_height) * size_t(how.to_width) *
                          size_of(how.tables[0]->dtype);
  const RowsAhead ahead(how.pictures, bytes, indices, count);
  auto* to = static_cast<uint8_t*>(batch);
  for (int64_t i = 0; i < count; ++i, to += to_bytes) {
    ahead.at(i);
    editor(how.pictures + size_t(indices[i]) * bytes, edits[i], to);
  }
}

}  // namespace headrace
