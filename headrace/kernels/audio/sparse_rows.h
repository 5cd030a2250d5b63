// SPDX-License-Identifier: Apache-2.0
// A matrix whose rows each have weights in one short range of columns: triangles of mel filters
// over the bins of a spectrum, phases of a resampling filter over a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

class SparseRows {
 public:
  struct Row {
    int64_t first;  // index of the first column
    int count;      // may be 0: the row has no weights and gives 0
    size_t weights;
  };

  // Adds a row without the zeros at its ends. `dense`: the weights of all columns starting at
  // `first`.
  void add(int64_t first, std::span<const float> dense) {
    size_t begin = 0, end = dense.size();
    while (begin < end && dense[begin] == 0) ++begin;
    while (end > begin && dense[end - 1] == 0) --end;
    rows_.push_back(
        {first + static_cast<int64_t>(begin), static_cast<int>(end - begin), weights_.size()});
    weights_.insert(weights_.end(), dense.begin() + static_cast<ptrdiff_t>(begin),
                    dense.begin() + static_cast<ptrdiff_t>(end));
  }

  std::span<const Row> rows() const { return rows_; }
  const float* weights() const { return weights_.data(); }
  int64_t size() const { return static_cast<int64_t>(rows_.size()); }

 private:
  std::vector<Row> rows_;
  std::vector<float> weights_;
};

}  // namespace headrace
