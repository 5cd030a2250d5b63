// SPDX-License-Identifier: Apache-2.0
// Files of filesystem objects in Python (python/headrace/sources/filesystems.py) as an asynchronous
// storage: "filesystem://NAME/path".
//
// Note [Threads that ask Python for bytes]: each request is a call on one of at most 32 dedicated
// threads, which takes the GIL for the call and releases it before passing on the answer, because a
// thread that waits for the answer may hold something that Python needs. Copies are made without
// the GIL. When the interpreter exits, no further call starts, and calls in progress are awaited.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/base/per_process.h"
#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/burst_threads.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/storage_errors.h"

namespace headrace::python {
namespace {

const ErrorCode kFilesystemFailed{
    "HR0287", ErrorKind::kStorage, "filesystem object failed",
    "The object given as filesystem= raised an exception, or returned something unexpected. The "
    "exception is in the message; see the documentation of its library. The same call "
    "(fs.info(path), fs.cat_file(path)) should fail without Headrace, too."};

constexpr std::string_view kScheme = "filesystem://";
constexpr size_t kMaxCalls = 32;
constexpr double kLookAgainSeconds =
    10;  // between checks whether a file is still the one that was opened
constexpr size_t kCopiedWithGil = 64 << 10;

// A Python file system object and its name; permanent.
using ObjectPtr = std::shared_ptr<OwnedObject>;  // shared: by calls in progress

struct Objects {
  Mutex mutex;
  std::map<std::string, ObjectPtr, std::less<>> by_name GUARDED_BY(mutex);
  std::map<std::string, double> looked_at GUARDED_BY(mutex);  // paths, and when they were checked
};

Objects& objects();
Mutex& mutex_of_objects() { return objects().mutex; }

Objects& objects() {
  static Objects* const all = new Objects;
  [[maybe_unused]] static const int kept_free = free_over_fork<mutex_of_objects>();
  return *all;
}

struct CallThreads : BurstThreads {
  CallThreads() : BurstThreads(kMaxCalls) {}
};

BurstThreads& threads() { return of_this_process<CallThreads>(); }

std::atomic<bool> closed = false;

// "filesystem://s3/bucket/a.tar" -> the object, and "bucket/a.tar" as its own path.
struct Place {
  ObjectPtr object;
  std::string path;
};

Place place_of(std::string_view path) {
  path.remove_prefix(std::min(path.size(), kScheme.size()));
  const size_t slash = std::min(path.find('/'), path.size());
  MutexLock lock(objects().mutex);
  const auto found = objects().by_name.find(path.substr(0, slash));
  if (found == objects().by_name.end()) return {};
  path.remove_prefix(std::min(path.size(), slash + 1));
  while (path.ends_with('/')) path.remove_suffix(1);
  return {found->second, std::string(path)};
}

// The object's own path. REQUIRES: the GIL.
nb::str own_path(const Place& place) {
  const std::string prefix = bytes_from_str(place.object->get().attr("prefix"));
  return str_from_bytes(prefix + place.path);
}

// Why a call failed: an errno for transient errors and those with our own text, and the object's
// own text.
struct Failure {
  int error_number = 0;
  std::string words;
};

// REQUIRES: the GIL.
Failure failure_of(const std::exception& raised) {
  Failure out{.error_number = 0, .words = first_line_of(raised)};
  const auto* python = dynamic_cast<const nb::python_error*>(&raised);
  if (!python) return out;
  try {
    out.error_number = nb::cast<int>(nb::module_::import_("headrace.sources.filesystems")
                                         .attr("error_number")(nb::borrow(python->value())));
  } catch (const std::exception&) {
    // The interpreter is exiting.
  }
  return out;
}

Error failed_error(const std::string& path, std::string what) {
  return {.code = &kFilesystemFailed,
          .what = std::move(what),
          .where = Where{.file = path},
          .hint = "call the object's own info() or cat_file() with this path"};
}

Error error_of(const Failure& failure, std::string_view doing, const std::string& path) {
  if (failure.error_number == 0 || is_transient(failure.error_number)) {
    return failed_error(path, "could not " + std::string(doing) + " it: " + failure.words);
  }
  return storage_error(failure.error_number, doing, path);
}

Error closed_error(const std::string& path) {
  return failed_error(path, "Python is shutting down, so the object is no longer used");
}

class PythonFiles final : public AsyncStorage {
 public:
  Result<PathStatus> look_at(const std::string& path) const override {
    const Place place = place_of(path);
    if (!place.object) return storage_error(ENOENT, "look at", path);
    Result<PathStatus> found = PathStatus{};
    for (RetryCount tries;;) {
      Failure failure;
      if (closed) return closed_error(path);
      {
        EngineGil gil;
        try {
          found = look(place, path);
          break;
        } catch (const std::exception& raised) {
          rethrow_keyboard_interrupt(raised);
          failure = failure_of(raised);
        }
      }
      if (!wait_for_next(tries, failure)) return error_of(failure, "look at", path);
    }
    if (found && found->kind == PathKind::kNothing) return storage_error(ENOENT, "look at", path);
    return found;
  }

