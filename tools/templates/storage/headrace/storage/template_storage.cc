// SPDX-License-Identifier: Apache-2.0
// Files that are what they are called: template://abc holds "abc".
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/storage/storage.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

std::string_view content_of(std::string_view path) {
  return path.substr(scheme_of(path).size() + 3);
}

class TemplateFile final : public OpenFile {
 public:
  explicit TemplateFile(std::string path) : path_(std::move(path)) {}
  uint64_t size() const override { return content_of(path_).size(); }
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override {
    if (offset > size() || size() - offset < out.size()) {
      return ended_early_error(path_, offset + out.size(), size());
    }
    std::memcpy(out.data(), content_of(path_).data() + offset, out.size());
    return {};
  }
  Result<void> read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const override {
    for (std::span<uint8_t> part : parts) {
      if (Result<void> done = read(offset, part); !done) return done;
      offset += part.size();
    }
    return {};
  }
  Result<FileIdentity> identity() const override { return FileIdentity{.size = size()}; }

 private:
  const std::string path_;
};

class TemplateStorage final : public Storage {
 public:
  Result<PathStatus> look_at(const std::string& path) const override {
    return PathStatus{.kind = PathKind::kFile, .identity = {.size = content_of(path).size()}};
  }
  Result<PathStatus> list(const std::string& path, const EachEntry&) const override {
    return storage_error(ENOTDIR, "list", path);
  }
  Result<std::unique_ptr<OpenFile>> open(const std::string& path,
                                         const FileIdentity*) const override {
    return std::unique_ptr<OpenFile>(std::make_unique<TemplateFile>(path));
  }
  Result<void> read_file(const std::string& path, Buffer& out, const ReadLimits&) const override {
    out.resize(content_of(path).size());
    return TemplateFile(path).read(0, {out.data(), out.size()});
  }
  Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out) const override {
    const size_t count = std::min(out.size(), content_of(path).size());
    std::memcpy(out.data(), content_of(path).data(), count);
    return count;
  }
};

const StorageRecord kTemplateStorage{.name = "template",
                                     .doc = "Files that are what they are called.",
                                     .example = "template://abc",
                                     .storage = []() -> const Storage& {
                                       static const TemplateStorage storage;
                                       return storage;
                                     }};
const Register<StorageRecord> registered_template_storage(kTemplateStorage);

}  // namespace
}  // namespace headrace
