// SPDX-License-Identifier: Apache-2.0
// ToDtype: converts to another element type, optionally scaling values to its range.
#include "headrace/base/registry.h"
#include "headrace/fields/audio.h"
#include "headrace/kernels/audio/samples.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

class ToDtype final : public PictureOp {
 public:
  ToDtype(DType dtype, bool scale)
      : step_{.kind = MapStep::Kind::kConvert,
              .dtype = dtype,
              .scale = scale,
              .mean = {},
              .std = {}},
        of_ids_(step_) {
    of_ids_.scale = false;
  }

  // As in torchvision, a mask keeps its dtype unless fields= includes it.
  bool takes(FieldKind kind) const override { return kind == FieldKind::kImage; }

  // Audio also keeps its dtype; if included, float32 becomes int16 by full scale.
  void plan(FieldState& field) const override {
    if (field.kind != FieldKind::kAudio) {
      if (step_.dtype == DType::kInt16) {
        raise_invalid_argument(
            "ToDtype", "int16 is for audio clips, but \"" + field.name + "\" is " + text_of(field),
            "select audio clips with fields=");
      }
      return PictureOp::plan(field);
    }
    const bool samples = field.dtype == DType::kFloat32 && step_.dtype == DType::kInt16;
    if (!samples || !step_.scale) {
      raise_invalid_argument("ToDtype", "float32 audio becomes int16, with scale=True; \"" +
                                            field.name + "\" is " + text_of(field));
    }
    field.dtype = DType::kInt16;
  }
  bool measures() const override { return step_.dtype == DType::kInt16; }
  DevicePart device_part() const override { return DevicePart::kMap; }
  Rate rate() const override { return Rate::kAny; }
  bool predict(Predicted&, Draws) const override { return true; }

  Result<void> apply(OpContext& context) const override {
    for (int field : context.fields) {
      FieldValue& value = context.record.fields[field];
      if (value.kind == FieldKind::kAudio) {
        if (Result<void> done = to_int16(value, context.renderer); !done) return done;
        continue;
      }
      const bool ids = context.record.fields[field].kind == FieldKind::kMask;
      Result<void> done =
          edit(context, field, [&](Recipe& picture) { return picture.map(ids ? of_ids_ : step_); });
      if (!done) return done;
    }
    return {};
  }

 private:
  void plan_picture(FieldState& picture) const override { picture.dtype = step_.dtype; }

  static Result<void> to_int16(FieldValue& audio, Renderer& renderer) {
    if (Result<void> made = make_samples(audio, renderer); !made) return made;
    const size_t count = audio.bytes.size() / sizeof(float);
    Buffer out(count * sizeof(int16_t));
    const size_t nan = int16_from_samples(reinterpret_cast<const float*>(audio.bytes.data()), count,
                                          reinterpret_cast<int16_t*>(out.data()));
    if (nan > 0) return cannot_take("ToDtype", "has NaN, which int16 cannot represent");
    audio.dtype = DType::kInt16;
    audio.own(std::move(out));
    return {};
  }

  const MapStep step_;
  MapStep of_ids_;  // of a mask, whose values are class ids and have no range
};

std::unique_ptr<Op> make_to_dtype(const Arguments& arguments) {
  const DType dtype = arguments.dtype("dtype");
  if (dtype != DType::kUInt8 && dtype != DType::kUInt16 && dtype != DType::kFloat32 &&
      dtype != DType::kFloat16 && dtype != DType::kBFloat16 && dtype != DType::kInt16) {
    raise_invalid_argument(
        "ToDtype",
        "dtype must be uint8, uint16, float32, float16, bfloat16, or int16 for audio clips (got " +
            std::string(name_of(dtype)) + ")",
        "convert the batch where another dtype is needed");
  }
  return std::make_unique<ToDtype>(dtype, arguments.flag("scale"));
}

const OpRecord kToDtype{
    .name = "ToDtype",
    .doc =
        "Converts images to another dtype.\n\n"
        "Images, (C, H, W), become the given dtype with the same shape; masks are unchanged "
        "unless fields= names them, and their ids are never scaled. With scale, values are "
        "rescaled: 0 to 255 (0 to 65535 for uint16) becomes 0.0 to 1.0 and vice versa; between "
        "uint8 and uint16, 8 bits are added or truncated. Without it values are kept (floats "
        "are truncated). Audio is unchanged, too, unless fields= names it: float32 becomes "
        "int16, 32768 times the sample rounded to nearest; samples beyond full scale are "
        "clipped.",
    .page = {.unseen = "only the dtype changes"},
    .params =
        {{.name = "dtype",
          .type = ParamType::kDType,
          .doc = "uint8, uint16, float32, float16, bfloat16, or int16 for audio; as a string or a "
                 "torch dtype.",
          .required = true},
         {.name = "scale",
          .type = ParamType::kBool,
          .doc = "Whether to rescale values from the old dtype's range to the new dtype's.",
          .fallback = false}},
    .oracle = "torchvision v2's to_dtype on tensors, bit for bit",
    .example = {{"dtype", DType::kFloat32}, {"scale", true}},
    .make = make_to_dtype};
const Register<OpRecord> registered_to_dtype(kToDtype);

}  // namespace
}  // namespace headrace