  Result<PathStatus> list(const std::string& path, const EachEntry& each) const override {
    Result<PathStatus> status = look_at(path);
    if (!status) return status;
    if (status->kind != PathKind::kFolder) return storage_error(ENOTDIR, "list", path);
    const Place place = place_of(path);
    std::vector<std::pair<std::string, PathKind>> entries;
    for (RetryCount tries;;) {
      Failure failure;
      if (closed) return closed_error(path);
      {
        EngineGil gil;
        entries.clear();
        try {
          for (nb::handle entry : place.object->get().attr("entries")(own_path(place))) {
            entries.emplace_back(bytes_from_str(entry[0]),
                                 nb::cast<bool>(entry[1]) ? PathKind::kFolder : PathKind::kFile);
          }
          break;
        } catch (const std::exception& raised) {
          rethrow_keyboard_interrupt(raised);
          failure = failure_of(raised);
        }
      }
      if (!wait_for_next(tries, failure)) return error_of(failure, "list", path);
    }
    for (const auto& [name, kind] : entries) {
      if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
        continue;  // names in a store that are not valid in paths
      }
      if (!each(name, kind)) break;
    }
    return status;
  }

 protected:
  void ask(const Request& request, std::function<void(Answer)> answer) const override {
    threads().call([this, request, answer = std::move(answer)] {
      Answer out;
      try {
        out = answer_to(request);
      } catch (const std::exception& failure) {
        out.error_number = ENOMEM;
      }
      answer(std::move(out));
    });
  }

 private:
  // REQUIRES: the GIL.
  static PathStatus look(const Place& place, const std::string& path) {
    const nb::object found = place.object->get().attr("look_at")(own_path(place));
    if (found.is_none()) return {};
    const auto modified = nb::cast<int64_t>(found.attr("modified_ns"));
    if (nb::cast<bool>(found.attr("is_folder"))) {
      // Folder changes cannot be detected: a cached listing of it is never current.
      return {.kind = PathKind::kFolder,
              .identity = {.device = 1, .inode = hash_name(path)},
              .status_changed_ns = now_ns()};
    }
    const std::string version = bytes_from_text(found.attr("version"));
    {
      MutexLock lock(objects().mutex);
      objects().looked_at[path] = now();
    }
    return {.kind = PathKind::kFile,
            .identity = {.device = 1,
                         .inode = version.empty() ? 0 : hash_name(version),
                         .size = nb::cast<uint64_t>(found.attr("size")),
                         .modified_ns = modified},
            // The same holds for an index of a file whose versions cannot be distinguished.
            .status_changed_ns = version.empty() && modified == 0 ? now_ns() : modified};
  }

