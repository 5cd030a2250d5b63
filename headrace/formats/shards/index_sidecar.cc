// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/formats/shards/extent_source.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/source_around.h"
#include "headrace/storage/file.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

constexpr std::string_view kFolder = ".headrace";
constexpr uint64_t kMaxBytes = uint64_t{2} << 30;

std::string folder_of(const std::string& file) {
  return parent_path(std::string(without_query(file)));
}

// The common parent folder of all files.
std::string common_folder(const FileSet& files) {
  std::string folder = folder_of(files.path(0));
  for (size_t i = 1; i < files.size(); ++i) {
    while (!folder.empty() && !files.path(i).starts_with(folder + "/")) {
      folder = parent_path(folder);
    }
  }
  return folder;
}

}  // namespace

std::string sidecar_path(std::string_view kind, const FileSet& files) {
  if (files.size() == 0 || !files.is_async()) return {};
  Fingerprint print;
  print.add(kind);
  for (size_t i = 0; i < files.size(); ++i) {
    const FileIdentity& file = files.identity(i);
    if (file.inode == 0) return {};
    print.add(stable_path(files.path(i)));
    for (const uint64_t part : {file.device, file.inode, file.size, uint64_t(file.modified_ns)}) {
      print.add(part);
    }
  }
  const std::string folder = common_folder(files);
  if (scheme_of(folder).empty() || folder.ends_with("://")) return {};
  return joined(joined(folder, kFolder), "container-" + hex_text(print.value()) + ".index");
}

std::optional<Buffer> read_sidecar(std::string_view kind, const FileSet& files) {
  const std::string path = sidecar_path(kind, files);
  if (path.empty()) return {};
  Buffer bytes;  // one request; none if the cached folder listing has no such file
  if (!storage_of(path).read_file(path, bytes, {.max_bytes = kMaxBytes})) return {};
  return bytes;
}

std::vector<IndexSidecar> index_sidecars(const Source& source) {
  std::vector<IndexSidecar> out;
  for (const Source* origin : source.origins()) {
    while (const auto* around = dynamic_cast<const SourceAround*>(origin)) {
      origin = around->inner().get();
    }
    const auto* container = dynamic_cast<const ExtentSource*>(origin);
    std::optional<IndexSidecar> one = container ? container->index_sidecar() : std::nullopt;
    const auto is_same = [&](const IndexSidecar& other) { return other.path == one->path; };
    if (one && std::ranges::none_of(out, is_same)) out.push_back(std::move(*one));
  }
  return out;
}

}  // namespace headrace
