// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/shuffled_by_source.h"

#include <utility>

#include "headrace/base/random.h"

namespace headrace {
namespace {

const uint64_t kSourceOrderKey = hash_name("order of the source");

class ShuffledBySource final : public Sampler {
 public:
  explicit ShuffledBySource(SourcePtr source) : source_(std::move(source)) {}

  int64_t size() const override { return source_->size(); }
  int64_t index(uint64_t seed, uint64_t epoch, int64_t position) const override {
    return source_->shuffled(mix64(mix64(seed, epoch), kSourceOrderKey), position);
  }
  uint64_t fingerprint() const override { return mix64(kSourceOrderKey, source_->fingerprint()); }
  std::string description() const override { return "shuffled, in the source's proportions"; }

 private:
  const SourcePtr source_;
};

}  // namespace

SamplerPtr shuffled_by(const SourcePtr& source) {
  if (!source->shuffles_itself()) return shuffled(source->size());
  return std::make_shared<ShuffledBySource>(source);
}

}  // namespace headrace
