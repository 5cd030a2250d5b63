// SPDX-License-Identifier: Apache-2.0
// S3 and what is compatible with it: s3://BUCKET/KEY.
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/registry.h"
#include "headrace/storage/remote/credentials.h"
#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/per_process.h"
#include "headrace/storage/remote/remote_files.h"
#include "headrace/storage/remote/sigv4.h"
#include "headrace/storage/remote/url.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

const ErrorCode kBadEndpoint{
    "HR0225", ErrorKind::kConfig, "invalid endpoint",
    "The endpoint of an S3-compatible store is an address with its scheme, http://127.0.0.1:9000 "
    "or https://storage.example.org, given by AWS_ENDPOINT_URL or "
    "hr.remote.configure(endpoint=...)."};

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value && *value) return value;
  }
  return {};
}

// What a process knows of its S3: the environment's, and the regions that servers named.
struct S3State {
  mutable Mutex mutex;
  bool asked GUARDED_BY(mutex) = false;
  std::string endpoint GUARDED_BY(mutex), region GUARDED_BY(mutex);
  std::map<std::string, std::string> regions GUARDED_BY(mutex);  // of buckets
  Credentials credentials;
  Signer signer;
};

S3State& state() { return of_this_process<S3State>(); }

class S3 final : public Cloud {
 public:
  bool lists() const override { return true; }

  std::string server(const std::string& path) const override {
    return "s3://" + bucket_and_key(path).bucket;
  }

  void prepare(bool looks) const override {
    {
      MutexLock lock(state().mutex);
      if (looks || !state().asked) {
        state().endpoint = first_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
        state().region = first_of({"AWS_REGION", "AWS_DEFAULT_REGION"});
        state().asked = true;
      }
    }
    if (!remote_options()->anonymous) state().credentials.prepare(looks);
  }

  Result<HttpRequest> object(const std::string& path) const override {
    const auto [bucket, key] = bucket_and_key(path);
    return request(bucket, escaped(key, "/"), "");
  }

  Result<HttpRequest> listing(const std::string& folder, const std::string& next,
                              int most) const override {
    std::string query = next.empty() ? "" : "continuation-token=" + escaped(next) + "&";
    query += "delimiter=%2F&encoding-type=url&list-type=2&max-keys=" + std::to_string(most) +
             "&prefix=" + escaped(prefix_of(folder));
    return request(bucket_and_key(folder).bucket, "", std::move(query));
  }

  Result<ListPage> parse(const std::string& folder, std::string_view body) const override {
    Result<ListPage> page = list_page_of_xml(body, prefix_of(folder));
    if (!page) page.error().where.file = folder;
    return page;
  }

  bool renew(const std::string& path, const HttpResponse& response,
             std::string_view code) const override {
    if (!response.region.empty()) {
      MutexLock lock(state().mutex);
      std::string& region = state().regions[bucket_and_key(path).bucket];
      if (std::exchange(region, response.region) != response.region) return true;
    }
    if (remote_options()->anonymous) return false;
    const std::optional<SigningKeys> refused = state().credentials.known();
    const bool expired = code == "ExpiredToken" || code == "ExpiredTokenException" ||
                         code == "InvalidToken" || code == "TokenRefreshRequired" ||
                         code == "InvalidAccessKeyId";
    return (expired || !refused) && state().credentials.renew(refused);
  }

 private:
  static std::string prefix_of(const std::string& folder) {
    std::string key = bucket_and_key(folder).key;
    return key.empty() ? key : key + "/";
  }

  static Result<HttpRequest> request(const std::string& bucket, const std::string& key,
                                     std::string query) {
    const auto options = remote_options();
    std::string endpoint = options->endpoint, region = options->region;
    {
      MutexLock lock(state().mutex);
      if (endpoint.empty()) endpoint = state().endpoint;
      if (region.empty()) region = state().region;
      if (const auto named = state().regions.find(bucket); named != state().regions.end()) {
        region = named->second;
      }
    }
    if (region.empty()) region = "us-east-1";
    // Certificates of AWS name one label before "s3".
    const bool own = !endpoint.empty();
    const bool in_path =
        options->addressing == "path" ||
        (options->addressing != "virtual" && (own || bucket.find('.') != std::string::npos));
    if (!own) {
      endpoint = "https://s3." + region + ".amazonaws.com";
      if (region.starts_with("cn-")) endpoint += ".cn";
    }
    std::optional<Url> url = parse_url(endpoint);
    if (!url || (url->scheme != "http" && url->scheme != "https")) {
      return Error{.code = &kBadEndpoint,
                   .what = "\"" + endpoint + "\" is not an address of a server",
                   .hint = "write http://HOST:PORT or https://HOST"};
    }
    while (url->path.ends_with('/')) url->path.pop_back();
    if (in_path) {
      url->path += "/" + escaped(bucket);
    } else {
      url->host = bucket + "." + url->host;
    }
    url->path += "/" + key;
    url->query = std::move(query);
    HttpRequest out{.url = url->text()};
    if (options->anonymous) return out;
    if (const auto keys = state().credentials.known()) {
      out.headers = state().signer.headers(*url, *keys, region, std::time(nullptr));
    }
    return out;
  }
};

const Storage& s3_files() {
  static const RemoteFiles* const files = new RemoteFiles(std::make_unique<S3>());
  return *files;
}

const StorageRecord kS3{.name = "s3",
                        .doc = "Buckets of S3 and compatible stores.",
                        .example = "s3://bucket/train",
                        .storage = s3_files};
const Register<StorageRecord> registered_s3(kS3);

}  // namespace
}  // namespace headrace
