// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/webdataset/wds_sample.h"

#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"

namespace headrace {
namespace {

constexpr size_t kMaxSets = 256, kMaxFolders = 65536;  // of one shard
constexpr size_t kMaxComponents = 256;                 // of one sample
constexpr std::string_view kSet = "set ", kFolder = "folder ", kUnknown = "other sets",
                           kUnusedIndex = "unused index ", kWithoutEnd = "without end";

}  // namespace

std::optional<WdsName> wds_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::string_view last = path.substr(begin);
  const size_t dot = last.find('.');
  if (dot == 0 || dot == std::string_view::npos) return {};
  if (begin == 0 && path.starts_with("__") && path.ends_with("__")) return {};
  return WdsName{path.substr(0, begin + dot), last.substr(dot + 1)};
}

bool same_extension(std::string_view lower, std::string_view other) {
  return lower.size() == other.size() &&
         std::equal(lower.begin(), lower.end(), other.begin(),
                    [](char a, char b) { return a == lower_case(b); });
}

void WdsTally::begin(std::string_view key) {
  const size_t slash = key.rfind('/');
  folder_.assign(key.substr(0, slash == std::string_view::npos ? 0 : slash));
  used_ = 0;
  too_many_ = false;
}

void WdsTally::add(std::string_view extension) {
  too_many_ = too_many_ || used_ == kMaxComponents;
  if (too_many_) return;
  if (used_ == extensions_.size()) extensions_.emplace_back();
  std::string& out = extensions_[used_++];
  out.assign(extension);
  for (char& c : out) c = lower_case(c);
}

void WdsTally::count(std::string_view prefix, size_t& kinds, size_t most, std::string_view name) {
  name_.assign(prefix).append(name);
  const auto found = tallies_.find(name_);
  if (found != tallies_.end()) {
    ++found->second;
  } else if (kinds < most) {
    ++kinds;
    tallies_.emplace(name_, 1);
  } else if (prefix == kSet) {
    ++tallies_[std::string(kUnknown)];
  }
}

// Sorted. If there is only one picture, audio or video, its type is its last suffix, ignoring what
// comes before.
std::string WdsTally::current_sample_name() {
  const auto first = extensions_.begin(), last = first + static_cast<std::ptrdiff_t>(used_);
  std::sort(first, last);
  used_ = static_cast<size_t>(std::unique(first, last) - first);
  if (used_ == 1) {
    const size_t dot = first->rfind('.');
    const std::string suffix = "." + first->substr(dot + 1);  // npos + 1 is 0
    if (has_media_suffix(suffix) && dot != std::string::npos) return "*" + first->substr(dot);
  }
  std::string set;
  for (size_t i = 0; i < used_; ++i) set.append(i ? "/" : "").append(extensions_[i]);
  return set;
}

bool WdsTally::is_like_the_last() { return current_sample_name() == last_set_; }

void WdsTally::end() {
  last_set_ = current_sample_name();
  if (too_many_) {
    ++tallies_[std::string(kUnknown)];
    return;
  }
  count(kSet, sets_, kMaxSets, last_set_);
  const std::string suffix = last_set_.substr(last_set_.rfind('.') + 1);
  if (used_ == 1 && has_media_suffix("." + suffix)) {
    count(kFolder, folders_, kMaxFolders, folder_);
  }
}

void count_missing_end(std::map<std::string, int64_t>& tallies) {
  ++tallies[std::string(kWithoutEnd)];
}

void count_unused_index(std::string_view why, std::map<std::string, int64_t>& tallies) {
  ++tallies[std::string(kUnusedIndex) + std::string(why)];
}

WdsCounts counts_of(const std::map<std::string, int64_t>& tallies) {
  WdsCounts out;
  for (const auto& [name, count] : tallies) {
    if (count < 0) continue;
    std::string_view rest = name;
    if (name == "links") {
      out.links = count;
    } else if (name == kWithoutEnd) {
      out.without_end = count;
    } else if (name.starts_with(kUnusedIndex)) {
      if (out.unused_indexes == 0) out.why_unused = rest.substr(kUnusedIndex.size());
      out.unused_indexes += count;
    } else if (name == kUnknown) {
      out.unknown = count;
      out.samples += count;
    } else if (name.starts_with(kFolder)) {
      out.folders[std::string(rest.substr(kFolder.size()))] = count;
      out.in_folders += count;
    } else if (name.starts_with(kSet)) {
      rest.remove_prefix(kSet.size());
      WdsCounts::Set& set = out.sets.emplace_back();
      set.samples = count;
      out.samples += count;
      for (;;) {
        const size_t slash = rest.find('/');
        set.extensions.emplace_back(rest.substr(0, slash));
        if (slash == std::string_view::npos) break;
        rest.remove_prefix(slash + 1);
      }
      std::sort(set.extensions.begin(), set.extensions.end());
    }
  }
  return out;
}

}  // namespace headrace
