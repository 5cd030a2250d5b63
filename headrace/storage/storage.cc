// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/storage.h"

#include <algorithm>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/storage/local_files.h"

namespace headrace {
namespace {

const ErrorCode kOnlyLocal{
    "HR0214", ErrorKind::kUnsupported, "only local files supported",
    "The code that reads or writes this path supports only the local file system: h5py "
    "(hr.hdf5(..., trusted=True)), or a writer. Copy the files to a local folder, or mount their "
    "storage, and give that path; or convert them where they are local (`headrace pack`): packs "
    "and all other formats are read from any storage, and kept on a local disk with disk_cache=."};

// Reads the whole file, or the given piece of it.
Result<void> read_now(const Storage& storage, AsyncRead& read) {
  const FilePiece& piece = read.piece;
  if (piece.bytes == FilePiece::kWhole) {
    return storage.read_file(piece.path, read.bytes, {.max_bytes = read.max_bytes});
  }
  auto file = storage.open(piece.path, piece.known ? &*piece.known : nullptr);
  if (!file) return std::move(file.error());
  read.bytes.resize(piece.bytes);
  return (*file)->read(piece.offset, std::span(read.bytes.data(), read.bytes.size()));
}

}  // namespace

Result<void> OpenFile::read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const {
  for (const std::span<uint8_t>& part : parts) {
    if (Result<void> done = read(offset, part); !done) return done;
    offset += part.size();
  }
  return {};
}

void Storage::submit(std::vector<AsyncRead> reads) const {
  for (AsyncRead& read : reads) {
    read.result = read_now(*this, read);
    const auto done = std::move(read.done);
    done(std::move(read));
  }
}

std::string_view scheme_of(std::string_view path) {
  const size_t colon = path.find(':');
  if (colon == std::string_view::npos || !path.substr(colon).starts_with("://")) return {};
  const std::string_view name = path.substr(0, colon);
  // RFC 3986, 3.1. If the part before "://" contains a "/", it is not a scheme, but ends in a
  // folder's name with ":".
  const bool is_name = std::ranges::all_of(name, [](char c) {
    return (lower_case(c) >= 'a' && lower_case(c) <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
  });
  return is_name ? name : std::string_view();
}

const Storage& storage_of(std::string_view path) {
  if (const std::string_view scheme = scheme_of(path); !scheme.empty()) {
    if (const auto* record = Registry<StorageRecord>::find(scheme)) return record->storage();
  }
  return LocalFiles::instance();
}

const std::string& local_path(const std::string& path, std::string_view who) {
  if (&storage_of(path) == &LocalFiles::instance()) return path;
  raise(kOnlyLocal, std::string(who) + " cannot open " + path,
        "copy it to a local folder, or mount its storage; if it is read often, pack it locally, "
        "and upload the pack");
}

}  // namespace headrace
