// SPDX-License-Identifier: Apache-2.0
// Rows of three colours -> rows with an alpha channel of 255, for what decodes none.
#pragma once

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"

namespace headrace {

class OpaqueRows final : public RowSink {
 public:
  void begin(RowSink& to) { to_ = &to; }
  void rows(const RowBlock& block) override;

  size_t held_bytes() const { return opaque_.capacity(); }
  void free() { opaque_.free(); }

 private:
  RowSink* to_ = nullptr;
  Buffer opaque_;  // laid out as a block's channels are
};

}  // namespace headrace
