// SPDX-License-Identifier: Apache-2.0
// Transforms of one encoded image as a separate plan: computes the form of the result from the
// image's size, and applies the transforms to its bytes. Immutable: any thread may use it, with its
// own renderer.
#pragma once

#include <memory>
#include <vector>

#include "headrace/pipeline/plan.h"
#include "headrace/sources/packed/row_images.h"
#include "headrace/sources/packed/samples.h"

namespace headrace {

class ImagePlan {
 public:
  // Throws Exception HR0141 if the list has Python functions, copies (Fork), or transforms that
  // take other records.
  ImagePlan(const std::vector<Spec>& transforms, const PictureOptions& options);

  const FieldState& result() const { return plan_->outputs().front().state; }
  // The dtype and shape of a part: a patch, or the whole image if it is not divided into patches.
  DType dtype() const;
  Shape part_shape() const;
  // The form of an image with this size in its header, without its tokens. Errors have no code.
  Result<ImageForm> form(int64_t height, int64_t width) const;
  // Writes the image's parts. HR1459 if the result differs in form from what `image` declares.
  Result<void> apply(const RowImage& image, int64_t number, uint64_t seed, Renderer& renderer,
                     uint8_t* out) const;

 private:
  std::shared_ptr<const Plan> plan_;  // shared: as returned by make_plan()
};

// An image has `tokens` tokens, or, if that is 0, its number of parts divided by patches_per_token.
// Without transforms, images are delivered unchanged. Images with too many pixels to be decoded are
// errors. Throws like ImagePlan(); also HR0141 if neither patches nor `tokens` determine the number
// of tokens.
ImageRule image_rule(const std::vector<Spec>& transforms, int64_t tokens,
                     int64_t patches_per_token);

}  // namespace headrace
