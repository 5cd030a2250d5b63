// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/pack/pack_layout.h"
#include "headrace/formats/pack/pack_summary.h"
#include "headrace/formats/pack/pack_writer.h"
#include "headrace/storage/folder_entries.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

const ErrorCode kExists{
    "HR0446", ErrorKind::kConfig, "destination exists",
    "The destination of a pack is replaced only on request, and only if it is a pack whose folder "
    "contains nothing else. Packing first writes OUT.partial; a file with that name is replaced "
    "only if an interrupted run wrote it. Choose another name, or pass overwrite=True (--force)."};

const ErrorCode kNotMoved{
    "HR0457", ErrorKind::kStorage, "could not move the pack into place",
    "The pack was written completely under the name ending in .partial, but could not be renamed, "
    "or an old one could not be removed. Check the permissions of the folder, then run the same "
    "command again."};

[[noreturn]] void not_moved(const std::string& path, int error_number) {
  throw Exception({.code = &kNotMoved,
                   .what = std::generic_category().message(error_number),
                   .where = Where{.file = path},
                   .hint = "check the permissions of the folder"});
}

std::string trimmed(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool is_shard_name(std::string_view name) {
  return name.starts_with("shard-") && name.ends_with(".hrpack");
}

// A file in the pack's folder that is not a shard; empty if there is none.
std::string foreign_in(const std::string& folder) {
  uint32_t shards = 0;
  struct stat status{};
  while (::lstat(joined(folder, shard_name(shards)).c_str(), &status) == 0) ++shards;
  const std::vector<FolderEntry> entries = entries_in(folder);
  for (const auto& [name, is_folder] : entries) {
    if (is_folder || !is_shard_name(name)) return name;
  }
  return entries.size() == shards ? "" : "a shard that does not belong to it";
}

// Whether an interrupted run may have written it, or it was just removed by another process.
bool is_begun_pack(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return errno == ENOENT;
  char first[kPackMagic.size()];
  const ssize_t bytes = ::read(file, first, sizeof first);  // fails for a folder
  ::close(file);
  return bytes == 0 || (bytes > 0 && std::string_view(first, size_t(bytes)) == kPackMagic);
}

bool is_plain_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

std::string free_name(const std::string& out) {
  std::string name = out + ".old";
  struct stat status{};
  for (int number = 2; ::lstat(name.c_str(), &status) == 0; ++number) {
    name = out + ".old" + std::to_string(number);
  }
  return name;
}

// A new name is only durable once its folder is synced.
void sync_folder_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  const int descriptor =
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

PackPlace::PackPlace(std::string out, int shards, bool overwrite)
    : out_(trimmed(local_path(out, "a writer of packs"))),
      partial_(out_ + ".partial"),
      shards_(shards),
      overwrite_(overwrite) {
  check();
  check_partial();
  remove_other_form();
  if (shards > 1) descriptor_ = open_for_writing(partial_, O_RDONLY | O_DIRECTORY);
  for (auto i = static_cast<uint32_t>(shards); shards > 1; ++i) {
    std::error_code ignored;
    if (!fs::remove(shard(i), ignored)) break;
  }
}

PackPlace::~PackPlace() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// Removes leftovers of a run with one shard instead of several, or vice versa.
void PackPlace::remove_other_form() const {
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(partial_, ignored);
  const bool folder = fs::is_directory(there);
  if (folder ? shards_ > 1 : shards_ == 1) return;
  if (!folder && !(fs::is_regular_file(there) && is_pack(partial_))) return;
  const int lock = open_for_writing(partial_, folder ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT);
  for (uint32_t i = 0; folder; ++i) {
    if (!fs::remove(joined(partial_, shard_name(i)), ignored)) break;
  }
  fs::remove(partial_, ignored);  // only if it is empty
  ::close(lock);
}

std::string PackPlace::shard(uint32_t number) const {
  return shards_ > 1 ? joined(partial_, shard_name(number)) : partial_;
}

void PackPlace::check() const {
  struct stat status{};
  if (::lstat(out_.c_str(), &status) != 0) return;
  std::string hint = "choose another name, or pass overwrite=True (--force) to replace it";
  if (overwrite_) {
    if (!is_pack(out_)) {
      hint = "it is not a pack: choose another name";
    } else if (std::string foreign = is_plain_folder(out_) ? foreign_in(out_) : "";
               !foreign.empty()) {
      hint = "it contains more than a pack (" + foreign + "): choose another name";
    } else {
      return;
    }
  }
  raise(kExists, "\"" + out_ + "\" already exists", hint);
}

void PackPlace::check_partial() const {
  std::string foreign;
  if (is_plain_folder(partial_)) {
    std::error_code failed;  // another process may remove the folder
    fs::directory_iterator entry(partial_, failed);
    for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
      const std::string path = entry->path().string();
      if (!is_shard_name(entry->path().filename().string()) || !is_begun_pack(path)) foreign = path;
    }
  } else if (!is_begun_pack(partial_)) {
    foreign = partial_;
  }
  if (foreign.empty()) return;
  raise(kExists, "\"" + foreign + "\" was not written by an interrupted run",
        "move it away, or choose another name");
}

void PackPlace::take() const {
  check();
  struct stat status{};
  // A file can replace a file atomically; a folder can neither replace something nor be replaced.
  const bool aside = ::lstat(out_.c_str(), &status) == 0 && (shards_ > 1 || is_plain_folder(out_));
  const std::string old = free_name(out_);
  std::error_code failed;
  if (aside) fs::rename(out_, old, failed);
  if (!failed) fs::rename(partial_, out_, failed);
  if (failed) not_moved(out_, failed.value());
  sync_folder_of(out_);
  if (aside) fs::remove_all(old, failed);
  if (failed) not_moved(old, failed.value());
}

}  // namespace headrace
