// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/object_list.h"

#include <charconv>
#include <string>
#include <utility>

#include "headrace/storage/remote/url.h"
#include "headrace/storage/remote/xml_reader.h"

namespace headrace {
namespace {

const ErrorCode kBadListing{
    "HR0224", ErrorKind::kStorage, "invalid listing",
    "The answer to a listing request is not a valid S3 listing (XML, list-type=2), or it is "
    "truncated. A partial listing is never used, because records would be missing silently. Check "
    "the endpoint (AWS_ENDPOINT_URL)."};

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

Error bad_listing(std::string what) {
  return {.code = &kBadListing, .what = std::move(what), .hint = "check the endpoint"};
}

// What one <Contents> or <CommonPrefixes> says.
struct Entry {
  std::string key, etag, size;
  bool is_folder = false;
};

class ListReader {
 public:
  ListReader(std::string_view body, std::string_view prefix) : reader_(body), prefix_(prefix) {}

  Result<ListPage> read() {
    for (;;) {
      switch (reader_.next()) {
        case XmlReader::Event::kBegin:
          if (depth_ == 0 && reader_.name() != "ListBucketResult") {
            return bad_listing("it begins with <" + std::string(reader_.name().substr(0, 40)) +
                               ">, not with <ListBucketResult>");
          }
          if (depth_ == 1) {
            entry_ = {};
            in_ = reader_.name();
          }
          ++depth_;
          field_ = reader_.name();
          text_.clear();
          break;
        case XmlReader::Event::kText:
          text_ += reader_.text();
          break;
        case XmlReader::Event::kEnd:
          if (depth_ == 0) return bad_listing("its elements do not match");
          --depth_;
          take();
          if (depth_ == 0) return finished();
          field_ = {};
          text_.clear();
          break;
        case XmlReader::Event::kOver:
          return bad_listing("it ends early");
        case XmlReader::Event::kDamaged:
          return bad_listing("it is no XML");
      }
    }
  }

 private:
  // The element that ends here, `depth_` elements deep.
  void take() {
    if (depth_ == 2) {
      if (in_ == "CommonPrefixes" && field_ == "Prefix") entry_.key = text_;
      if (in_ != "Contents") return;
      if (field_ == "Key") entry_.key = text_;
      if (field_ == "ETag") entry_.etag = text_;
      if (field_ == "Size") entry_.size = text_;
      return;
    }
    if (depth_ != 1) return;
    if (in_ == "Contents" || in_ == "CommonPrefixes") {
      entry_.is_folder = in_ == "CommonPrefixes";
      entries_.push_back(std::move(entry_));
    }
    if (in_ == "EncodingType") is_escaped_ = text_ == "url";
    if (in_ == "IsTruncated") is_truncated_ = text_ == "true";
    if (in_ == "NextContinuationToken") page_.next = text_;
  }

  // Keys are escaped or not, which may be said after them.
  Result<ListPage> finished() {
    if (is_truncated_ && page_.next.empty()) {
      return bad_listing("it goes on, and does not say where");
    }
    if (!is_truncated_) page_.next.clear();
    page_.has_keys = !entries_.empty();
    std::string wrong;  // the first key that is no path
    size_t wrongs = 0;
    for (Entry& entry : entries_) {
      const std::string key = is_escaped_ ? unescaped(entry.key, true) : std::move(entry.key);
      if (!key.starts_with(prefix_)) return bad_listing("it lists keys of another prefix");
      std::string name = key.substr(prefix_.size());
      if (!entry.is_folder && name.empty()) continue;  // the folder's own marker
      if (entry.is_folder && name.ends_with('/')) name.pop_back();
      if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string::npos) {
        if (wrongs++ == 0) wrong = key;
        continue;
      }
      if (name.find('/') != std::string::npos) {
        return bad_listing("it lists a key of a folder below, \"" + key + "\"");
      }
      uint64_t size = 0;
      const char* const end = entry.size.data() + entry.size.size();
      if (!entry.is_folder &&
          (std::from_chars(entry.size.data(), end, size).ptr != end || entry.size.empty())) {
        return bad_listing("a key without a size");
      }
      page_.entries.push_back({.name = std::move(name),
                               .is_folder = entry.is_folder,
                               .size = size,
                               .etag = std::move(entry.etag)});
    }
    if (wrongs > 0) return no_path(wrong, wrongs - 1);
    return std::move(page_);
  }

  XmlReader reader_;
  const std::string_view prefix_;
  ListPage page_;
  std::vector<Entry> entries_;
  Entry entry_;
  std::string_view in_, field_;
  std::string text_;
  int depth_ = 0;
  bool is_escaped_ = false, is_truncated_ = false;
};

}  // namespace

Result<void> ListedNames::take(ListPage& page) {
  std::erase_if(page.entries, [&](const RemoteEntry& entry) {
    return entry.is_folder && !folders_.insert(entry.name).second;
  });
  for (const RemoteEntry& entry : page.entries) {
    if (!entry.is_folder && !files_.insert(entry.name).second) {
      return bad_listing("it names \"" + entry.name + "\" twice");
    }
  }
  return {};
}

Result<ListPage> list_page_of_xml(std::string_view body, std::string_view prefix) {
  return ListReader(body, prefix).read();
}

}  // namespace headrace
