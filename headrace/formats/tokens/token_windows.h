// SPDX-License-Identifier: Apache-2.0
// Windows of a fixed number of tokens, each a record: its tokens, and as targets the tokens one
// later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/formats/tokens/token_files.h"
#include "headrace/sources/source.h"

namespace headrace {

// What becomes of tokens after the last whole window of a file.
enum class LastWindow : uint8_t {
  kDrop,     // they are left out, and counted
  kPad,      // a window that is filled up
  kOverlap,  // a window that begins earlier, so that it ends with the file
};

struct WindowOptions {
  int64_t window = 1024;  // tokens of a record
  int64_t stride = 1024;  // from the first token of a window to that of the next
  int shift = 1;          // targets are the tokens so many later, 1 or 0; -1: there are none
  LastWindow last = LastWindow::kDrop;
  int64_t pad = 0;              // the id after the last token
  int64_t ignore_index = -100;  // the target there
};

// Windows never cross from one file into the next. Throws Exception HR1443 where there is not one,
// or the dtype cannot hold `pad` or `ignore_index`. `title`: "tokens train.bin".
SourcePtr token_windows(std::shared_ptr<const TokenFiles> files, const WindowOptions& options,
                        std::string title);

}  // namespace headrace
