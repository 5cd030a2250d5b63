// SPDX-License-Identifier: Apache-2.0
// Files of web servers: a path is a plain URL, and there are no listings.
#include <memory>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/storage/remote/remote_files.h"
#include "headrace/storage/remote/url.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

class Web final : public Cloud {
 public:
  Result<HttpRequest> object(const std::string& path, const HttpCall& /*call*/) const override {
    std::optional<Url> url = parse_url(path);
    if (!url) return request_error(path, "it is not a URL", "write https://HOST/PATH");
    return HttpRequest{
        .url = url->text(), .user = unescaped(url->user), .headers = remote_options()->headers};
  }

  std::string server(const std::string& path) const override {
    const std::optional<Url> url = parse_url(path);
    return url ? url->scheme + "://" + url->host : std::string();
  }
};

const Storage& web_files() {
  static const RemoteFiles* const files = new RemoteFiles(std::make_unique<Web>());
  return *files;
}

const StorageRecord kHttps{.name = "https",
                           .doc = "Files on web servers, read with range requests.",
                           .example = "https://example.org/train-{000..099}.tar",
                           .storage = web_files};
const Register<StorageRecord> registered_https(kHttps);

const StorageRecord kHttp{.name = "http",
                          .doc = "The same without TLS, for private networks.",
                          .example = "http://10.0.0.7:8000/train.hrpack",
                          .storage = web_files};
const Register<StorageRecord> registered_http(kHttp);

}  // namespace
}  // namespace headrace
