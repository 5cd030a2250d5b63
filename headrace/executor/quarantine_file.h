// SPDX-License-Identifier: Apache-2.0
// The file of quarantine=: lines that several processes may append to, each whole or not there.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

class QuarantineFile {
 public:
  // `path` empty: no file. Throws Exception HR0730 when it cannot be written.
  explicit QuarantineFile(std::string path);

  explicit operator bool() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  // Returns 0, or the errno why the line is not in the file: a disk that is full, above all.
  // Allocates nothing.
  int append(std::string_view line) const noexcept;

 private:
  const std::string path_;
};

}  // namespace headrace
