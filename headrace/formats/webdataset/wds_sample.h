// SPDX-License-Identifier: Apache-2.0
// Groups members into samples by their names, as in WebDataset: the key is the path up to the first
// dot of its last component, the extension is the rest; consecutive members with the same key are
// one sample.
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

// Empty for names without a dot, hidden files, and WebDataset's metadata ("__x__").
std::optional<WdsName> wds_name(std::string_view path);

// Extensions are case-insensitive.
bool same_extension(std::string_view lower, std::string_view other);

// Counts samples during a scan, in an index's tallies: the sets of extensions that occur, and the
// folders of samples that are a single image.
class WdsTally {
 public:
  explicit WdsTally(std::map<std::string, int64_t>& tallies) : tallies_(tallies) {}

  void begin(std::string_view key);
  void add(std::string_view extension);
  // Ends a sample. A sample with too many components is only counted as such.
  void end();
  // Whether the current sample has the same components as the previous one, so far.
  bool is_like_the_last();
  void count_link() { ++tallies_["links"]; }

 private:
  std::string current_sample_name();
  void count(std::string_view prefix, size_t& kinds, size_t most, std::string_view name);

  std::map<std::string, int64_t>& tallies_;
  std::string folder_;
  std::vector<std::string> extensions_;
  size_t used_ = 0;  // how many of extensions_ are in use; the strings are reused
  bool too_many_ = false;
  std::string name_, last_set_;
  size_t sets_ = 0, folders_ = 0;
};

// The tallies of a whole scan.
struct WdsCounts {
  struct Set {
    std::vector<std::string> extensions;  // sorted; "*.jpg" for a single image of any name
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
  std::string why_unused;                  // the reason for the first
  std::map<std::string, int64_t> folders;  // number of single-image samples
  int64_t in_folders = 0;                  // samples counted in `folders`
};
// Counts an archive without zero blocks at its end: it may have been truncated between two members.
void count_missing_end(std::map<std::string, int64_t>& tallies);
// Counts an index of a shard that was not used.
void count_unused_index(std::string_view why, std::map<std::string, int64_t>& tallies);
WdsCounts counts_of(const std::map<std::string, int64_t>& tallies);

}  // namespace headrace
