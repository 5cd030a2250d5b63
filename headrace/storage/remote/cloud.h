// SPDX-License-Identifier: Apache-2.0
// A kind of remote storage, as three small things: the address of an object, what authorizes a
// request, and how a listing is parsed. All else (ranges, retries, versions) is the same for all of
// them: remote_files.h. Const members may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/storage/remote/range_client.h"

namespace headrace {

// One entry of a folder.
struct RemoteEntry {
  std::string name;  // without its folder
  bool is_folder = false;
  uint64_t size = 0;
  std::string etag;  // as it is sent with the object
};

struct ListPage {
  std::vector<RemoteEntry> entries = {};
  bool has_keys = false;  // also those that are no entries, such as "folder/" itself
  std::string next;       // what the next page begins with; empty: it is the last one
};

class Cloud {
 public:
  virtual ~Cloud() = default;

  // Called on a reader's thread before each request, which may wait for credentials. `looks`: to
  // look or list, as who opens a dataset does; then the environment is looked at once more.
  virtual void prepare(bool looks) const { (void)looks; }
  // Signed for now. Must not wait.
  virtual Result<HttpRequest> object(const std::string& path) const = 0;
  // Requests to one share a limit.
  virtual std::string server(const std::string& path) const = 0;
  // Fetch::renew.
  virtual bool renew(const std::string& path, const HttpResponse& response,
                     std::string_view code) const {
    (void)path, (void)response, (void)code;
    return false;
  }

  // Folders are prefixes of keys. Without, a path is a file or nothing.
  virtual bool lists() const { return false; }
  // At most `most` entries from `next` on.
  virtual Result<HttpRequest> listing(const std::string& folder, const std::string& next,
                                      int most) const {
    (void)folder, (void)next, (void)most;
    return HttpRequest{};
  }
  virtual Result<ListPage> parse(const std::string& folder, std::string_view body) const {
    (void)folder, (void)body;
    return ListPage{};
  }
};

}  // namespace headrace
