// SPDX-License-Identifier: Apache-2.0
// The input of packing: one source, or several concatenated, with keys that can become file names.
//
// Const members may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

class PackInput {
 public:
  // Throws Exception HR0449: no source, or incompatible fields or classes.
  explicit PackInput(std::vector<SourcePtr> sources);

  int64_t size() const { return begins_.back(); }
  const Schema& schema() const { return sources_.front()->schema(); }
  // Classes of all sources: the same list, or sorted lists merged.
  const std::vector<std::string>& classes() const { return classes_; }
  uint64_t fingerprint() const;
  // Whether reading takes the GIL, so that threads would only wait for each other.
  bool reads_in_python() const;

  // One record with all fields; labels are indices into classes().
  void read(int64_t index, RecordData& out) const;
  // The file's path relative to the common folder, or the source's key.
  std::string key(int64_t index) const;
  bool keys_are_paths() const { return keys_are_paths_; }

 private:
  size_t source_of(int64_t index) const;
  void join_classes();
  void find_root();

  std::vector<SourcePtr> sources_;
  std::vector<int64_t> begins_;  // first record of each source, and the end
  std::vector<std::string> classes_;
  std::vector<std::vector<int64_t>> labels_;  // of each source: its label -> ours; empty: equal
  int label_field_ = -1;
  bool keys_are_paths_ = false;
  struct Folder {
    std::string given;  // prefix of the source's keys
    std::string below;  // the same, relative to root_
  };
  std::vector<Folder> folders_;  // of each source, if keys are paths
  std::string root_;             // absolute; ends in '/'
};

}  // namespace headrace
