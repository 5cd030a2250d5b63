// SPDX-License-Identifier: Apache-2.0
// Paths as text, of any storage: the part before "://" is kept, and "//" there is no separator.
// None of these looks at a file. (joined() of base/text.h puts two together.)
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Without "." and "..", as far as these can be resolved, and without "//".
std::string normal_path(std::string_view path);
// The same, as an absolute path: a local path relative to the process's folder.
std::string absolute_path(std::string_view path);
// An address of a web server: it may have a query ("?..."), and its folders cannot be listed.
bool is_web_path(std::string_view path);
// The permanent name of a file, for caches: without an address's user and signature, which differ
// each time it is signed, and with a hash of the rest of its query.
std::string lasting_path(std::string_view path);
bool is_relative_path(std::string_view path);
// The part before the last "/": empty without one.
std::string parent_path(std::string_view path);
// The part after it, and the same without its last suffix.
std::string_view last_name(std::string_view path);
std::string_view stem_of(std::string_view path);
// The current folder of the process, to which local paths are relative.
std::string current_folder();

}  // namespace headrace
