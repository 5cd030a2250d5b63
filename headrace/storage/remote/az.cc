// SPDX-License-Identifier: Apache-2.0
// Azure Blob Storage: az://CONTAINER/BLOB, in the account given by the environment or the endpoint.
// https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include "headrace/base/per_process.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/storage/remote/azure_signature.h"
#include "headrace/storage/remote/cloud.h"
#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/remote_files.h"
#include "headrace/storage/remote/url.h"

namespace headrace {
namespace {

constexpr const char* kApiVersion = "2021-12-02";

// A value of AZURE_STORAGE_CONNECTION_STRING: "AccountName=a;AccountKey=b==;...".
std::string part_of_connection(std::string_view name) {
  const std::string all = variable_of({"AZURE_STORAGE_CONNECTION_STRING"});
  std::string_view rest = all;
  while (!rest.empty()) {
    const std::string_view part = trimmed(rest.substr(0, rest.find(';')));
    rest.remove_prefix(std::min(rest.find(';'), rest.size() - 1) + 1);
    const size_t equals = std::min(part.find('='), part.size());
    if (lower_case(part.substr(0, equals)) == lower_case(name) && equals < part.size()) {
      return std::string(part.substr(equals + 1));
    }
  }
  return {};
}

std::string either(std::string first, const std::string& second) {
  return first.empty() ? second : first;
}

std::optional<SigningKeys> azure_keys() {
  SigningKeys keys;
  keys.query =
      either(variable_of({"AZURE_STORAGE_SAS_TOKEN"}), part_of_connection("SharedAccessSignature"));
  while (keys.query.starts_with('?') || keys.query.starts_with('&')) keys.query.erase(0, 1);
  if (!keys.query.empty()) return keys;
  keys.secret = either(variable_of({"AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"}),
                       part_of_connection("AccountKey"));
  if (keys.secret.empty()) return {};
  return keys;
}

CloudSettings azure_settings() {
  CloudSettings out;
  out.account = either(variable_of({"AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"}),
                       part_of_connection("AccountName"));
  out.endpoint = either(variable_of({"AZURE_STORAGE_ENDPOINT", "AZURE_STORAGE_SERVICE_ENDPOINT"}),
                        part_of_connection("BlobEndpoint"));
  if (out.endpoint.empty() && !out.account.empty()) {
    out.endpoint = "https://" + out.account + ".blob." +
                   either(part_of_connection("EndpointSuffix"), "core.windows.net");
  }
  return out;
}

struct AzureState : CloudState {
  AzureState() : CloudState("az", azure_settings, azure_keys) {}
};

AzureState& azure() { return of_this_process<AzureState>(); }

std::string date_text(int64_t time) {
  const std::time_t seconds = time;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  // Not strftime, because names of days and months are English in any locale.
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char text[40];
  const int size = std::snprintf(text, sizeof text, "%s, %02d %s %d %02d:%02d:%02d GMT",
                                 kDays[parts.tm_wday], parts.tm_mday, kMonths[parts.tm_mon],
                                 parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return {text, static_cast<size_t>(size)};
}

class Azure final : public Cloud {
 public:
  bool lists() const override { return true; }
  bool takes_ranges_from_end() const override { return false; }
  bool stores() const override { return true; }

  std::string server(const std::string& path) const override {
    return "az://" + bucket_and_key(path).bucket;
  }

  void prepare(bool looks) const override { azure().prepare(looks); }

  Result<HttpRequest> object(const std::string& path, const HttpCall& call) const override {
    const auto [container, blob] = bucket_and_key(path);
    return request(container, "/" + escaped(blob, "/"), "", call);
  }

  Result<HttpRequest> listing(const ListQuery& query, const HttpCall& call) const override {
    std::string text = "comp=list";
    if (!query.flat) text += "&delimiter=%2F";
    if (!query.next.empty()) text += "&marker=" + escaped(query.next);
    text += "&maxresults=" + std::to_string(kMaxListed) +
            "&prefix=" + escaped(prefix_of(query.folder)) + "&restype=container";
    return request(bucket_and_key(query.folder).bucket, "", std::move(text), call);
  }

  Result<ListPage> parse(const ListQuery& query, const FetchResult& got) const override {
    return list_page_of_azure(got.text, prefix_of(query.folder), query.flat);
  }

  bool renew(const std::string& /*path*/, const HttpResponse& response,
             std::string_view code) const override {
    return azure().renew(response.status == 401 || code == "AuthenticationFailed" ||
                         code == "InvalidAuthenticationInfo");
  }

 private:
  static Result<HttpRequest> request(const std::string& container, const std::string& blob,
                                     std::string query, const HttpCall& call) {
    auto [endpoint, region, account] = azure().settings();
    Result<Url> url = endpoint_from(std::move(endpoint));
    if (!url) {
      if (account.empty()) url.error().hint = "set AZURE_STORAGE_ACCOUNT_NAME";
      return std::move(url.error());
    }
    const auto keys = azure().keys();
    if (keys && !keys->key.empty()) account = keys->key;
    if (account.empty()) account = url->host.substr(0, url->host.find('.'));
    url->path += "/" + escaped(container) + blob;
    url->query = std::move(query);
    if (keys && !keys->query.empty()) url->query += (url->query.empty() ? "" : "&") + keys->query;
    HeaderPairs sent = {{"x-ms-date", date_text(std::time(nullptr))},
                        {"x-ms-version", kApiVersion}};
    if (call.method == "PUT") sent.emplace_back("x-ms-blob-type", "BlockBlob");
    HttpRequest out{.url = url->text()};
    if (keys && !keys->secret.empty()) {
      const std::string value = azure_authorization(account, keys->secret, *url, call, sent);
      if (value.empty()) {
        return request_error("az://" + container, "the account's key is not base64",
                             "check AZURE_STORAGE_ACCOUNT_KEY");
      }
      out.headers.push_back("Authorization: " + value);
    } else if (keys && !keys->token.empty()) {
      out.headers.push_back("Authorization: Bearer " + keys->token);
    }
    for (const auto& [name, value] : sent) out.headers.push_back(name + ": " + value);
    if (call.method == "PUT") out.headers.emplace_back("If-None-Match: *");
    return out;
  }
};

const Storage& azure_files() {
  static const BucketFiles* const files = new BucketFiles(std::make_unique<Azure>());
  return *files;
}

const StorageRecord kAzure{.name = "az",
                           .doc = "Azure Blob Storage containers.",
                           .example = "az://container/train",
                           .storage = azure_files};
const Register<StorageRecord> registered_azure(kAzure);

}  // namespace
}  // namespace headrace
