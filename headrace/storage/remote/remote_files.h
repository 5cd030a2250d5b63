// SPDX-License-Identifier: Apache-2.0
// A remote storage of any kind: stat, list and read through a RangeClient. Caches answers for some
// seconds, since opening a dataset sends the same requests many times.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headrace/storage/async_storage.h"
#include "headrace/storage/bucket.h"
#include "headrace/storage/remote/cloud.h"
#include "headrace/storage/remote/known_objects.h"

namespace headrace {

class RemoteFiles : public AsyncStorage {
 public:
  explicit RemoteFiles(std::unique_ptr<const Cloud> cloud);
  ~RemoteFiles() override;

  Result<PathStatus> look_at(const std::string& path) const override { return look(path, false); }
  Result<PathStatus> look_at_ends(const std::string& path) const override {
    return look(path, true);
  }
  Result<PathStatus> list(const std::string& path, const EachEntry& each) const override;
  std::optional<FileIdentity> version_of(const std::string& path) const override;

 protected:
  bool supports_scatter() const override { return true; }
  void ask(const Request& request, std::function<void(Answer)> answer) const override;

  const Cloud& cloud() const { return *cloud_; }
  Fetch new_fetch(const std::string& path) const;
  Fetch new_listing(const ListQuery& query) const;
  Result<ListPage> page_from(const ListQuery& query, FetchResult got) const;

 private:
  Result<PathStatus> look(const std::string& path, bool both_ends) const;
  bool answer_from_known(const Request& request, const std::string& path,
                         const std::function<void(Answer)>& answer) const;
  // `listing`: the request for the page, if it was already sent. `asked`: from before that.
  Result<ListPage> page_of(const ListQuery& query, const KnownObjects::Generation& asked,
                           std::unique_ptr<PendingFetch> listing = nullptr) const;
  Result<PathStatus> look_at_folder(const std::string& path, const KnownObjects::Generation& asked,
                                    std::unique_ptr<PendingFetch> listing = nullptr) const;

  const std::unique_ptr<const Cloud> cloud_;
};

// Remote files whose folders are key prefixes (bucket_files.cc).
class BucketFiles final : public RemoteFiles, public Bucket {
 public:
  using RemoteFiles::RemoteFiles;

  Result<PathStatus> list_below(const std::string& path, const EachEntry& each) const override;
  Result<bool> store(const std::string& path, std::string content) const override;
};

}  // namespace headrace
