// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file.h"

#include <array>
#include <cstring>

#include "headrace/storage/scanned_file.h"

namespace headrace {
namespace {

PathKind kind_of_path(const std::string& path) {
  const Result<PathStatus> status = storage_of(path).look_at(path);
  return status ? status->kind : PathKind::kNothing;
}

}  // namespace

Result<File> File::open(const std::string& path, const FileIdentity* known) {
  Result<std::unique_ptr<OpenFile>> opened = storage_of(path).open(path, known);
  if (!opened) return std::move(opened.error());
  return File(path, std::move(*opened));
}

Result<File> File::open_to_scan(const std::string& path) {
  Result<std::unique_ptr<OpenFile>> opened = storage_of(path).open(path, nullptr);
  if (!opened) return std::move(opened.error());
  if (!(*opened)->known()) return File(path, std::move(*opened));
  return File(path, scanned_file(path, std::move(*opened)));
}

Result<void> read_file(const std::string& path, Buffer& out, const ReadLimits& limits) {
  return storage_of(path).read_file(path, out, limits);
}

Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out) {
  return storage_of(path).read_prefix(path, out);
}

bool file_begins_with(const std::string& path, std::string_view bytes) {
  std::array<uint8_t, 16> first;
  const Result<size_t> read = read_prefix(path, std::span(first).first(bytes.size()));
  return read && *read == bytes.size() && std::memcmp(first.data(), bytes.data(), *read) == 0;
}

Result<FileIdentity> identity_of(const std::string& path) {
  Result<PathStatus> status = storage_of(path).look_at(path);
  if (!status) return std::move(status.error());
  return status->identity;
}

bool is_folder(const std::string& path) { return kind_of_path(path) == PathKind::kFolder; }

bool is_file(const std::string& path) { return kind_of_path(path) == PathKind::kFile; }

bool is_there(const std::string& path) { return kind_of_path(path) != PathKind::kNothing; }

int64_t status_changed_ns(const std::string& path) {
  const Result<PathStatus> status = storage_of(path).look_at(path);
  return status ? status->status_changed_ns : 0;
}

}  // namespace headrace
