// SPDX-License-Identifier: Apache-2.0
// Base class of sources that present records of another source under different numbers.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// Returns the record number in the underlying source for a record of a view.
using RecordViewed = std::function<int64_t(int64_t index)>;

// Source::block_ends() of a view with `size` records: a block ends where that of `base` does. If
// the view's order jumps between the blocks of `base`, its blocks are the default ones.
std::vector<int64_t> viewed_block_ends(const Source& base, int64_t size,
                                       const RecordViewed& viewed);
// Source::will_read() of a view: announces runs of neighbors to `base`, unless the records are
// scattered, so that fetching their surroundings would not pay.
void announce_viewed(const Source& base, int64_t begin, int64_t end,
                     const std::vector<bool>& wanted, const RecordViewed& viewed);

class View : public Source {
 public:
  explicit View(SourcePtr base) : base_(std::move(base)) {}

  const Schema& schema() const final { return base_->schema(); }
  ReadStyle read_style() const final { return base_->read_style(); }
  std::string key(int64_t index) const final { return base_->key(viewed(index)); }
  Where where(int64_t index) const final {
    Where place = base_->where(viewed(index));
    place.record = index;
    return place;
  }
  std::string root() const final { return base_->root(); }
  bool shares_files(size_t field) const final { return base_->shares_files(field); }
  std::vector<std::string> classes() const final { return base_->classes(); }

  std::vector<const Source*> origins() const final { return base_->origins(); }
  Origin origin(int64_t index, size_t field) const final {
    return base_->origin(viewed(index), field);
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const final {
    std::array<int64_t, 64> mapped;
    for (size_t done = 0; done < out.size();) {
      const size_t count = std::min(out.size() - done, mapped.size());
      for (size_t i = 0; i < count; ++i) mapped[i] = viewed(indices[done + i]);
      base_->read({mapped.data(), count}, wanted, out.subspan(done, count));
      // From here on, record numbers refer to this view.
      for (size_t i = done; i < done + count; ++i) {
        out[i].index = indices[i];
        if (!out[i].result) out[i].result.error().where.record = indices[i];
      }
      done += count;
    }
  }

  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const final {
    base_->pieces(viewed(index), wanted, out);
  }
  bool prepare_pieces(int64_t index, const std::vector<bool>& wanted, bool wait) const final {
    return base_->prepare_pieces(viewed(index), wanted, wait);
  }
  std::string separate_file(int64_t index, size_t field) const final {
    return base_->separate_file(viewed(index), field);
  }

  std::vector<int64_t> block_ends() const final {
    return viewed_block_ends(*base_, size(), [this](int64_t index) { return viewed(index); });
  }
  void will_read(int64_t begin, int64_t end, const std::vector<bool>& wanted) const final {
    announce_viewed(*base_, begin, end, wanted, [this](int64_t index) { return viewed(index); });
  }

  std::vector<int64_t> integer_column(std::string_view field) const final {
    const std::vector<int64_t> all = base_->integer_column(field);
    if (all.empty()) return {};
    std::vector<int64_t> out(static_cast<size_t>(size()));
    for (int64_t i = 0; i < size(); ++i) out[i] = all[viewed(i)];
    return out;
  }

 protected:
  const SourcePtr& base() const { return base_; }

 private:
  // The record number in `base` for a record of this view.
  virtual int64_t viewed(int64_t index) const = 0;
  SourcePtr base_;
};

}  // namespace headrace
