// SPDX-License-Identifier: Apache-2.0
// (seed, epoch, position) -> record index. Indices only, never bytes. Thread-safe and stateless.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/permutation.h"

namespace headrace {

class BatchLayout;

struct RecordRange {
  int64_t begin = 0, end = 0;
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual int64_t size() const = 0;  // positions of an epoch
  virtual int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const = 0;
  // The same for the positions from `begin` on, as many as `out` has.
  virtual void indices(uint64_t seed, uint64_t epoch, int64_t begin, std::span<int64_t> out) const {
    for (int64_t& index : out) index = this->index(seed, epoch, begin++);
  }
  // Whether position i is record i, in every epoch.
  virtual bool in_order() const { return false; }
  // The whole order of an epoch, where it is a keyed permutation of the records.
  virtual std::optional<Permutation> permutation(uint64_t seed, uint64_t epoch) const {
    (void)seed, (void)epoch;
    return std::nullopt;
  }
  // Records of which a rank draws soon, and drew none before: those that the global batches
  // [begin, end) of its layout begin with. Storage may fetch them together.
  virtual std::vector<RecordRange> begun_by(uint64_t seed, uint64_t epoch, int64_t begin,
                                            int64_t end, const BatchLayout& layout) const {
    (void)seed, (void)epoch, (void)begin, (void)end, (void)layout;
    return {};
  }
  // How many streams its batches are made of; 0: it has none. A part of a loader's state.
  virtual int64_t streams() const { return 0; }
  // Records of each global batch, where the order decides that and not the loader: the same in
  // every epoch. Batch k then has the first of as many positions as the largest one has records,
  // from k times that number on; what index() says of the others is some record, too.
  virtual std::span<const int64_t> batch_sizes() const { return {}; }
  // The next epoch is decided again, where something outside decides orders and may have changed.
  virtual void forget() const {}
  virtual uint64_t fingerprint() const = 0;
  virtual std::string description() const = 0;
};

using SamplerPtr = std::shared_ptr<const Sampler>;

// 0, 1, 2, ...
SamplerPtr sequential(int64_t records);
// Each record once, by a keyed permutation that needs no table.
SamplerPtr shuffled(int64_t records);
// Each record once: blocks of neighbors in a permuted order, and in every `window` blocks of it
// the records permuted. block_ends: the number of the record after each block's last. REQUIRES:
// window >= 1.
SamplerPtr shuffled_blocks(std::vector<int64_t> block_ends, int64_t window);
// These indices each epoch, in this order or shuffled.
SamplerPtr from_indices(std::vector<int64_t> indices, bool shuffle);
// `draws` records per epoch, drawn with replacement in proportion to the weights.
SamplerPtr weighted(const std::vector<double>& weights, int64_t draws);
// The same without replacement: each draw in proportion to the weights of the records that remain.
SamplerPtr weighted_once(std::vector<double> weights, int64_t draws);
// `draws` records per epoch: each label equally often in expectation, then a record of the label.
SamplerPtr balanced(const std::vector<int64_t>& labels, int64_t draws);
// The same without replacement: each label once in every run of as many positions as there are
// labels, and all records of a label before one comes again, over epochs too.
SamplerPtr balanced_exactly(const std::vector<int64_t>& labels, int64_t draws);
// An order's epochs one after the other without a pause, cut into epochs of `draws` positions.
// Throws HR0729 of one that decides how large batches are.
SamplerPtr repeated(SamplerPtr order, int64_t draws);

}  // namespace headrace
