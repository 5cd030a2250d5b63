// SPDX-License-Identifier: Apache-2.0
// The file of quarantine=: several processes may append lines to it, each of which is complete or
// absent.
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
  // Returns 0, or the errno for which the line is not in the file, such as a full disk. Allocates
  // nothing.
  int append(std::string_view line) const noexcept;

 private:
  const std::string path_;
};

}  // namespace headrace
