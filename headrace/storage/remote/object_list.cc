// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/object_list.h"

#include <string>
#include <utility>

#include "headrace/storage/remote/url.h"

namespace headrace {
namespace {

const ErrorCode kBadListing{
    "HR0224", ErrorKind::kStorage, "invalid listing",
    "The response to a listing request does not have its cloud's format (XML of S3, Google or "
    "Azure, JSON of the Hugging Face Hub), or is truncated. A partial listing is never used, "
    "because records would be missing silently. Check the endpoint (AWS_ENDPOINT_URL)."};

const ErrorCode kNoPath{
    "HR0227", ErrorKind::kStorage, "object key is not a valid path",
    "A bucket may contain keys such as a//b, a/./b and a/../b, which are different or ambiguous "
    "as paths. A folder that contains one is not opened, because its records would be missing "
    "silently. Rename or delete the object, or move it to another folder."};

Error no_path(const std::string& key, size_t others) {
  std::string what = "\"" + key + "\" has a part that is empty, \".\" or \"..\", or a NUL";
  if (others > 0) what += "; so have " + std::to_string(others) + " more";
  return {.code = &kNoPath, .what = std::move(what), .hint = "rename or delete the object"};
}

bool is_path(std::string_view name) {
  if (name.find('\0') != std::string_view::npos) return false;
  for (;;) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

}  // namespace

Error bad_listing(std::string what) {
  return {.code = &kBadListing, .what = std::move(what), .hint = "check the endpoint"};
}

std::string prefix_of(const std::string& folder) {
  std::string key = bucket_and_key(folder).key;
  return key.empty() ? key : key + "/";
}

Result<ListPage> page_of_keys(std::vector<ListedKey> keys, std::string_view prefix, bool flat,
                              std::string next) {
  ListPage page{.entries = {}, .has_keys = !keys.empty(), .next = std::move(next)};
  page.entries.reserve(keys.size());
  std::string wrong;  // the first key that is not a path
  size_t wrongs = 0;
  for (ListedKey& listed : keys) {
    if (!listed.key.starts_with(prefix)) return bad_listing("it lists keys of another prefix");
    std::string name = listed.key.substr(prefix.size());
    if (!listed.is_folder && name.empty()) continue;  // the key of the folder itself
    const bool is_marker = flat && name.ends_with('/');
    if ((listed.is_folder || is_marker) && name.ends_with('/')) name.pop_back();
    if (!flat && name.find('/') != std::string::npos && is_path(name)) {
      return bad_listing("it lists a key of a folder below, \"" + listed.key + "\"");
    }
    if (!is_path(name)) {
      if (wrongs++ == 0) wrong = std::move(listed.key);
      continue;
    }
    page.entries.push_back({.name = std::move(name),
                            .is_folder = listed.is_folder || is_marker,
                            .size = listed.size,
                            .etag = std::move(listed.etag)});
  }
  if (wrongs > 0) return no_path(wrong, wrongs - 1);
  return page;
}

}  // namespace headrace
