// SPDX-License-Identifier: Apache-2.0
// Listings in JSON: the tree of a repository of the Hugging Face Hub.
// https://huggingface.co/docs/hub/api
#include <optional>
#include <utility>

#include "headrace/base/json_reader.h"
#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/url.h"

namespace headrace {
namespace {

// {"type": "file", "path": "data/a.tar", "size": 7, "oid": "...", "lfs": {"oid": "...", ...}, ...}.
// The version of a large file is taken from its content, "lfs", not from the pointer in the
// repository.
std::optional<ListedKey> entry_from(JsonReader& json) {
  ListedKey out;
  std::optional<int64_t> size;
  std::string type, oid, large_oid;
  for (json.begin_object(); json.next_key();) {
    const std::string key(json.key());
    if (key == "type") {
      type = json.string();
    } else if (key == "path") {
      out.key = json.string();
    } else if (key == "oid") {
      oid = json.string();
    } else if (key == "size" && json.type() == JsonReader::Type::kNumber) {
      size = json.number().integer;
    } else if (key == "lfs" && json.type() == JsonReader::Type::kObject) {
      for (json.begin_object(); json.next_key();) {
        if (json.key() == "oid") {
          large_oid = json.string();
        } else {
          json.skip();
        }
      }
    } else {
      json.skip();
    }
  }
  out.is_folder = type == "directory";
  if (!out.is_folder && (!size || *size < 0)) return {};
  out.size = out.is_folder ? 0 : static_cast<uint64_t>(*size);
  const std::string& version = large_oid.empty() ? oid : large_oid;
  if (!out.is_folder && !version.empty()) out.etag = "\"" + version + "\"";
  return out;
}

// The parameter "cursor" of a URL.
std::string cursor_of(std::string_view address) {
  std::string_view query = address.substr(std::min(address.find('?'), address.size()));
  while (!query.empty()) {
    query.remove_prefix(1);  // "?", "&"
    const std::string_view pair = query.substr(0, query.find('&'));
    if (pair.starts_with("cursor=")) return unescaped(pair.substr(7), true);
    query.remove_prefix(pair.size());
  }
  return {};
}

}  // namespace

Result<ListPage> list_page_of_hub(std::string_view body, std::string_view next_page,
                                  std::string_view prefix, bool flat) {
  JsonReader json(body);
  std::vector<ListedKey> keys;
  bool has_size = true;
  for (json.begin_array(); json.next_element();) {
    std::optional<ListedKey> key = entry_from(json);
    has_size &= key.has_value();
    // Flat listings omit folders, which are derived from their files.
    if (key && !(flat && key->is_folder)) keys.push_back(std::move(*key));
  }
  json.end();
  if (!json.ok()) return bad_listing("it is not the JSON of a tree");
  if (!has_size) return bad_listing("a file without a size");
  std::string next = cursor_of(next_page);
  if (!next_page.empty() && next.empty()) {
    return bad_listing("it is continued, but without a continuation token");
  }
  return page_of_keys(std::move(keys), prefix, flat, std::move(next));
}

}  // namespace headrace
