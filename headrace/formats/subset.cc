// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/subset.h"

#include <algorithm>
#include <array>

#include "headrace/base/registry.h"
#include "headrace/formats/fingerprint.h"
#include "headrace/formats/wording.h"

namespace headrace {
namespace {

constexpr ErrorCode kOutside{
    "HR0430", ErrorKind::kConfig, "index outside the source",
    "A subset is given by the numbers of its records, from 0 to the number of records less one. "
    "Negative numbers do not count from the end."};
const Register<ErrorCode> registered_outside(kOutside);

class Subset final : public Source {
 public:
  Subset(SourcePtr base, std::vector<int64_t> indices)
      : base_(std::move(base)), indices_(std::move(indices)) {
    Fingerprint print;
    print.add("subset");
    print.add(base_->fingerprint());
    for (int64_t index : indices_) print.add(static_cast<uint64_t>(index));
    fingerprint_ = print.value();
  }

  const SourcePtr& base() const { return base_; }
  const std::vector<int64_t>& indices() const { return indices_; }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  const Schema& schema() const override { return base_->schema(); }
  ReadStyle read_style() const override { return base_->read_style(); }
  std::string key(int64_t index) const override { return base_->key(indices_[index]); }
  std::string root() const override { return base_->root(); }
  std::vector<std::string> classes() const override { return base_->classes(); }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string description() const override {
    return grouped(size()) + " of " + base_->description();
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    std::array<int64_t, 64> mapped;
    for (size_t done = 0; done < out.size();) {
      const size_t count = std::min(out.size() - done, mapped.size());
      for (size_t i = 0; i < count; ++i) mapped[i] = indices_[indices[done + i]];
      base_->read({mapped.data(), count}, wanted, out.subspan(done, count));
      // Numbers are those of this view from here on.
      for (size_t i = done; i < done + count; ++i) {
        out[i].index = indices[i];
        if (!out[i].result) out[i].result.error().where.record = indices[i];
      }
      done += count;
    }
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    const std::vector<int64_t> all = base_->integer_column(field);
    std::vector<int64_t> out;
    if (all.empty()) return out;
    out.reserve(indices_.size());
    for (int64_t index : indices_) out.push_back(all[index]);
    return out;
  }

 private:
  SourcePtr base_;  // no Subset itself
  std::vector<int64_t> indices_;
  uint64_t fingerprint_ = 0;
};

}  // namespace

SourcePtr subset(const SourcePtr& source, std::vector<int64_t> indices) {
  for (int64_t index : indices) {
    if (index >= 0 && index < source->size()) continue;
    raise(kOutside,
          "record " + std::to_string(index) + " of a source with " +
              counted(source->size(), "record"),
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
