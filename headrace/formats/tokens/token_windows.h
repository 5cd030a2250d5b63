// SPDX-License-Identifier: Apache-2.0
// The source of windows with a fixed number of tokens: a record has the tokens, and as targets the
// tokens shifted by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/formats/tokens/token_files.h"
#include "headrace/sources/source.h"

namespace headrace {

// What to do with the tokens after the last whole window of a file.
enum class LastWindow : uint8_t {
  kDrop,     // leave them out, and count them
  kPad,      // add a window, padded to the full length
  kOverlap,  // add a window that begins earlier, so that it ends with the file
};

struct WindowOptions {
  int64_t window = 1024;  // tokens per record
  int64_t stride = 1024;  // distance between the starts of consecutive windows
  int shift = 1;          // distance from a token to its target, 1 or 0; -1: no targets
  LastWindow last = LastWindow::kDrop;
  int64_t pad = 0;              // the token id in padding
  int64_t ignore_index = -100;  // the target in padding
};

// Windows never cross file boundaries. Throws Exception HR1443 if there is no window, or the dtype
// cannot hold `pad` or `ignore_index`. `title`: "tokens train.bin".
SourcePtr token_windows(std::shared_ptr<const TokenFiles> files, const WindowOptions& options,
                        std::string title);

}  // namespace headrace
