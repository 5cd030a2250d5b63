// SPDX-License-Identifier: Apache-2.0
// Transforms of one encoded image as a plan of their own: what an image becomes, known from its
// size, and the same done to its bytes. Immutable: any thread may use it, each with its renderer.
#pragma once

#include <memory>
#include <vector>

#include "headrace/pipeline/plan.h"
#include "headrace/sources/packed/row_images.h"
#include "headrace/sources/packed/samples.h"

namespace headrace {

class ImagePlan {
 public:
  // Throws Exception HR0141: the list has Python functions, copies, or takes other records.
  ImagePlan(const std::vector<Spec>& transforms, const PictureOptions& options);

  const FieldState& result() const { return plan_->outputs().front().state; }
  // Of each part, the rows that images become: dtype, and shape without the first axis.
  DType dtype() const;
  Shape part_shape() const;
  // Of an image with this size in its header; tokens are not known here. Errors have no code.
  Result<ImageForm> form(int64_t height, int64_t width) const;
  // Writes the image's parts, as many as it says. HR1459 where it becomes something else.
  Result<void> apply(const RowImage& image, int64_t number, uint64_t seed, Renderer& renderer,
                     uint8_t* out) const;

 private:
  std::shared_ptr<const Plan> plan_;  // shared: as make_plan() gives it
};

// Tokens of an image: `tokens`, or where that is 0 its parts divided by patches_per_token. Without
// transforms images are delivered as they are. Images with more pixels than are decoded are errors.
// Throws as ImagePlan(); HR0141, too, where neither patches nor `tokens` say how many there are.
ImageRule image_rule(const std::vector<Spec>& transforms, int64_t tokens,
                     int64_t patches_per_token);

}  // namespace headrace
