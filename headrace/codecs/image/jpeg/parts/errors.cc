// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/parts/errors.h"

#include <string>

namespace headrace {
namespace {

const ErrorCode kForeignParts{
    "HR0325", ErrorKind::kData, "parts do not form a JPEG",
    "The original JPEG file cannot be restored: its coefficients and the rest of the file, which "
    "are stored separately, do not belong together or are damaged. The images may still decode. "
    "Pack the files again from their originals."};

const ErrorCode kNotTakenApart{
    "HR0326", ErrorKind::kUnsupported, "JPEG cannot be split into parts",
    "The file is stored unchanged: it is damaged, of a rare type, or encoded in a way that cannot "
    "be reproduced byte for byte from its coefficients. Nothing is lost; it only decodes no "
    "faster than before."};

}  // namespace

Error not_taken_apart(std::string_view reason) {
  return Error{.code = &kNotTakenApart, .what = std::string(reason)};
}

Error foreign_parts(std::string_view what) {
  return Error{.code = &kForeignParts, .what = std::string(what)};
}

bool lay_out_parts(const JpegParts& parts, JpegFrame& frame) {
  frame = parts.frame;
  if (!lay_out(frame) || parts.planes.size() != size_t(frame.count)) return false;
  for (int c = 0; c < frame.count; ++c) {
    const CoefficientPlane& plane = parts.planes[c];
    if (plane.blocks_wide != frame.component[c].blocks_wide ||
        plane.blocks_high != frame.component[c].blocks_high ||
        plane.coefficients.size() != block_count(plane) * 64) {
      return false;
    }
  }
  return true;
}

}  // namespace headrace
