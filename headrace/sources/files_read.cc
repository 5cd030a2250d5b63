// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/files_read.h"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

namespace headrace {

std::optional<uint64_t> digest_of_file(const std::string& path) {
  if (path.empty() || is_async(path)) return {};
  const Result<PathStatus> status = storage_of(path).look_at(path);
  if (!status || status->kind != PathKind::kFile) return {};
  const FileIdentity& is = status->identity;
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const uint64_t number : {is.device, is.inode, is.size, uint64_t(is.modified_ns),
                                uint64_t(status->status_changed_ns)}) {
    for (int shift = 0; shift < 64; shift += 8) {
      digest = (digest ^ (number >> shift & 0xff)) * 0x100000001b3;
    }
  }
  return digest;
}

std::string file_of(const Source& source, int64_t record, size_t field) {
  const Origin origin = source.origin(record, field);
  if (origin.source->read_style() != ReadStyle::kFiles) return {};
  return origin.source->file(origin.index, origin.field);
}

FilesRead::FilesRead(SourcePtr source, const std::vector<bool>& wanted)
    : source_(std::move(source)) {
  std::unordered_set<size_t> seen;  // hashes of paths
  std::vector<std::string> last(wanted.size());
  for (int64_t record = 0; record < source_->size(); ++record) {
    for (size_t field = 0; field < wanted.size(); ++field) {
      if (!wanted[field]) continue;
      std::string path = file_of(*source_, record, field);
      if (path == last[field]) continue;  // records of a shard are mostly consecutive
      last[field] = std::move(path);
      if (!seen.insert(std::hash<std::string>()(last[field])).second) continue;
      if (const auto digest = digest_of_file(last[field]))
        files_.push_back({record, field, *digest});
    }
  }
}

std::optional<std::string> FilesRead::changed(size_t max_looks) {
  const size_t looks = std::min(files_.size(), max_looks);
  for (size_t i = 0; i < looks; ++i) {
    const File& file = files_[next_++ % files_.size()];
    std::string path = file_of(*source_, file.record, file.field);
    const auto digest = digest_of_file(path);
    if (digest && *digest != file.digest) return path;
  }
  return {};
}

}  // namespace headrace
