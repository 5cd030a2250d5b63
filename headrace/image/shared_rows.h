// SPDX-License-Identifier: Apache-2.0
// Rows of one decoded window for several who want parts of it: views of a picture that share its
// decode. Each gets what it would have got from a decode of its own. Used by one thread.
#pragma once

#include <vector>

#include "headrace/codecs/codec.h"

namespace headrace {

class SharedRows final : public RowSink {
 public:
  // For the rows of `window`, of which nobody wants any yet.
  void begin(const Window& window);
  // REQUIRES: `part` lies inside the window, in the same coordinates; the sink outlives the decode.
  void add(RowSink& sink, const Window& part);
  void rows(const RowBlock& block) override;

 private:
  struct Part {
    RowSink* sink;
    Window part;
  };
  Window window_;
  std::vector<Part> parts_;
};

}  // namespace headrace
