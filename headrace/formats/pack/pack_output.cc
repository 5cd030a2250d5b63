// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/pack/pack_writer.h"
#include "headrace/storage/file.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/local_files.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

const ErrorCode kLeadsOut{
    "HR0450", ErrorKind::kData, "name leads outside the folder",
    "Unpacking writes below one folder only. A key in the pack is an absolute path or contains "
    "'..', or a link exists where a folder has to be, so a file would be written elsewhere. "
    "Nothing was written there. Do not trust the origin of this pack; its records can still be "
    "read with hr.open()."};

const ErrorCode kOtherFile{
    "HR0451", ErrorKind::kConfig, "destination exists with different contents",
    "Unpacking replaces a file with different contents only on request. Unpack into an empty "
    "folder, or pass overwrite=True (--force)."};

constexpr std::string_view kTemporary = ".headrace-unpack-";  // the process, "-", random_name()

// Whether it is a temporary file of a process that no longer exists.
bool is_leftover(std::string_view name) {
  if (!name.starts_with(kTemporary)) return false;
  name.remove_prefix(kTemporary.size());
  const size_t digits = name.find_first_not_of("0123456789");
  if (digits == 0 || digits > 9 || name[digits] != '-') return false;
  const auto process = static_cast<pid_t>(std::stol(std::string(name.substr(0, digits))));
  name.remove_prefix(digits + 1);
  if (name.size() != 16 || name.find_first_not_of("0123456789abcdef") != name.npos) return false;
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

void write_all(const std::string& path, std::span<const uint8_t> bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0) not_written(path, errno);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error_number = written < 0 ? errno : ENOSPC;
      ::close(file);
      ::unlink(path.c_str());
      not_written(path, error_number);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  if (::close(file) != 0) {
    const int error_number = errno;
    ::unlink(path.c_str());
    not_written(path, error_number);
  }
}

bool holds(const std::string& path, std::span<const uint8_t> bytes) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) != bytes.size()) {
    return false;
  }
  Buffer there;
  return read_file(path, there).has_value() && std::ranges::equal(there.bytes(), bytes);
}

// rename() that does not overwrite; falls back to link() on file systems without support for that.
bool rename_to_free_name(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (::link(from.c_str(), to.c_str()) != 0) return false;
  ::unlink(from.c_str());
  return true;
}

}  // namespace

std::string why_unsafe_key(std::string_view key) {
  if (key.empty()) return "it is empty";
  if (key.front() == '/') return "it is an absolute path";
  if (key.find('\0') != std::string_view::npos) return "it contains a NUL byte";
  for (std::string_view rest = key;;) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..") {
      return "\"" + std::string(part) + "\" is not a valid file or folder name";
    }
    if (part.size() > 255) return "a component of it has more than 255 bytes";
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

void OutputFolder::refuse(std::string_view name, const std::string& what) {
  throw Exception({.code = &kLeadsOut,
                   .what = "\"" + std::string(name) + "\": " + what,
                   .where = Where{.member = std::string(name)},
                   .hint = "read the records with hr.open(), or skip this one"});
}

OutputFolder::OutputFolder(std::string path, bool overwrite)
    : path_(local_path(path, "a writer")), overwrite_(overwrite) {
  std::error_code failed;
  fs::create_directories(path_, failed);
  if (failed) not_written(path_, failed.value());
  if (!fs::is_directory(path_)) not_written(path_, ENOTDIR);
  clear_leftovers();
}

// Removes the files of a process that was killed.
void OutputFolder::clear_leftovers() const {
  for (const FolderEntry& entry : entries_in(path_)) {
    const std::string path = joined(path_, entry.name);
    struct stat status{};
    if (is_leftover(entry.name) && ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      ::unlink(path.c_str());
    }
  }
}

void OutputFolder::make_folders(std::string_view name) {
  const size_t last = name.rfind('/');
  if (last == std::string_view::npos) return;
  const std::string_view whole = name.substr(0, last);
  MutexLock lock(mutex_);
  if (folders_.contains(whole)) return;
  for (size_t slash = whole.find('/');; slash = whole.find('/', slash + 1)) {
    const std::string_view folder = whole.substr(0, slash);
    const std::string path = joined(path_, folder);
    struct stat status{};
    if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) not_written(path, errno);
    if (::lstat(path.c_str(), &status) != 0) not_written(path, errno);
    if (S_ISLNK(status.st_mode)) refuse(name, "\"" + path + "\" is a link");
    if (!S_ISDIR(status.st_mode)) not_written(path, ENOTDIR);
    folders_.emplace(folder);
    if (slash == std::string_view::npos) return;
  }
}

std::string OutputFolder::temporary_name() {
  return joined(path_, std::string(kTemporary) + std::to_string(::getpid()) + "-" + random_name());
}

bool OutputFolder::write(std::string_view name, std::span<const uint8_t> bytes) {
  if (std::string wrong = why_unsafe_key(name); !wrong.empty()) refuse(name, wrong);
  if (holds(joined(path_, name), bytes)) return false;
  const std::string temporary = temporary_name();
  write_all(temporary, bytes);
  return move_in(temporary, name);
}

bool OutputFolder::move_in(const std::string& temporary, std::string_view name) {
  const std::string path = joined(path_, name);
  try {
    make_folders(name);
    if (rename_to_free_name(temporary, path)) return true;
    if (errno != EEXIST) not_written(path, errno);
    Buffer bytes;
    const bool same = read_file(temporary, bytes).has_value() && holds(path, bytes.bytes());
    if (!same && !overwrite_) {
      raise(kOtherFile, "\"" + path + "\" exists with different contents",
            "unpack into an empty folder, or pass overwrite=True (--force) to replace files");
    }
    if (!same && ::rename(temporary.c_str(), path.c_str()) != 0) not_written(path, errno);
    if (same) ::unlink(temporary.c_str());
    return !same;
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace headrace
