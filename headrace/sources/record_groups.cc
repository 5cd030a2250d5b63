// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/record_groups.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "headrace/sources/group_cache.h"
#include "headrace/sources/labeled_files.h"

namespace headrace {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{8} << 20;  // per block of shuffle="blocks", or one group

class GroupedSource final : public Source {
 public:
  explicit GroupedSource(RecordGroups groups)
      : groups_(std::move(groups)), held_(new OfProcess(groups_)) {}
  ~GroupedSource() override {
    OfProcess* const held = held_;
    if (held->process != ::getpid()) return;  // the parent's object is abandoned
    held->groups->close();
    delete held;
  }
  GroupedSource(const GroupedSource&) = delete;
  GroupedSource& operator=(const GroupedSource&) = delete;

  int64_t size() const override { return groups_.groups.empty() ? 0 : groups_.groups.back().end; }
  const Schema& schema() const override { return groups_.schema; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  std::vector<std::string> classes() const override { return groups_.classes; }
  uint64_t fingerprint() const override { return groups_.fingerprint; }
  std::string description() const override { return groups_.description; }
  std::string key(int64_t index) const override { return std::to_string(index); }
  Where where(int64_t index) const override {
    const FileRange& range = groups_.groups[group_of(index)].ranges.front();
    return {.file = groups_.files->path(range.file), .record = index};
  }
  std::vector<int64_t> integer_column(std::string_view field) const override {
    return groups_.integer_column(field);
  }

  std::vector<int64_t> block_ends() const override {
    std::vector<int64_t> ends;
    uint64_t bytes = 0;
    size_t file = 0;
    for (const RecordGroups::Group& group : groups_.groups) {
      uint64_t more = 0;
      for (const FileRange& range : group.ranges) more += range.bytes;
      const bool joins =
          bytes > 0 && group.ranges.front().file == file && bytes + more <= kBlockBytes;
      file = group.ranges.front().file;
      bytes = joins ? bytes + more : more;
      if (joins || (!ends.empty() && ends.back() == group.end)) {
        ends.back() = group.end;
      } else {
        ends.push_back(group.end);
      }
    }
    return ends;
  }

  void will_read(int64_t begin, int64_t end, const std::vector<bool>&) const override {
    if (begin >= end) return;
    held().announce(static_cast<int64_t>(group_of(begin)),
                    static_cast<int64_t>(group_of(end - 1)) + 1);
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t group = group_of(indices[i]);
      Result<SourcePtr> source = held().take(static_cast<int64_t>(group));
      if (source) {
        const int64_t inner = indices[i] - (group == 0 ? 0 : groups_.groups[group - 1].end);
        (*source)->read({&inner, 1}, wanted, out.subspan(i, 1));
        keep(out[i]);
        out[i].index = indices[i];
      } else {
        begin_record(indices[i], groups_.schema.size(), 0, out[i]);
        out[i].result = std::move(source.error());
      }
      if (!out[i].result) out[i].result.error().where.record = indices[i];
    }
  }

 private:
  struct OfProcess {
    explicit OfProcess(const RecordGroups& of) : groups(std::make_shared<GroupCache>(of)) {}
    const std::shared_ptr<GroupCache> groups;  // shared: with its requests
    const int process = ::getpid();
  };

  // A forked child gets its own object: another thread may have been modifying the parent's.
  GroupCache& held() const {
    OfProcess* found = held_.load(std::memory_order_acquire);
    if (found->process == ::getpid()) return *found->groups;
    auto made = std::make_unique<OfProcess>(groups_);
    if (held_.compare_exchange_strong(found, made.get())) found = made.release();
    return *found->groups;
  }

  size_t group_of(int64_t index) const {
    return static_cast<size_t>(
        std::ranges::upper_bound(groups_.groups, index, {}, &RecordGroups::Group::end) -
        groups_.groups.begin());
  }

  // Copies values that are in the group's memory, which may be freed before the record.
  static void keep(RecordData& out) {
    const size_t fields = out.fields.size();
    const size_t begin = 2 * fields;  // no column uses more than two buffers
    if (out.owned.size() < begin + fields) out.owned.resize(begin + fields);
    for (size_t i = 0; i < fields; ++i) {
      std::span<const uint8_t>& bytes = out.fields[i].bytes;
      const bool is_own = std::ranges::any_of(std::span(out.owned).first(begin), [&](auto& own) {
        return bytes.data() >= own.data() && bytes.data() < own.data() + own.size();
      });
      if (bytes.empty() || is_own) continue;
      Buffer& copy = out.owned[begin + i];
      copy.resize(bytes.size());
      std::memcpy(copy.data(), bytes.data(), bytes.size());
      bytes = copy.bytes();
    }
  }

  const RecordGroups groups_;
  mutable std::atomic<OfProcess*> held_;
};

}  // namespace

SourcePtr source_of_groups(RecordGroups groups) {
  return std::make_shared<GroupedSource>(std::move(groups));
}

}  // namespace headrace
