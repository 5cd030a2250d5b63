// SPDX-License-Identifier: Apache-2.0
// Google Cloud Storage, by its XML API: gs://BUCKET/KEY. Listings have the format of S3.
// https://cloud.google.com/storage/docs/xml-api/overview
#include <ctime>
#include <memory>
#include <utility>

#include "headrace/base/per_process.h"
#include "headrace/base/registry.h"
#include "headrace/storage/remote/cloud.h"
#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/remote_files.h"
#include "headrace/storage/remote/sigv4.h"
#include "headrace/storage/remote/url.h"

namespace headrace {
namespace {

// An HMAC key, from the same variables as in GDAL, or a token, from those of gcloud and Terraform.
std::optional<SigningKeys> google_keys() {
  SigningKeys keys{.key = variable_of({"GS_ACCESS_KEY_ID"}),
                   .secret = variable_of({"GS_SECRET_ACCESS_KEY"})};
  if (!keys.key.empty() && !keys.secret.empty()) return keys;
  SigningKeys bearer{.token =
                         variable_of({"CLOUDSDK_AUTH_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN"})};
  if (bearer.token.empty()) return {};
  return bearer;
}

CloudSettings google_settings() { return {.endpoint = variable_of({"STORAGE_EMULATOR_HOST"})}; }

struct GoogleState : CloudState {
  GoogleState() : CloudState("gs", google_settings, google_keys) {}
  Signer signer{kGoogleSigning};
};

GoogleState& google() { return of_this_process<GoogleState>(); }

class GoogleStorage final : public Cloud {
 public:
  bool lists() const override { return true; }
  bool stores() const override { return true; }

  std::string server(const std::string& path) const override {
    return "gs://" + bucket_and_key(path).bucket;
  }

  void prepare(bool looks) const override { google().prepare(looks); }

  Result<HttpRequest> object(const std::string& path, const HttpCall& call) const override {
    const auto [bucket, key] = bucket_and_key(path);
    return request(bucket, "/" + escaped(key, "/"), "", call);
  }

  bool lists_after(const std::string& /*path*/) const override { return true; }

  Result<HttpRequest> listing(const ListQuery& query, const HttpCall& call) const override {
    return request(bucket_and_key(query.folder).bucket, "", list_query_of_xml(query), call);
  }

  Result<ListPage> parse(const ListQuery& query, const FetchResult& got) const override {
    return list_page_of_xml(got.text, prefix_of(query.folder), query.flat);
  }

  bool renew(const std::string& /*path*/, const HttpResponse& response,
             std::string_view /*code*/) const override {
    return google().renew(response.status == 401);
  }

 private:
  static Result<HttpRequest> request(const std::string& bucket, const std::string& key,
                                     std::string query, const HttpCall& call) {
    std::string endpoint = google().settings().endpoint;
    if (endpoint.empty()) endpoint = "https://storage.googleapis.com";
    Result<Url> url =
        endpoint_from(std::move(endpoint), "http");  // the variable often has no scheme
    if (!url) return std::move(url.error());
    url->path += "/" + escaped(bucket) + key;
    url->query = std::move(query);
    HttpRequest out{.url = url->text()};
    SignedParts parts{.method = call.method, .body = call.body};
    if (call.method == "PUT") parts.headers.emplace_back("x-goog-if-generation-match", "0");
    const auto keys = google().keys();
    if (keys && !keys->key.empty()) {
      out.headers = google().signer.headers(*url, *keys, "auto", std::time(nullptr), parts);
      return out;
    }
    for (const auto& [name, value] : parts.headers) out.headers.push_back(name + ": " + value);
    if (keys) out.headers.push_back("Authorization: Bearer " + keys->token);
    return out;
  }
};

const Storage& google_files() {
  static const BucketFiles* const files = new BucketFiles(std::make_unique<GoogleStorage>());
  return *files;
}

const StorageRecord kGoogle{.name = "gs",
                            .doc = "Google Cloud Storage buckets.",
                            .example = "gs://bucket/train",
                            .storage = google_files};
const Register<StorageRecord> registered_google(kGoogle);

}  // namespace
}  // namespace headrace
