// SPDX-License-Identifier: Apache-2.0
// A cache of facts about remote objects in this process: whether they exist, and their first bytes,
// for some seconds, since many formats check these before one of them opens the file; and,
// permanently, the ETags that reads compare. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/storage/remote/cloud.h"
#include "headrace/storage/remote/known_versions.h"
#include "headrace/storage/remote/remote_options.h"
#include "headrace/storage/storage.h"

namespace headrace {

// The identity for a version (an ETag or modification time; empty: inode 0) and a size.
FileIdentity identity_of_version(std::string_view version, uint64_t size);

class KnownObjects {
 public:
  static constexpr double kSeconds = 10;
  static constexpr uint64_t kMaxHeld = uint64_t{32} << 20;  // bytes of all heads and tails

  struct Look {
    PathStatus status = {};
    std::string etag = {};
    // The first and last bytes of the file. shared: with readers.
    std::shared_ptr<const std::string> head = {}, tail = {};
  };
  // What a request found is stored only if options have not changed since the request was made:
  // with another endpoint or other headers, a path may be another object.
  using Generation = std::shared_ptr<const RemoteOptions>;  // shared: the process's
  static Generation generation() { return remote_options(); }
  // `path`: without a trailing "/". The absence of an object is cached for kSeconds only.
  std::optional<Look> look(const std::string& path, double time = now()) EXCLUDES_LOCK(mutex_);
  void saw(const std::string& path, Look look, const Generation& asked = generation())
      EXCLUDES_LOCK(mutex_);
  // Stores the first bytes of this version.
  void saw_head(const std::string& path, const FileIdentity& identity,
                std::shared_ptr<const std::string> head, const Generation& asked = generation())
      EXCLUDES_LOCK(mutex_);
  using Entries = std::vector<RemoteEntry>;
  std::shared_ptr<const Entries> listing(const std::string& folder) const EXCLUDES_LOCK(mutex_);
  // Stores the whole listing, whose first request was sent at `begun` (base/clock.h): entries of
  // slow listings are cached for as long as the listing took. HR0224 if a file is listed twice: it
  // would become two records.
  Result<void> saw_listing(const std::string& folder, Entries entries, double begun,
                           const Generation& asked = generation()) EXCLUDES_LOCK(mutex_);
  // Stores the first page of a listing: many formats check the first entries of a folder.
  void saw_first_page(const std::string& folder, ListPage page,
                      const Generation& asked = generation()) EXCLUDES_LOCK(mutex_);
  std::optional<ListPage> first_page(const std::string& folder) const EXCLUDES_LOCK(mutex_);
  // Stores the versions of the files of a page, or of one that was read whole.
  void saw_page(const std::string& folder, const Entries& entries, const Generation& asked)
      EXCLUDES_LOCK(mutex_);
  void saw_version(const std::string& path, const FileIdentity& identity, const Generation& asked)
      EXCLUDES_LOCK(mutex_);
  // The last one that was listed, inspected or read: for as long as the options are the same.
  std::optional<FileIdentity> version_of(const std::string& path) const EXCLUDES_LOCK(mutex_);
  // The ETag of a version, for If-Match; empty if unknown.
  std::string etag_of(const FileIdentity& identity) const EXCLUDES_LOCK(mutex_);
  // The object has changed.
  void forget(const std::string& path) EXCLUDES_LOCK(mutex_);
  // The object is new: invalidates the listings of its folders.
  void added(const std::string& path) EXCLUDES_LOCK(mutex_);

 private:
  struct Listing {
    double ended, until;
    std::shared_ptr<const Entries> entries;  // shared: with readers that iterate over them
    std::unordered_map<std::string_view, size_t> by_name;  // into `entries`
  };
  struct Seen {
    double time;
    Look look;
  };
  struct FirstPage {
    double time;
    ListPage page;
  };
  static constexpr size_t kMaxLooks = 4096, kMaxEtags = size_t{1} << 22;
  static constexpr size_t kSmallHead = 4096;  // this many of these fit into kMaxHeld

  void drop_old(double time) REQUIRES_LOCK(mutex_);
  // Drops heads and tails beyond kSeconds or kMaxHeld, the oldest first.
  void drop_ends(double time) REQUIRES_LOCK(mutex_);
  void keep_version(const std::string& path, const FileIdentity& identity) REQUIRES_LOCK(mutex_);
  void keep_etag(const FileIdentity& identity, const std::string& etag) REQUIRES_LOCK(mutex_);
  // Drops everything if options changed.
  void drop_if_configured() const REQUIRES_LOCK(mutex_);
  // Whether an answer to a request of that generation is stored.
  bool is_current(const Generation& asked) const REQUIRES_LOCK(mutex_);

  mutable Mutex mutex_;
  mutable Generation options_ GUARDED_BY(mutex_);
  double dropped_at_ GUARDED_BY(mutex_) = 0;  // the last drop_old()
  mutable std::map<std::string, Seen> looks_ GUARDED_BY(mutex_);
  mutable std::map<std::string, Listing> listings_ GUARDED_BY(mutex_);
  mutable std::map<std::string, FirstPage> first_pages_ GUARDED_BY(mutex_);
  mutable KnownVersions versions_ GUARDED_BY(mutex_);                   // by hash_name(path)
  std::unordered_map<uint64_t, std::string> etags_ GUARDED_BY(mutex_);  // by identity.inode
};

// The cache of this process.
KnownObjects& known_objects();

// The path as KnownObjects expects it: without a trailing "/".
std::string without_slash(std::string path);
// The status of a folder, with the current time: a bucket does not record when it changed, so
// listings are not cached for later runs.
PathStatus folder_status(const std::string& path);

}  // namespace headrace
