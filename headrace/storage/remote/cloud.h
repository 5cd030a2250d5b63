// SPDX-License-Identifier: Apache-2.0
// The interface of a kind of remote storage: the URL of an object, the authorization of a request,
// and the parsing of a listing. Everything else (ranges, retries, versions) is shared:
// remote_files.h. Const members may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/storage/remote/credentials.h"
#include "headrace/storage/remote/range_client.h"
#include "headrace/storage/remote/sigv4.h"
#include "headrace/storage/remote/url.h"

namespace headrace {

// One entry of a folder.
struct RemoteEntry {
  std::string name;  // without its folder; in a flat listing, the path below it
  bool is_folder = false;
  uint64_t size = 0;
  std::string etag = {};  // as sent with the object
};

struct ListPage {
  std::vector<RemoteEntry> entries = {};
  bool has_keys = false;  // including keys that are not entries, such as "folder/" itself
  std::string next;       // start of the next page; empty: it is the last one
};

// A page of a folder's listing.
struct ListQuery {
  std::string folder;     // a path
  std::string next = {};  // ListPage::next of the previous page
  bool flat = false;      // all files below the folder, instead of its files and folders
  // For a flat listing: only names after `after` and before `until`; empty: no bound.
  std::string after = {}, until = {};
  // The last folder on the previous page: some stores repeat it on the next page.
  std::string last_folder = {};
};

class Cloud {
 public:
  virtual ~Cloud() = default;

  // Called on a reader's thread before each request; may wait for credentials. `looks`: the request
  // is a stat or list, as when a dataset is opened; then the environment is read again.
  virtual void prepare(bool looks) const { (void)looks; }
  // A request for an object, signed with the current time. Must not wait.
  virtual Result<HttpRequest> object(const std::string& path, const HttpCall& call) const = 0;
  // The server's name: requests to the same server share a limit.
  virtual std::string server(const std::string& path) const = 0;
  // Fetch::renew, Fetch::redirected.
  virtual bool renew(const std::string& path, const HttpResponse& response,
                     std::string_view code) const {
    (void)path, (void)response, (void)code;
    return false;
  }
  virtual std::string redirected(const std::string& path, const HttpResponse& response,
                                 const std::string& to) const {
    (void)path, (void)response, (void)to;
    return {};
  }

  // Whether an object's last bytes can be requested by their number alone ("bytes=-100").
  virtual bool takes_ranges_from_end() const { return true; }

  // True: folders are key prefixes and can be listed. False: a path is a file or does not exist.
  virtual bool lists() const { return false; }
  // Whether flat listings are sorted by name, and can start after a name: ListQuery::after.
  virtual bool lists_after(const std::string& path) const {
    (void)path;
    return false;
  }
  // Whether the path is a whole bucket, and so a folder.
  virtual bool is_root(const std::string& path) const;
  virtual Result<HttpRequest> listing(const ListQuery& query, const HttpCall& call) const {
    (void)query, (void)call;
    return HttpRequest{};
  }
  virtual Result<ListPage> parse(const ListQuery& query, const FetchResult& got) const {
    (void)query, (void)got;
    return ListPage{};
  }

  // Whether objects can be stored (HttpCall::method "PUT").
  virtual bool stores() const { return false; }
};

// The URL of a server from an option or the environment, without trailing slashes; with `scheme` if
// it has none. HR0225 if it is not a URL.
Result<Url> endpoint_from(std::string text, std::string_view scheme = {});

// From the environment; empty if it is not set.
struct CloudSettings {
  std::string endpoint = {};
  std::string region = {};
  std::string account = {};
  bool operator==(const CloudSettings&) const = default;
};

// The settings and credentials of a cloud in this process. The environment is read at the first
// request and whenever a dataset is opened. Options (remote_options.h) take precedence.
// Thread-safe.
class CloudState {
 public:
  using Environment = CloudSettings (*)();
  // `cloud`: the scheme, such as "s3".
  CloudState(std::string_view cloud, Environment settings, Credentials::Environment keys)
      : cloud_(cloud), environment_(settings), credentials_(cloud, keys) {}

  // Cloud::prepare().
  void prepare(bool looks) EXCLUDES_LOCK(mutex_);
  // Never waits.
  CloudSettings settings() const EXCLUDES_LOCK(mutex_);
  // Changes whenever the result of settings() may have changed, apart from options.
  uint64_t version() const EXCLUDES_LOCK(mutex_);
  // Empty: requests are not authorized.
  std::optional<SigningKeys> keys() const;
  // Cloud::renew(), if the rejected credentials have expired, or there were no keys.
  bool renew(bool expired);

 private:
  const std::string cloud_;
  const Environment environment_;
  mutable Mutex mutex_;
  bool asked_ GUARDED_BY(mutex_) = false;
  CloudSettings settings_ GUARDED_BY(mutex_);
  uint64_t version_ GUARDED_BY(mutex_) = 0;
  Credentials credentials_;
};

}  // namespace headrace
