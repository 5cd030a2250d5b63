// SPDX-License-Identifier: Apache-2.0
// A process's knowledge of remote objects: for some seconds which exist and how a file begins,
// since many formats ask before one of them opens it, and for good the ETags that reads compare.
// Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/storage/remote/cloud.h"
#include "headrace/storage/remote/remote_options.h"
#include "headrace/storage/storage.h"

namespace headrace {

// From a version's name (its ETag, or when it was changed; empty: an inode of 0) and the size.
FileIdentity identity_of_version(std::string_view version, uint64_t size);

class KnownObjects {
 public:
  static constexpr double kSeconds = 10;

  struct Look {
    PathStatus status = {};
    std::string etag = {};
    std::shared_ptr<const std::string> head = {};  // shared: with readers; how the file begins
  };
  // `path` without a "/" at its end.
  std::optional<Look> look(const std::string& path) EXCLUDES_LOCK(mutex_);
  void saw(const std::string& path, Look look) EXCLUDES_LOCK(mutex_);
  // How it begins, of this version.
  void saw_head(const std::string& path, const FileIdentity& identity,
                std::shared_ptr<const std::string> head) EXCLUDES_LOCK(mutex_);
  using Entries = std::vector<RemoteEntry>;
  std::shared_ptr<const Entries> listing(const std::string& folder) const EXCLUDES_LOCK(mutex_);
  // All of it, asked for since `begun` (base/clock.h): what took long is known for as long.
  // HR0224 where a file is named twice: it would be two records.
  Result<void> saw_listing(const std::string& folder, Entries entries, double begun)
      EXCLUDES_LOCK(mutex_);
  // A part of one: many formats ask what a folder begins with.
  void saw_first_page(const std::string& folder, ListPage page) EXCLUDES_LOCK(mutex_);
  std::optional<ListPage> first_page(const std::string& folder) const EXCLUDES_LOCK(mutex_);
  // The ETag of a version, for If-Match; empty where it is not known.
  std::string etag_of(const FileIdentity& identity) const EXCLUDES_LOCK(mutex_);
  // It is not as it was.
  void forget(const std::string& path) EXCLUDES_LOCK(mutex_);
  // It is new: the folders that it lies in are not as they were.
  void added(const std::string& path) EXCLUDES_LOCK(mutex_);

 private:
  struct Listing {
    double until;
    std::shared_ptr<const Entries> entries;                // shared: with who goes through them
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
  static constexpr size_t kMostLooks = 4096, kMostEtags = size_t{1} << 22;

  void drop_old(double time) REQUIRES_LOCK(mutex_);
  void keep_etag(const FileIdentity& identity, const std::string& etag) REQUIRES_LOCK(mutex_);
  // With other options (an endpoint, headers) it may be another object.
  void drop_if_configured() const REQUIRES_LOCK(mutex_);

  mutable Mutex mutex_;
  mutable std::shared_ptr<const RemoteOptions> options_
      GUARDED_BY(mutex_);  // shared: the process's
  mutable std::map<std::string, Seen> looks_ GUARDED_BY(mutex_);
  mutable std::map<std::string, Listing> listings_ GUARDED_BY(mutex_);
  mutable std::map<std::string, FirstPage> first_pages_ GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, std::string> etags_ GUARDED_BY(mutex_);  // by identity.inode
};

// The process's.
KnownObjects& known_objects();

// As they are named there.
std::string without_slash(std::string path);
// The status now: a bucket does not say when it changed, so listings are not kept for another run.
PathStatus folder_status(const std::string& path);

}  // namespace headrace
