// SPDX-License-Identifier: Apache-2.0
// A plug-in's shared library, opened and closed by the dynamic linker. Callable from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/plugin.h"

namespace headrace {

struct CloseLibrary {
  void operator()(void* handle) const;
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

// `table` is valid while the library is open; release `handle` to keep it open for the life of the
// process.
struct OpenedLibrary {
  LibraryHandle handle;
  const headrace_plugin* table;
};

// The file is checked before it is passed to the dynamic linker, which would map missing pages of a
// truncated file. Throws HR0570 if it cannot be loaded, HR0571 for another version of the
// interface.
OpenedLibrary open_library(const std::string& path, std::span<const uint8_t> file);

// Whether this process has a library from this path, which it would then get instead of a newer
// file. Closing does not remove each: C++ libraries with unique symbols (STB_GNU_UNIQUE) stay, and
// so do those that are linked with -z nodelete.
bool is_in_process(const std::string& path);

}  // namespace headrace
