// SPDX-License-Identifier: Apache-2.0
// Paths of any storage, as text: the part up to "://" is kept unchanged. These functions do not
// access files. (joined() in base/text.h concatenates two paths.)
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// The path without ".", without ".." where it can be resolved, and without "//".
std::string normal_path(std::string_view path);
// The same, as an absolute path: a local path relative to the process's folder.
std::string absolute_path(std::string_view path);
// Whether it is a URL (http or https): it may have a query ("?..."), and its folders cannot be
// listed.
bool is_web_path(std::string_view path);
// The permanent name of a file, for caches: without a URL's user and signature, which differ each
// time it is signed, and with a hash of the rest of its query.
std::string stable_path(std::string_view path);
bool is_relative_path(std::string_view path);
// The part before the last "/"; empty if there is none.
std::string parent_path(std::string_view path);
// The part after the last "/", and the same without its last suffix.
std::string_view last_name(std::string_view path);
std::string_view stem_of(std::string_view path);
// The current folder of the process, against which relative local paths are resolved.
std::string current_folder();

}  // namespace headrace
