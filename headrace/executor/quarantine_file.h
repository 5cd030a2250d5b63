// SPDX-License-Identifier: Apache-2.0
// The file given by quarantine=. Several processes may append to it; a line is written completely
// or not at all.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

class QuarantineFile {
 public:
  // `path` empty: no file. Throws Exception HR0730 if it cannot be written.
  explicit QuarantineFile(std::string path);

  explicit operator bool() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  // Appends a line. Returns 0, or the errno if the line could not be written, such as ENOSPC.
  // Allocates nothing.
  int append(std::string_view line) const noexcept;

 private:
  const std::string path_;
};

}  // namespace headrace
