// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/subset.h"

#include <map>
#include <mutex>

#include "headrace/base/permutation.h"
#include "headrace/base/random.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/view.h"

namespace headrace {
namespace {

const ErrorCode kOutside{
    "HR0430", ErrorKind::kConfig, "index outside the source",
    "A subset is given by the indices of its records, from 0 to the number of records minus one. "
    "Negative indices do not count from the end."};

class Subset final : public View {
 public:
  Subset(SourcePtr base, std::vector<int64_t> indices)
      : View(std::move(base)), indices_(std::move(indices)) {
    Fingerprint print;
    print.add("subset");
    print.add(this->base()->fingerprint());
    for (int64_t index : indices_) print.add(static_cast<uint64_t>(index));
    fingerprint_ = print.value();
  }

  using View::base;  // no Subset itself
  const std::vector<int64_t>& indices() const { return indices_; }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string identity() const override {
    return "subset " + std::to_string(fingerprint_) + " of " + base()->identity();
  }
  std::string description() const override {
    return with_commas(size()) + " of " + base()->description();
  }

  bool shuffles_itself() const override { return base()->shuffles_itself(); }
  int64_t shuffle_part(int64_t index) const override { return base()->shuffle_part(viewed(index)); }
  // Each position keeps its part; the part's records are permuted among its positions.
  int64_t shuffled(uint64_t key, int64_t position) const override {
    const int64_t part = shuffle_part(position);
    const std::vector<int64_t>& places = parts().places.at(part);
    const Permutation mixed(static_cast<int64_t>(places.size()),
                            mix64(key, static_cast<uint64_t>(part)));
    return places[mixed(parts().number[position])];
  }

 private:
  int64_t viewed(int64_t index) const override { return indices_[index]; }

  // If the base has shuffle parts: the positions of each part's records, and the index of each
  // position among them.
  struct Parts {
    std::map<int64_t, std::vector<int64_t>> places;
    std::vector<int64_t> number;
  };
  const Parts& parts() const {
    std::call_once(split_once_, [this] {
      for (int64_t i = 0; i < size(); ++i) {
        std::vector<int64_t>& places = parts_.places[shuffle_part(i)];
        parts_.number.push_back(static_cast<int64_t>(places.size()));
        places.push_back(i);
      }
    });
    return parts_;
  }

  std::vector<int64_t> indices_;
  mutable std::once_flag split_once_;
  mutable Parts parts_;  // computed by the first shuffle
  uint64_t fingerprint_ = 0;
};

}  // namespace

SourcePtr subset(const SourcePtr& source, std::vector<int64_t> indices) {
  for (int64_t index : indices) {
    if (index >= 0 && index < source->size()) continue;
    raise(kOutside,
          "record " + std::to_string(index) + " of a source with " +
              count_text(source->size(), "record"),
          "records are numbered from 0");
  }
  const auto* view = dynamic_cast<const Subset*>(source.get());
  if (!view) return std::make_shared<Subset>(source, std::move(indices));
  for (int64_t& index : indices) index = view->indices()[index];
  return std::make_shared<Subset>(view->base(), std::move(indices));
}

SourcePtr with_viewed(const SourcePtr& source,
                      const std::function<SourcePtr(const SourcePtr&)>& wrap) {
  const auto* view = dynamic_cast<const Subset*>(source.get());
  if (!view) return wrap(source);
  SourcePtr wrapped = wrap(view->base());
  if (wrapped == view->base()) return source;
  return std::make_shared<Subset>(std::move(wrapped), view->indices());
}

}  // namespace headrace