  static bool wait_for_next(RetryCount& tries, const Failure& failure) {
    const int milliseconds = tries.pause_before_next(failure.error_number);
    if (milliseconds < 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return true;
  }

  // Occasionally checks whether it is still the file that was opened: most objects do not support
  // conditional reads.
  Result<void> look_again(const FilePiece& piece) const {
    {
      MutexLock lock(objects().mutex);
      const auto found = objects().looked_at.find(piece.path);
      if (found != objects().looked_at.end() && now() - found->second < kLookAgainSeconds) {
        return {};
      }
    }
    Result<PathStatus> status = look_at(piece.path);
    if (!status) return std::move(status.error());
    if (status->identity == *piece.known) return {};
    return changed_error(piece.path, *piece.known, status->identity);
  }

  Answer answer_to(const Request& request) const {
    Answer out;
    const FilePiece& piece = request.piece;
    const Place place = place_of(piece.path);
    if (!place.object) out.error_number = ENOENT;
    if (closed) out.failure = closed_error(piece.path);
    if (piece.known && out.failure) out.failure = look_again(piece);
    if (out.error_number != 0 || !out.failure) return out;
    const uint64_t begin = piece.offset + request.begin;
    const uint64_t wanted = request.sized ? request.bytes.size() - request.begin : 0;
    EngineGil gil;
    try {
      const nb::object end = request.sized ? nb::object(nb::int_(begin + wanted)) : nb::none();
      const nb::object data = place.object->get().attr("read")(own_path(place), begin, end);
      take(request, data, begin, wanted, out);
    } catch (const std::exception& raised) {
      Failure failure = failure_of(raised);
      if (failure.error_number == 0) {
        out.failure = failed_error(piece.path, "could not read it: " + failure.words);
      } else {
        out.error_number = failure.error_number;
        out.words = std::move(failure.words);
      }
    }
    return out;
  }

  // REQUIRES: the GIL.
  static void take(const Request& request, const nb::object& data, uint64_t begin, uint64_t wanted,
                   Answer& out) {
    const ExportedBuffer exported(data, PyBUF_SIMPLE);
    const std::span<const uint8_t> bytes = exported.bytes();
    if (request.sized && bytes.size() > wanted) {
      out.failure = failed_error(request.piece.path, "it returned " + std::to_string(bytes.size()) +
                                                         " bytes where " + std::to_string(wanted) +
                                                         " were requested");
      return;
    }
    // A read may return less: the rest is requested next, and missing if that returns nothing.
    const std::span<uint8_t> room =
        room_for(request, request.sized ? begin + bytes.size() : bytes.size(), out);
    out.got = std::min(room.size(), bytes.size());
    if (out.got > kCopiedWithGil) {
      nb::gil_scoped_release no_gil;
      std::memcpy(room.data(), bytes.data(), out.got);
    } else if (out.got > 0) {
      std::memcpy(room.data(), bytes.data(), out.got);
    }
  }
};

const Storage& python_files() {
  static const PythonFiles* const files = new PythonFiles;
  return *files;
}

const StorageRecord kPythonFiles{
    .name = "filesystem",
    .doc =
        "Files of a Python filesystem object (fsspec, obstore, pyarrow.fs, "
        "multi-storage-client), given as filesystem=.",
    .example = "filesystem://s3/bucket/train",
    .storage = python_files};
const Register<StorageRecord> registered_python_files(kPythonFiles);

}  // namespace

void close_python_files() {
  closed = true;
  threads().wait();
}

void bind_python_files(nb::module_& module) {
  module.def(
      "add_filesystem",
      [](const std::string& name, nb::object files) {
        auto object = std::make_shared<OwnedObject>(std::move(files));
        MutexLock lock(objects().mutex);
        objects().by_name[name] = std::move(object);
      },
      nb::arg("name"), nb::arg("files"),
      "Makes the object's files (headrace.sources.filesystems.Files) available at "
      "filesystem://NAME/.");
}

}  // namespace headrace::python
