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
class Source;  // sources/source.h

struct RecordRange {
  int64_t begin = 0, end = 0;
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual int64_t size() const = 0;  // positions of an epoch
  virtual int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const = 0;
  // The same for `out.size()` positions starting at `begin`.
  virtual void indices(uint64_t seed, uint64_t epoch, int64_t begin, std::span<int64_t> out) const {
    for (int64_t& index : out) index = this->index(seed, epoch, begin++);
  }
  // Whether position i is record i, in every epoch.
  virtual bool in_order() const { return false; }
  // The whole order of an epoch, if it is a keyed permutation of the records.
  virtual std::optional<Permutation> permutation(uint64_t seed, uint64_t epoch) const {
    (void)seed, (void)epoch;
    return std::nullopt;
  }
  // Records that a rank will draw soon and has not drawn from before: the ranges started by the
  // global batches [begin, end) of its layout. Storage may prefetch them together.
  virtual std::vector<RecordRange> begun_by(uint64_t seed, uint64_t epoch, int64_t begin,
                                            int64_t end, const BatchLayout& layout) const {
    (void)seed, (void)epoch, (void)begin, (void)end, (void)layout;
    return {};
  }
  // Number of streams that its batches are drawn from; 0: none. Part of a loader's state.
  virtual int64_t streams() const { return 0; }
  // Records of each global batch, if the sampler decides that and not the loader: the same in every
  // epoch. Batch k then begins at position k times the largest size, and uses as many positions as
  // it has records; index() of the unused positions returns some valid record, too.
  virtual std::span<const int64_t> batch_sizes() const { return {}; }
  // Discards cached orders: the next epoch is computed again, because an external decision may have
  // changed.
  virtual void forget() const {}
  virtual uint64_t fingerprint() const = 0;
  virtual std::string description() const = 0;
};

using SamplerPtr = std::shared_ptr<const Sampler>;

// 0, 1, 2, ...
SamplerPtr sequential(int64_t records);
// Each record once, by a keyed permutation that needs no table.
SamplerPtr shuffled(int64_t records);
// Each record once, in an order that the source computes from an epoch's key; shuffled() for a
// source that does not define its order (Source::shuffles_itself).
SamplerPtr shuffled_by(const std::shared_ptr<const Source>& source);
// Each record once: blocks of neighbors in a permuted order, and the records of every `window`
// blocks permuted. block_ends: cumulative record counts after each block. REQUIRES: window >= 1.
SamplerPtr shuffled_blocks(std::vector<int64_t> block_ends, int64_t window);
// These indices each epoch, in this order or shuffled.
SamplerPtr from_indices(std::vector<int64_t> indices, bool shuffle);
// `draws` records per epoch, drawn with replacement in proportion to the weights.
SamplerPtr weighted(const std::vector<double>& weights, int64_t draws);
// The same without replacement: each draw is in proportion to the weights of the remaining records.
SamplerPtr weighted_once(std::vector<double> weights, int64_t draws);
// `draws` records per epoch: each label equally often in expectation, then a record of the label.
SamplerPtr balanced(const std::vector<int64_t>& labels, int64_t draws);
// The same without replacement: each label once in every run of as many positions as there are
// labels, and all records of a label before one repeats, even across epochs.
SamplerPtr balanced_exactly(const std::vector<int64_t>& labels, int64_t draws);
// Concatenates a sampler's epochs, and cuts them into epochs of `draws` positions. Throws HR0729
// for a sampler that decides the batch sizes.
SamplerPtr repeated(SamplerPtr order, int64_t draws);

// Records at positions that may be beyond the epoch's end: padding repeats its first records.
// `out.size()` records starting at position `begin`, in an epoch with `size` positions. REQUIRES:
// size > 0, unless `out` is empty.
void wrapped_indices(const Sampler& sampler, uint64_t seed, uint64_t epoch, int64_t begin,
                     int64_t size, std::span<int64_t> out);

}  // namespace headrace
