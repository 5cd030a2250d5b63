// SPDX-License-Identifier: Apache-2.0
// Repositories of the Hugging Face Hub: hf://datasets/OWNER/NAME[@REVISION]/PATH; models are
// hf://OWNER/NAME. The Hub redirects to another host for large files; that URL is reused until it
// is rejected, because the Hub limits the number of requests. https://huggingface.co/docs/hub/api
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/per_process.h"
#include "headrace/base/registry.h"
#include "headrace/storage/remote/cloud.h"
#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/remote_files.h"
#include "headrace/storage/remote/url.h"

namespace headrace {
namespace {

constexpr size_t kMaxRedirected = 4096;  // redirects

std::optional<SigningKeys> hub_keys() {
  SigningKeys keys{.token = variable_of({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})};
  if (keys.token.empty()) return {};
  return keys;
}

struct Redirected {
  std::string url, version;
};

CloudSettings hub_settings() { return {.endpoint = variable_of({"HF_ENDPOINT"})}; }

struct HubState : CloudState {
  HubState() : CloudState("hf", hub_settings, hub_keys) {}
  Mutex mutex;
  std::map<std::string, Redirected> kept GUARDED_BY(mutex);  // by the URL that redirects
};

HubState& hub() { return of_this_process<HubState>(); }

struct RepoFile {
  std::string kind = "models";  // or "datasets", "spaces"
  std::string name = {};        // "owner/name"
  std::string revision = {};    // unescaped
  std::string file = {};        // path in the repository; empty: its root
};

// Removes and returns the first part of a path.
std::string take_part(std::string_view& path) {
  const size_t slash = std::min(path.find('/'), path.size());
  std::string out(path.substr(0, slash));
  path.remove_prefix(std::min(slash + 1, path.size()));
  return out;
}

RepoFile repo_file(std::string_view path) {
  path.remove_prefix(std::string_view("hf://").size());
  RepoFile out;
  for (const std::string_view kind : {"datasets", "spaces", "models"}) {
    if (!path.starts_with(std::string(kind) + "/")) continue;
    out.kind = kind;
    path.remove_prefix(kind.size() + 1);
    break;
  }
  const std::string owner = take_part(path);
  std::string name = take_part(path);
  if (const size_t at = name.find('@'); at != std::string::npos) {
    out.revision = name.substr(at + 1);
    name.resize(at);
    if (out.revision == "refs") {  // refs/pr/7, refs/convert/parquet
      for (int i = 0; i < 2; ++i) out.revision += "/" + take_part(path);
    }
    out.revision = unescaped(out.revision);
  }
  if (out.revision.empty()) out.revision = "main";
  out.name = owner + "/" + name;
  out.file = path;
  return out;
}

class Hub final : public Cloud {
 public:
  bool lists() const override { return true; }
  bool is_root(const std::string& path) const override { return repo_file(path).file.empty(); }

  std::string server(const std::string& path) const override {
    const RepoFile repo = repo_file(path);
    return "hf://" + repo.kind + "/" + repo.name;
  }

  void prepare(bool looks) const override { hub().prepare(looks); }

  Result<HttpRequest> object(const std::string& path, const HttpCall& /*call*/) const override {
    Result<HttpRequest> out = resolving(path);
    if (!out) return out;
    MutexLock lock(hub().mutex);
    const auto found = hub().kept.find(out->url);
    if (found == hub().kept.end()) return out;
    return HttpRequest{.url = found->second.url,
                       .version = found->second.version,
                       .asks_version = false,
                       .any_host = true};
  }

  Result<HttpRequest> listing(const ListQuery& query, const HttpCall& /*call*/) const override {
    const RepoFile repo = repo_file(query.folder);
    std::string path =
        "/api/" + repo.kind + "/" + escaped(repo.name, "/") + "/tree/" + escaped(repo.revision);
    if (!repo.file.empty()) path += "/" + escaped(repo.file, "/");
    // The Hub determines the page size.
    std::string text = std::string("expand=false&recursive=") + (query.flat ? "true" : "false");
    if (!query.next.empty()) text += "&cursor=" + escaped(query.next);
    return request(path, std::move(text));
  }

  Result<ListPage> parse(const ListQuery& query, const FetchResult& got) const override {
    const std::string file = repo_file(query.folder).file;
    return list_page_of_hub(got.text, got.next_page, file.empty() ? file : file + "/", query.flat);
  }

  // Called if the stored URL or the token may have expired.
  bool renew(const std::string& path, const HttpResponse& response,
             std::string_view /*code*/) const override {
    if (const Result<HttpRequest> asked = resolving(path)) {
      MutexLock lock(hub().mutex);
      if (hub().kept.erase(asked->url) > 0) return true;
    }
    return hub().renew(response.status == 401);
  }

  std::string redirected(const std::string& path, const HttpResponse& response,
                         const std::string& to) const override {
    if (response.linked_etag.empty()) return {};
    HttpResponse linked;
    linked.etag = response.linked_etag;
    if (const Result<HttpRequest> asked = resolving(path)) {
      MutexLock lock(hub().mutex);
      if (hub().kept.size() >= kMaxRedirected) hub().kept.clear();
      hub().kept[asked->url] = {.url = to, .version = linked.version()};
    }
    return linked.version();
  }

 private:
  static Result<HttpRequest> resolving(const std::string& path) {
    const RepoFile repo = repo_file(path);
    const std::string kind = repo.kind == "models" ? "" : "/" + repo.kind;
    return request(kind + "/" + escaped(repo.name, "/") + "/resolve/" + escaped(repo.revision) +
                       "/" + escaped(repo.file, "/"),
                   "");
  }

  static Result<HttpRequest> request(const std::string& path, std::string query) {
    std::string endpoint = hub().settings().endpoint;
    if (endpoint.empty()) endpoint = "https://huggingface.co";
    Result<Url> url = endpoint_from(std::move(endpoint));
    if (!url) return std::move(url.error());
    url->path += path;
    url->query = std::move(query);
    HttpRequest out{.url = url->text(), .asks_version = false, .any_host = true};
    const auto keys = hub().keys();
    if (keys && !keys->token.empty()) {
      out.headers.push_back("Authorization: Bearer " + keys->token);
    }
    return out;
  }
};

const Storage& hub_files() {
  static const BucketFiles* const files = new BucketFiles(std::make_unique<Hub>());
  return *files;
}

const StorageRecord kHub{.name = "hf",
                         .doc = "Hugging Face Hub repositories.",
                         .example = "hf://datasets/owner/name/data",
                         .storage = hub_files};
const Register<StorageRecord> registered_hub(kHub);

}  // namespace
}  // namespace headrace
