// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/storage_errors.h"

#include <cerrno>
#include <system_error>

namespace headrace {
namespace {

const ErrorCode kNothingThere{
    "HR0201", ErrorKind::kStorage, "no such file",
    "Nothing exists at this path. The file was moved or deleted after it was listed, a symbolic "
    "link points nowhere, or a network folder is not mounted. Check the path; open the source "
    "again if its files have changed.",
    /*of_record=*/true};

const ErrorCode kNotAllowed{
    "HR0202", ErrorKind::kStorage, "not allowed to read",
    "The file or folder exists, but this user may not read it, or may not enter a folder above it. "
    "Change its permissions (chmod, chown), or run as a user that has them.",
    /*of_record=*/true};

const ErrorCode kNotRegular{"HR0203", ErrorKind::kStorage, "not a regular file",
                            "A record must be a regular file. A folder, pipe, socket or device "
                            "is at this path; reading it could block forever. Remove it "
                            "from the list of files.",
                            /*of_record=*/true};

const ErrorCode kReadFailed{
    "HR0204", ErrorKind::kStorage, "read failed",
    "The operating system failed to deliver the bytes, even after a retry. A disk or network file "
    "system may be failing: check the kernel log (dmesg). The data is not at fault, so this never "
    "counts as a bad record."};

const ErrorCode kEndedEarly{
    "HR0205", ErrorKind::kData, "file ended early",
    "The file is shorter than its reported size, so it shrank while being read: something is "
    "writing to the dataset. Let the writer finish (or write to a temporary name and rename), "
    "then read again."};

const ErrorCode kTooLarge{
    "HR0206", ErrorKind::kResource, "file too large",
    "A record's file exceeds the size limit, or the machine's memory, so nothing was read. Images "
    "are far smaller; usually a container ended up among the images. Or a server did not state the "
    "length of a file, and sent more than 1 GiB: use one that does, or copy the file."};

const ErrorCode kTooManyOpen{
    "HR0207", ErrorKind::kStorage, "too many open files",
    "The process or the machine has reached its limit on open files. Headrace keeps one file open "
    "per reading thread; the rest are held by something else. Raise the limit (ulimit -n)."};

const ErrorCode kChanged{
    "HR0208", ErrorKind::kData, "file changed while it was open",
    "A file of the dataset is no longer the one that was opened: its size, modification time or "
    "inode differs, so its record index is no longer valid. Let the writer finish, then open the "
    "source again."};

}  // namespace

bool is_transient(int error_number) {
  switch (error_number) {
    case EIO:
    case ESTALE:
    case EAGAIN:
    case ETIMEDOUT:
    case ENOLINK:
    case EREMOTEIO:
    case ECOMM:
    case ENETDOWN:
    case ENETUNREACH:
    case ENETRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENOTCONN:
    case EBUSY:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return true;
    default:
      return false;
  }
}

Error storage_error(int error_number, std::string_view doing, const std::string& path,
                    int64_t offset) {
  Error error{.code = &kReadFailed, .where = Where{.file = path, .offset = offset}};
  const std::string reason = std::generic_category().message(error_number);
  error.what = "could not " + std::string(doing) + " it: " + reason;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
    case ENODEV:
      error.code = &kNothingThere;
      error.hint = "check the path; open the source again if its files have changed";
      break;
    case EACCES:
    case EPERM:
      error.code = &kNotAllowed;
      error.hint = "change its permissions (chmod, chown), or run as a user that may read it";
      break;
    case EMFILE:
    case ENFILE:
      error.code = &kTooManyOpen;
      error.hint = "raise the limit on open files (ulimit -n)";
      break;
    default:
      if (is_transient(error_number)) {
        error.note = "tried " + std::to_string(kReadRetries + 1) + " times";
      }
      error.hint = "check the kernel's log (dmesg), and the network file system if there is one";
  }
  return error;
}

Error not_regular_error(const std::string& path, std::string_view what) {
  return {.code = &kNotRegular,
          .what = std::string(what) + " is where a file was expected",
          .where = Where{.file = path},
          .hint = "remove it from the list of files"};
}

Error ended_early_error(const std::string& path, uint64_t expected, uint64_t found) {
  return {.code = &kEndedEarly,
          .what = "expected " + std::to_string(expected) + " bytes, found " + std::to_string(found),
          .where = Where{.file = path, .offset = static_cast<int64_t>(found)},
          .hint = "something is writing to the dataset; let it finish first"};
}

Error too_large_error(const std::string& path, uint64_t bytes, std::string_view why) {
  return {.code = &kTooLarge,
          .what = "the file has " + std::to_string(bytes) + " bytes, " + std::string(why),
          .where = Where{.file = path},
          .hint = "inspect the file: images are never that large"};
}

Error above_cap_error(const std::string& path, uint64_t bytes, uint64_t cap) {
  return too_large_error(path, bytes, "the cap is " + std::to_string(cap));
}

Error changed_error(const std::string& path, const FileIdentity& known, const FileIdentity& now) {
  return {.code = &kChanged,
          .what = "it is no longer the file that was opened (" + std::to_string(now.size) +
                  " bytes now, " + std::to_string(known.size) + " then)",
          .where = Where{.file = path},
          .hint = "let the writer finish, then open the source again"};
}

}  // namespace headrace
