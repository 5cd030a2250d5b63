// SPDX-License-Identifier: Apache-2.0
// How the names of members form samples, as in WebDataset: the key is the path up to the first dot
// of its last part, the extension is the rest; consecutive members with the same key are one
// sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

struct WdsName {
  std::string_view key, extension;  // "a/b.seg.PNG" -> "a/b", "seg.PNG"
};

// None for names without a dot, hidden files, and WebDataset's own metadata ("__x__").
std::optional<WdsName> wds_name(std::string_view path);

// Extensions are case-insensitive.
bool same_extension(std::string_view lower, std::string_view other);

// A scan's sample statistics, in an index's tallies: the sets of extensions that occur, and the
// folders of samples that are a single picture.
class WdsTally {
 public:
  explicit WdsTally(std::map<std::string, int64_t>& tallies) : tallies_(tallies) {}

  void begin(std::string_view key);
  void add(std::string_view extension);
  // Ends a sample; one with too many components is only counted as such.
  void end();
  // Whether the current sample so far has the components of the previous one.
  bool is_like_the_last();
  void count_link() { ++tallies_["links"]; }

 private:
  std::string set_at_hand();
  void count(std::string_view prefix, size_t& kinds, size_t most, std::string_view name);

  std::map<std::string, int64_t>& tallies_;
  std::string folder_;
  std::vector<std::string> extensions_;
  size_t used_ = 0;  // number of used extensions_, whose strings are reused
  bool too_many_ = false;
  std::string name_, last_set_;
  size_t sets_ = 0, folders_ = 0;
};

// The tallies of a whole scan.
struct WdsCounts {
  struct Set {
    std::vector<std::string> extensions;  // sorted; "*.jpg" for one picture of whatever name
    int64_t samples = 0;
    bool has(std::string_view extension) const {
      return std::binary_search(extensions.begin(), extensions.end(), extension);
    }
  };
  std::vector<Set> sets;
  int64_t samples = 0, unknown = 0;  // unknown: too many different sets
  int64_t links = 0;
  int64_t without_end = 0;  // number of archives
  int64_t unused_indexes = 0;
  std::string why_unused;                  // the first of them
  std::map<std::string, int64_t> folders;  // samples that are a single picture
  int64_t in_folders = 0;                  // samples counted in `folders`
};
// An archive without the zeros at its end: it may have been truncated between two members.
void count_without_end(std::map<std::string, int64_t>& tallies);
// An index of one shard that was not used.
void count_unused_index(std::string_view why, std::map<std::string, int64_t>& tallies);
WdsCounts counts_of(const std::map<std::string, int64_t>& tallies);

}  // namespace headrace
