// SPDX-License-Identifier: Apache-2.0
// Listings in XML: S3's and Google's, and Azure's.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
// https://cloud.google.com/storage/docs/xml-api/get-bucket-list
// https://learn.microsoft.com/rest/api/storageservices/list-blobs
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/url.h"
#include "headrace/storage/remote/xml_reader.h"

namespace headrace {
namespace {

struct Element {
  std::string_view name, attributes;
};

// Calls `ended` at the end of each element, with its ancestors below the root, and the text since
// the last start or end tag.
Result<void> read_elements(
    std::string_view body, std::string_view root,
    const std::function<void(const std::vector<Element>&, std::string& text)>& ended) {
  XmlReader reader(body);
  std::vector<Element> open;
  bool has_root = false;
  std::string text;
  for (;;) {
    switch (reader.next()) {
      case XmlReader::Event::kBegin:
        if (has_root) {
          open.push_back({reader.name(), reader.attributes()});
        } else if (reader.name() != root) {
          return bad_listing("it begins with <" + std::string(reader.name().substr(0, 40)) +
                             ">, not with <" + std::string(root) + ">");
        }
        has_root = true;
        text.clear();
        break;
      case XmlReader::Event::kText:
        text += reader.text();
        break;
      case XmlReader::Event::kEnd:
        if (!has_root) return bad_listing("its elements do not match");
        if (open.empty()) return {};
        ended(open, text);
        open.pop_back();
        text.clear();
        break;
      case XmlReader::Event::kOver:
        return bad_listing("it ends early");
      case XmlReader::Event::kDamaged:
        return bad_listing("it is not XML");
    }
  }
}

// An entry, from its elements.
struct Entry {
  std::string key, etag, size;
  bool is_folder = false;
};

std::optional<ListedKey> key_from(Entry& entry) {
  uint64_t size = 0;
  const char* const end = entry.size.data() + entry.size.size();
  if (!entry.is_folder &&
      (entry.size.empty() || std::from_chars(entry.size.data(), end, size).ptr != end)) {
    return {};
  }
  return ListedKey{.key = std::move(entry.key),
                   .etag = std::move(entry.etag),
                   .size = size,
                   .is_folder = entry.is_folder};
}

Result<ListPage> page_of_entries(std::vector<Entry> entries, std::string_view prefix, bool flat,
                                 std::string next) {
  std::vector<ListedKey> keys;
  keys.reserve(entries.size());
  for (Entry& entry : entries) {
    std::optional<ListedKey> key = key_from(entry);
    if (!key) return bad_listing("a key without a size");
    keys.push_back(std::move(*key));
  }
  return page_of_keys(std::move(keys), prefix, flat, std::move(next));
}

}  // namespace

std::string list_query_of_xml(const ListQuery& query) {
  std::string out = query.next.empty() ? "" : "continuation-token=" + escaped(query.next) + "&";
  if (!query.flat) out += "delimiter=%2F&";
  const std::string prefix = prefix_of(query.folder);
  out += "encoding-type=url&list-type=2&max-keys=" + std::to_string(kMaxListed) +
         "&prefix=" + escaped(prefix);
  const bool begins = query.next.empty() && !query.after.empty();
  return begins ? out + "&start-after=" + escaped(prefix + query.after) : out;
}

Result<ListPage> list_page_of_xml(std::string_view body, std::string_view prefix, bool flat) {
  std::vector<Entry> entries;
  Entry entry;
  std::string next;
  bool is_escaped = false, is_truncated = false;
  const auto take = [&](const std::vector<Element>& open, std::string& text) {
    const std::string_view in = open.front().name, name = open.back().name;
    if (open.size() == 2) {
      if (in == "CommonPrefixes" && name == "Prefix") entry.key = std::move(text);
      if (in != "Contents") return;
      if (name == "Key") entry.key = std::move(text);
      if (name == "ETag") entry.etag = std::move(text);
      if (name == "Size") entry.size = std::move(text);
      return;
    }
    if (open.size() != 1) return;
    if (in == "Contents" || in == "CommonPrefixes") {
      entry.is_folder = in == "CommonPrefixes";
      entries.push_back(std::exchange(entry, {}));
    }
    if (in == "EncodingType") is_escaped = text == "url";
    if (in == "IsTruncated") is_truncated = text == "true";
    if (in == "NextContinuationToken") next = std::move(text);
  };
  if (Result<void> read = read_elements(body, "ListBucketResult", take); !read) {
    return std::move(read.error());
  }
  if (is_truncated && next.empty())
    return bad_listing("it is continued, but without a continuation token");
  if (!is_truncated) next.clear();
  // The element that states whether keys are escaped may follow the keys.
  if (is_escaped) {
    for (Entry& each : entries) each.key = unescaped(each.key, true);
  }
  return page_of_entries(std::move(entries), prefix, flat, std::move(next));
}

Result<ListPage> list_page_of_azure(std::string_view body, std::string_view prefix, bool flat) {
  std::vector<Entry> entries;
  Entry entry;
  std::string next;
  bool is_complete = false;
  const auto take = [&](const std::vector<Element>& open, std::string& text) {
    const std::string_view name = open.back().name;
    if (open.size() == 1 && name == "NextMarker") {
      next = std::move(text);
      is_complete = true;
    }
    if (open.size() < 2 || open[0].name != "Blobs") return;
    const bool is_blob = open[1].name == "Blob";
    if (open.size() == 2 && (is_blob || name == "BlobPrefix")) {
      entry.is_folder |= !is_blob;
      entries.push_back(std::exchange(entry, {}));
    }
    if (open.size() == 3 && name == "Name") {
      // Names that XML cannot represent are escaped.
      const bool is_escaped = open[2].attributes.find("Encoded=\"true\"") != std::string_view::npos;
      entry.key = is_escaped ? unescaped(text) : std::move(text);
    }
    if (open.size() != 4 || !is_blob || open[2].name != "Properties") return;
    if (name == "Content-Length") entry.size = std::move(text);
    if (name == "Etag") entry.etag = text.starts_with('"') ? text : "\"" + text + "\"";
    // A folder of an account with a hierarchical namespace.
    if (name == "ResourceType") entry.is_folder = text == "directory";
  };
  if (Result<void> read = read_elements(body, "EnumerationResults", take); !read) {
    return std::move(read.error());
  }
  if (!is_complete) return bad_listing("it does not say whether it is continued (NextMarker)");
  return page_of_entries(std::move(entries), prefix, flat, std::move(next));
}

}  // namespace headrace
