// SPDX-License-Identifier: Apache-2.0
// Connects the decoder of one picture to its pass: the adapters between the two, and their memory.
#pragma once

#include <cstddef>

#include "headrace/image/fused_pass.h"
#include "headrace/image/render_task.h"
#include "headrace/image/row_sinks.h"
#include "headrace/image/wide_pass.h"

namespace headrace {

// The part of the stored picture that corresponds to `needed`, a part of the oriented window.
Window stored_part(const Window& window, const Window& needed, bool transpose);

// Cost of decoding a window, in units of one decoded pixel. Rows above the window count half if the
// codec cannot skip them, because they are only entropy-decoded.
double decode_cost(const EncodedImage& source, const Window& window);

struct RenderLane {
  FusedPass pass;
  FramedRows frame;  // used if the picture is resized with a border
  bool framed = false;
  WindowBuffer window;  // used if the axes are swapped
  bool transposed = false;
  WideRows wide;  // used if samples are wider than bytes
  WidePass wide_pass;
  bool is_wide = false;
  OpaqueRows opaque;  // used if alpha is requested, and the codec has none
  bool lacks_alpha = false;
  RenderTask* task = nullptr;
  PassJob job;
  Window part;  // of the stored picture
  double cost = 0;

  // Prepares to receive the decoded source, of which `part` is needed. Returns false if no pixel is
  // needed; the task is then finished.
  bool begin(RenderTask& its_task, const PassJob& its_job);
  // Prepares to receive pixel rows. Returns the part of the oriented window whose rows must be
  // passed to upright(); may be empty.
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
