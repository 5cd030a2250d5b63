// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/held_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace headrace {
namespace {

class HeldFile final : public OpenFile {
 public:
  HeldFile(File file, std::vector<HeldRange> ranges)
      : file_(std::move(file)), ranges_(std::move(ranges)) {
    std::ranges::sort(ranges_, {}, &HeldRange::offset);
    for (const HeldRange& range : ranges_) bytes_ += range.memory->size();
  }

  using OpenFile::read;
  uint64_t size() const override { return file_.size(); }
  Result<FileIdentity> identity() const override { return file_.identity(); }
  std::optional<FileIdentity> known() const override { return file_.piece(0, 0).known; }
  void will_read(uint64_t offset, uint64_t bytes) const override {
    if (!held(offset, bytes)) file_.will_read(offset, bytes);
  }

  std::optional<std::span<const uint8_t>> held(uint64_t offset, uint64_t bytes) const override {
    const auto after = std::ranges::upper_bound(ranges_, offset, {}, &HeldRange::offset);
    if (after == ranges_.begin()) return {};
    const HeldRange& range = *std::prev(after);
    const uint64_t skipped = offset - range.offset;
    const uint64_t size = range.memory->size();
    if (skipped > size || bytes > size - skipped) return {};
    return range.memory->bytes().subspan(skipped, bytes);
  }
  size_t held_bytes() const override { return bytes_; }

  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override {
    const auto bytes = held(offset, out.size());
    if (!bytes) return file_.read(offset, out);
    if (!out.empty()) std::memcpy(out.data(), bytes->data(), out.size());
    return {};
  }

 private:
  const File file_;
  std::vector<HeldRange> ranges_;
  size_t bytes_ = 0;
};

}  // namespace

File held_file(File file, std::vector<HeldRange> ranges) {
  std::string path = file.path();
  return File::around(std::move(path),
                      std::make_unique<HeldFile>(std::move(file), std::move(ranges)));
}

}  // namespace headrace
