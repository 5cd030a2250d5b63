// SPDX-License-Identifier: Apache-2.0
// Shared by MixUp and CutMix: rows of a group are mixed with the row before them, labels in the
// same proportion. ops/batch/mix_up.cc is the one to copy.
//
// As in torchvision a row's partner is the one before it in its group, the first row's the last
// one; and as there a group has one proportion (and one box), unless each record is to have its
// own.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "headrace/kernels/batch/mix_rows.h"
#include "headrace/ops/op.h"

namespace headrace {

struct MixingOptions {
  double alpha = 1;     // of the Beta distribution
  int64_t classes = 0;  // 0: labels have a row for each record already
  double smoothing = 0;
  int64_t group = 0;
  bool per_record = false;
  bool uint8 = false;  // the user has said that images of bytes shall be mixed
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
  // The part that a row keeps of its own.
  struct Mix {
    double own = 1;  // share of the label, and of the pixels where they are blended
    Window box{};    // or what is taken from the partner
  };
  virtual Mix draw(Draws& draws, double alpha, Size image) const = 0;
  // The same for a device, of a picture of that size.
  virtual RowMix row_mix(const Mix& mix, Size image) const = 0;
  // `mixes`: one a row.
  virtual void mix_images(const GroupField& field, const std::vector<Mix>& mixes,
                          MemoryFormat format) const = 0;

 private:
  Result<Size> common_image_size(const GroupContext& context) const;
  const std::string_view name_;
  const MixingOptions options_;
};

// row = own * row + (1 - own) * the row before it, as torch computes it for the dtype; uint8 in
// float32, rounded to the nearest.
void blend_rows(const std::vector<uint8_t*>& rows, size_t bytes, DType dtype,
                const std::vector<double>& own);

// The parameters of both.
std::vector<Param> mixing_params(std::string_view what_uint8_does);
MixingOptions mixing_options(const Arguments& arguments);

}  // namespace headrace
