// SPDX-License-Identifier: Apache-2.0
// Shared by MixUp and CutMix: rows of a group are mixed with the previous row, labels in the same
// proportion. Use ops/batch/mix_up.cc as a template.
//
// As in torchvision, a row is mixed with the previous row of its group, the first row with the
// last; and a group has a single proportion (and box), unless each record has its own (per_record).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "headrace/kernels/batch/mix_rows.h"
#include "headrace/ops/op.h"

namespace headrace {

struct MixingOptions {
  double alpha = 1;     // parameter of the Beta distribution
  int64_t classes = 0;  // 0: each record's label is already a row
  double smoothing = 0;
  int64_t group = 0;
  bool per_record = false;
  bool uint8 = false;  // the user has requested mixing of uint8 images
};

class MixingOp : public BatchOp {
 public:
  MixingOp(std::string_view name, const MixingOptions& options) : name_(name), options_(options) {}
  bool takes(FieldKind kind) const final {
    return kind == FieldKind::kImage || kind == FieldKind::kLabel;
  }
  bool separates(FieldKind kind) const final { return takes(kind) || is_spatial(kind); }
  int64_t group() const final { return options_.group; }
  bool on_device() const final { return true; }
  std::optional<Spec> beforehand(const FieldState& field) const final;
  void plan(const FieldState& field) const final;
  Result<void> apply(GroupContext& context) const final;

 protected:
  // The weight of a row's own data.
  struct Mix {
    double own = 1;  // fraction of the label, and of the pixels if they are blended
    Window box{};    // or the box that is copied from the mixed-in sample
  };
  virtual Mix draw(Draws& draws, double alpha, Size image) const = 0;
  // The same for a device, for a picture of this size.
  virtual RowMix row_mix(const Mix& mix, Size image) const = 0;
  // `mixes`: one per row.
  virtual void mix_images(const GroupField& field, const std::vector<Mix>& mixes,
                          MemoryFormat format) const = 0;

 private:
  Result<Size> common_image_size(const GroupContext& context) const;
  const std::string_view name_;
  const MixingOptions options_;
};

// row = own * row + (1 - own) * previous row, as torch computes it for the dtype; uint8 in float32,
// rounded to the nearest.
void blend_rows(const std::vector<uint8_t*>& rows, size_t bytes, DType dtype,
                const std::vector<double>& own);

// The parameters of both transforms.
std::vector<Param> mixing_params(std::string_view what_uint8_does);
MixingOptions mixing_options(const Arguments& arguments);

}  // namespace headrace
