// SPDX-License-Identifier: Apache-2.0
// S3 and compatible storages: s3://BUCKET/KEY.
#include <ctime>
#include <map>
#include <memory>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/registry.h"
#include "headrace/storage/remote/bucket_files.h"
#include "headrace/storage/remote/credentials.h"
#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/per_process.h"
#include "headrace/storage/remote/sigv4.h"
#include "headrace/storage/remote/url.h"

namespace headrace {
namespace {

std::optional<SigningKeys> aws_keys() {
  SigningKeys keys{.key = variable_of({"AWS_ACCESS_KEY_ID"}),
                   .secret = variable_of({"AWS_SECRET_ACCESS_KEY"}),
                   .token = variable_of({"AWS_SESSION_TOKEN"})};
  if (keys.key.empty() || keys.secret.empty()) return {};
  return keys;
}

// A process's knowledge of its S3: the environment's, and the regions that servers named.
struct S3State {
  mutable Mutex mutex;
  bool asked GUARDED_BY(mutex) = false;
  std::string endpoint GUARDED_BY(mutex), region GUARDED_BY(mutex);
  std::map<std::string, std::string> regions GUARDED_BY(mutex);  // of buckets
  Credentials credentials{"s3", aws_keys};
  Signer signer;
};

S3State& aws() { return of_this_process<S3State>(); }

class S3 final : public Cloud {
 public:
  bool lists() const override { return true; }
  bool stores() const override { return true; }

  std::string server(const std::string& path) const override {
    return "s3://" + bucket_and_key(path).bucket;
  }

  void prepare(bool looks) const override {
    {
      MutexLock lock(aws().mutex);
      if (looks || !aws().asked) {
        aws().endpoint = variable_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
        aws().region = variable_of({"AWS_REGION", "AWS_DEFAULT_REGION"});
        aws().asked = true;
      }
    }
    if (!remote_options()->anonymous) aws().credentials.prepare(looks);
  }

  Result<HttpRequest> object(const std::string& path, const HttpCall& call) const override {
    const auto [bucket, key] = bucket_and_key(path);
    return request(bucket, escaped(key, "/"), "", call);
  }

  Result<HttpRequest> listing(const ListQuery& query, const HttpCall& call) const override {
    return request(bucket_and_key(query.folder).bucket, "", list_query_of_xml(query), call);
  }

  Result<ListPage> parse(const ListQuery& query, const FetchResult& got) const override {
    return list_page_of_xml(got.text, prefix_of(query.folder), query.flat);
  }

  bool renew(const std::string& path, const HttpResponse& response,
             std::string_view code) const override {
    if (!response.region.empty()) {
      MutexLock lock(aws().mutex);
      std::string& region = aws().regions[bucket_and_key(path).bucket];
      if (std::exchange(region, response.region) != response.region) return true;
    }
    if (remote_options()->anonymous) return false;
    const std::optional<SigningKeys> refused = aws().credentials.known();
    const bool expired = code == "ExpiredToken" || code == "ExpiredTokenException" ||
                         code == "InvalidToken" || code == "TokenRefreshRequired" ||
                         code == "InvalidAccessKeyId";
    return (expired || !refused) && aws().credentials.renew(refused);
  }

 private:
  static Result<HttpRequest> request(const std::string& bucket, const std::string& key,
                                     std::string query, const HttpCall& call) {
    const auto options = remote_options();
    std::string endpoint = options->endpoint("s3"), region = options->region;
    {
      MutexLock lock(aws().mutex);
      if (endpoint.empty()) endpoint = aws().endpoint;
      if (region.empty()) region = aws().region;
      if (const auto named = aws().regions.find(bucket); named != aws().regions.end()) {
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
    Result<Url> url = endpoint_from(endpoint);
    if (!url) return std::move(url.error());
    if (in_path) {
      url->path += "/" + escaped(bucket);
    } else {
      url->host = bucket + "." + url->host;
    }
    url->path += "/" + key;
    url->query = std::move(query);
    HttpRequest out{.url = url->text()};
    const auto keys = options->anonymous ? std::nullopt : aws().credentials.known();
    if (keys) {
      out.headers = aws().signer.headers(*url, *keys, region, std::time(nullptr),
                                         {.method = call.method, .body = call.body});
    }
    if (call.method == "PUT") out.headers.emplace_back("If-None-Match: *");
    return out;
  }
};

const Storage& s3_files() {
  static const BucketFiles* const files = new BucketFiles(std::make_unique<S3>());
  return *files;
}

const StorageRecord kS3{.name = "s3",
                        .doc = "Buckets of S3 and compatible stores.",
                        .example = "s3://bucket/train",
                        .storage = s3_files};
const Register<StorageRecord> registered_s3(kS3);

}  // namespace
}  // namespace headrace
