// SPDX-License-Identifier: Apache-2.0
// One picture's way from its decoder into its pass: the adapters between the two, and their memory.
#pragma once

#include <cstddef>

#include "headrace/image/fused_pass.h"
#include "headrace/image/render_task.h"
#include "headrace/image/row_sinks.h"
#include "headrace/image/wide_pass.h"

namespace headrace {

// The part of the stored picture that holds `needed` of the oriented window.
Window stored_part(const Window& window, const Window& needed, bool transpose);

// Cost of decoding a window, in fully decoded pixels: rows above it are entropy-decoded too, if its
// codec cannot begin below them; that is half of the work.
double decode_cost(const EncodedPicture& source, const Window& window);

struct RenderLane {
  FusedPass pass;
  FramedRows frame;  // where the picture is resized with a border
  bool framed = false;
  WindowBuffer window;  // where the axes are swapped
  bool transposed = false;
  WideRows wide;  // where samples are no bytes
  WidePass wide_pass;
  bool is_wide = false;
  OpaqueRows opaque;  // where alpha is wanted, and the codec has none
  bool lacks_alpha = false;
  RenderTask* task = nullptr;
  PassJob job;
  Window part;  // of the stored picture
  double cost = 0;

  // Prepares for its source to be decoded, `part` of it; false if no pixel of it is needed: then
  // all is done.
  bool begin(RenderTask& its_task, const PassJob& its_job);
  // Prepares for rows of pixels. Returns the part of the oriented window whose rows upright() must
  // get; may be empty.
  Window begin_rows(const Recipe& recipe, const PassJob& its_job);
  RowSink& upright() { return framed ? static_cast<RowSink&>(frame) : pass; }
  RowSink& sink() {
    RowSink& rows = is_wide      ? static_cast<RowSink&>(wide)
                    : transposed ? static_cast<RowSink&>(window)
                                 : upright();
    if (!lacks_alpha) return rows;
    opaque.begin(rows);
    return opaque;
  }
  size_t held_bytes() const {
    return pass.held_bytes() + frame.held_bytes() + window.held_bytes() + wide.held_bytes() +
           wide_pass.held_bytes() + opaque.held_bytes();
  }
  void free() {
    pass.free();
    frame.free();
    window.free();
    wide.free();
    wide_pass.free();
    opaque.free();
  }
  void finish() {
    if (framed) frame.finish();
  }
};

}  // namespace headrace
