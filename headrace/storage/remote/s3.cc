// SPDX-License-Identifier: Apache-2.0
// S3 and compatible storages: s3://BUCKET/KEY.
#include <ctime>
#include <map>
#include <memory>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/per_process.h"
#include "headrace/base/registry.h"
#include "headrace/storage/remote/cloud.h"
#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/remote_files.h"
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

CloudSettings aws_settings() {
  return {.endpoint = variable_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}),
          .region = variable_of({"AWS_REGION", "AWS_DEFAULT_REGION"})};
}

// The location of a bucket's objects, the same for all its requests.
struct BucketPlace {
  Url url;  // its path is the bucket's
  std::string region;
  // The configuration when this was determined.
  std::shared_ptr<const RemoteOptions> options;  // shared with the process's configuration
  uint64_t version = 0;
};

struct S3State : CloudState {
  S3State() : CloudState("s3", aws_settings, aws_keys) {}
  Mutex mutex;
  std::map<std::string, std::string> regions
      GUARDED_BY(mutex);  // regions of buckets, as reported by servers
  std::map<std::string, BucketPlace> places GUARDED_BY(mutex);
  Signer signer;
};

constexpr size_t kMaxPlaces = 256;

S3State& aws() { return of_this_process<S3State>(); }

class S3 final : public Cloud {
 public:
  bool lists() const override { return true; }
  bool stores() const override { return true; }

  std::string server(const std::string& path) const override {
    return "s3://" + bucket_and_key(path).bucket;
  }

  void prepare(bool looks) const override { aws().prepare(looks); }

  Result<HttpRequest> object(const std::string& path, const HttpCall& call) const override {
    const auto [bucket, key] = bucket_and_key(path);
    return request(bucket, escaped(key, "/"), "", call);
  }

  // Directory buckets are not sorted by name.
  bool lists_after(const std::string& path) const override {
    return !bucket_and_key(path).bucket.ends_with("--x-s3");
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
      if (std::exchange(region, response.region) != response.region) {
        aws().places.erase(bucket_and_key(path).bucket);
        return true;
      }
    }
    return aws().renew(code == "ExpiredToken" || code == "ExpiredTokenException" ||
                       code == "InvalidToken" || code == "TokenRefreshRequired" ||
                       code == "InvalidAccessKeyId");
  }

 private:
  static Result<BucketPlace> place_of(const std::string& bucket) {
    BucketPlace out{
        .url = {}, .region = {}, .options = remote_options(), .version = aws().version()};
    MutexLock lock(aws().mutex);  // a server may have reported the region in the meantime
    const auto known = aws().places.find(bucket);
    if (known != aws().places.end() && known->second.options == out.options &&
        known->second.version == out.version) {
      return known->second;
    }
    auto [endpoint, region, account] = aws().settings();
    if (const auto named = aws().regions.find(bucket); named != aws().regions.end()) {
      region = named->second;
    }
    if (region.empty()) region = "us-east-1";
    // AWS certificates cover only one label before "s3", so names with dots go into the path.
    const bool own = !endpoint.empty();
    const std::string& addressing = out.options->addressing;
    const bool in_path = addressing == "path" || (addressing != "virtual" &&
                                                  (own || bucket.find('.') != std::string::npos));
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
    out.url = std::move(*url);
    out.region = std::move(region);
    if (aws().places.size() >= kMaxPlaces) aws().places.clear();
    aws().places.insert_or_assign(bucket, out);
    return out;
  }

  static Result<HttpRequest> request(const std::string& bucket, const std::string& key,
                                     std::string query, const HttpCall& call) {
    Result<BucketPlace> place = place_of(bucket);
    if (!place) return std::move(place.error());
    Url* const url = &place->url;
    const std::string& region = place->region;
    url->path += "/" + key;
    url->query = std::move(query);
    HttpRequest out{.url = url->text()};
    const auto keys = aws().keys();
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
                        .doc = "Buckets in S3 and compatible stores.",
                        .example = "s3://bucket/train",
                        .storage = s3_files};
const Register<StorageRecord> registered_s3(kS3);

}  // namespace
}  // namespace headrace
