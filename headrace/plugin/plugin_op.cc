// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "headrace/fields/audio.h"
#include "headrace/fields/pictures.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"
#include "headrace/plugin/checked_call.h"
#include "headrace/plugin/declared.h"
#include "headrace/plugin/plugin_call.h"
#include "headrace/plugin/plugin_error.h"
#include "headrace/plugin/plugin_view.h"

namespace headrace {
namespace {

PluginPart part_of(const PluginTransform& transform) {
  return {"transform", std::string(transform.record.name), &transform.plugin->origin};
}

class PluginOp final : public Op {
 public:
  PluginOp(const PluginTransform& transform, void* self)
      : transform_(transform), table_(transform.table), part_(part_of(transform)), self_(self) {}
  ~PluginOp() override { destroy_plugin_object(part_, table_.destroy, self_); }
  PluginOp(const PluginOp&) = delete;
  PluginOp& operator=(const PluginOp&) = delete;

  bool takes(FieldKind kind) const override { return (table_.kinds & plugin_kind(kind)) != 0; }
  bool moves() const override { return (table_.flags & HEADRACE_MOVES) != 0; }
  bool carries(FieldKind kind) const override { return takes(kind); }
  // An operator that moves pictures has them anyway.
  bool wants_canvas(const FieldState& field) const override {
    return !moves() && takes(FieldKind::kImage) && keeps_rows(field.kind);
  }
  bool measures() const override { return true; }
  Rate rate() const override { return Rate::kAny; }
  bool predict(Predicted&, Draws) const override { return !table_.shape; }
  void plan(FieldState& field) const override;
  Result<void> apply(OpContext& context) const override;

 private:
  // The size of the record's images.
  struct Canvas {
    Size before{-1, -1}, after{-1, -1};
    bool known = false, differs = false;  // can differ between images
  };

  bool random() const { return (table_.flags & HEADRACE_RANDOM) != 0; }
  [[noreturn]] void misfit(const std::string& what, const std::string& hint = {}) const {
    raise_invalid_argument(transform_.record.name, what, hint);
  }
  // Whether the shape is fixed, regardless of what the plug-in returns: rows follow the images.
  static bool keeps_rows(FieldKind kind) { return is_spatial(kind) && !is_picture(kind); }

  static bool same_rows(const Shape& a, const Shape& b) {
    return !a.empty() && !b.empty() && a[0] == b[0];
  }

  // What is wrong with the result for a field that was `before`; "" if nothing is.
  std::string why_not(FieldKind kind, DType dtype, const Shape& before, DType made,
                      const Shape& after) const;
  std::string why_not_picture(FieldKind kind, DType dtype, const Shape& before, DType made,
                              const Shape& after) const;
  Error broken(const std::string& what) const { return broken_plugin(part_, what); }

  // Sets the form of the output for this record. `planned`: null if nothing was planned.
  Result<void> shape_output(OpContext& context, const PluginView& input, FieldKind kind,
                            const FieldState* planned, PluginView& output) const;
  Result<void> apply_to_picture(OpContext& context, size_t at, Canvas& canvas) const;
  Result<void> apply_to_numbers(OpContext& context, size_t at, const Canvas& canvas) const;
  Result<void> call(OpContext& context, PluginView& input, std::span<const uint8_t> in,
                    PluginView& output, std::span<uint8_t> out, size_t item_bytes) const;

  const PluginTransform& transform_;
  const headrace_transform& table_;
  const PluginPart part_;
  void* const self_;
};

std::string PluginOp::why_not_picture(FieldKind kind, DType dtype, const Shape& before, DType made,
                                      const Shape& after) const {
  if (!is_picture_dtype(made)) return "images cannot be " + std::string(name_of(made));
  if (kind == FieldKind::kMask && (made != dtype || after[0] != before[0]))
    return "the dtype and the channel count of a mask must not change";
  if (after[0] == 0 || after[0] > kMaxChannels)
    return "images must have 1 to " + std::to_string(kMaxChannels) + " channels";
  if (after[1] == 0 || after[2] == 0) return "images must have at least one pixel";
  constexpr int64_t kMaxPixels = int64_t{1} << 28;  // so that the product fits
  if (after[1] > kMaxPixels || after[2] > kMaxPixels ||
      (after[1] > 0 && after[2] > 0 && too_large(after[1], after[2])))
    return "images must have at most 268 million pixels";
  if (!moves() && (after[1] != before[1] || after[2] != before[2]))
    return "it declares HEADRACE_VALUES, so height and width must not change";
  return {};
}

std::string PluginOp::why_not(FieldKind kind, DType dtype, const Shape& before, DType made,
                              const Shape& after) const {
  if (is_picture(kind)) return why_not_picture(kind, dtype, before, made, after);
  if (kind == FieldKind::kAudio && (made != DType::kFloat32 || after.size() != 2))
    return "audio must be float32 of shape (channels, frames)";
  constexpr int64_t kMaxBytes = int64_t{1} << 47;  // limit of a process's memory
  int64_t bytes = int64_t(size_of(made));
  for (const int64_t extent : after) {  // of the known extents; strides also exist for empty arrays
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes) || bytes > kMaxBytes)
      return "that is larger than the address space";
  }
  return {};
}

void PluginOp::plan(FieldState& field) const {
  const std::string name = "\"" + field.name + "\"";
  if (!takes(field.kind)) {
    misfit(name + " is a " + std::string(name_of(field.kind)) +
               " field, which the plug-in does not support",
           "select supported fields with fields=");
  }
  if (field.shape.size() > HEADRACE_MAX_AXES)
    misfit(name + " has " + std::to_string(field.shape.size()) +
           " axes, but plug-ins support at most 8");
  if (is_picture(field.kind) && table_.image_dtypes != 0) {
    static constexpr std::pair<DType, uint32_t> kBits[] = {{DType::kUInt8, HEADRACE_U8},
                                                           {DType::kUInt16, HEADRACE_U16},
                                                           {DType::kFloat16, HEADRACE_F16},
                                                           {DType::kBFloat16, HEADRACE_BF16},
                                                           {DType::kFloat32, HEADRACE_F32}};
    std::string taken;
    bool fits = false;
    for (const auto& [dtype, bit] : kBits) {
      if (!(table_.image_dtypes & bit)) continue;
      fits |= dtype == field.dtype;
      taken += (taken.empty() ? "" : ", ") + std::string(name_of(dtype));
    }
    if (!fits)
      misfit(name + " is " + std::string(name_of(field.dtype)) + " here, but it supports " + taken,
             "move it before or after ToDtype");
  }
  if (keeps_rows(field.kind) || !table_.shape) return;
  PluginView input(field.kind, field.name.c_str(), field.dtype, field.shape);
  PluginView output(field.kind, field.name.c_str(), field.dtype, field.shape);
  input.field().sample_rate = output.field().sample_rate = field.sample_rate;
  PluginMessage message;
  const int32_t status = message.status_of(
      [&] { return table_.shape(self_, nullptr, &input.field(), &output.field(), message.get()); });
  if (status == HEADRACE_BAD_ARGUMENTS || status == HEADRACE_BAD_RECORD) {
    throw Exception(rejected_arguments(part_, name + ": " + message.text()));
  }
  if (status != HEADRACE_OK) throw Exception(plugin_failure(part_, status, message, "shape()"));
  const std::optional<Shape> shape = output.shape();
  if (!shape) throw Exception(broken("shape() planned an invalid shape for " + name));
  const std::string why = why_not(field.kind, field.dtype, field.shape, *output.dtype(), *shape);
  if (!why.empty()) {
    throw Exception(broken("shape() planned " + text_of(*output.dtype(), *shape) + " for " + name +
                           ", and " + why));
  }
  if (field.row_group != 0 && !same_rows(*shape, field.shape)) {
    throw Exception(broken("shape() planned a different number of rows for " + name +
                           ", whose rows describe the same objects as another field's"));
  }
  field.shape = *shape;
  field.dtype = *output.dtype();
}

Result<void> PluginOp::shape_output(OpContext& context, const PluginView& input, FieldKind kind,
                                    const FieldState* planned, PluginView& output) const {
  if (!table_.shape || keeps_rows(kind)) return {};
  const Shape before = *input.shape();
  const DType dtype = *input.dtype();
  PluginMessage message;
  const PluginRecord record(context.record, context.draws, random());
  const int32_t status = message.status_of([&] {
    return table_.shape(self_, planned ? record.get() : nullptr, &input.field(), &output.field(),
                        message.get());
  });
  if (status != HEADRACE_OK) return plugin_failure(part_, status, message, "shape()");
  if (record.misused()) return broken("it draws random numbers without declaring HEADRACE_RANDOM");
  const std::optional<Shape> shape = output.shape();
  if (!shape) return broken("shape() returned an invalid shape for this record");
  if (planned) {
    if (std::ranges::any_of(*shape, [](int64_t extent) { return extent < 0; }))
      return broken("shape() left an extent open although the record is given");
    const bool as_planned =
        *output.dtype() == planned->dtype &&
        std::ranges::equal(*shape, planned->shape,
                           [](int64_t made, int64_t said) { return said < 0 || made == said; });
    if (!as_planned) {
      return broken("shape() returned " + text_of(*output.dtype(), *shape) +
                    " for this record, but planned " + text_of(planned->dtype, planned->shape));
    }
  }
  if (const std::string why = why_not(kind, dtype, before, *output.dtype(), *shape); !why.empty())
    return broken("shape() returned " + text_of(*output.dtype(), *shape) + ", and " + why);
  if (planned && planned->row_group != 0 && !same_rows(*shape, before)) {
    return broken("shape() returned " + text_of(*output.dtype(), *shape) + " of " +
                  text_of(dtype, before) + ", whose rows describe the same objects as another " +
                  "field's");
  }
  return {};
}

Result<void> PluginOp::call(OpContext& context, PluginView& input, std::span<const uint8_t> in,
                            PluginView& output, std::span<uint8_t> out, size_t item_bytes) const {
  PluginMessage message;
  bool misused = false;
  const auto run = [&](const void* from, void* to) {
    input.point_to(from);
    output.point_to(to);
    const PluginRecord record(context.record, context.draws, random());
    const int32_t status = message.status_of([&] {
      return table_.run(self_, record.get(), &input.field(), &output.field(), message.get());
    });
    misused |= record.misused();
    return status;
  };
  int32_t status = 0;
  if (transform_.plugin->checked.load(std::memory_order_relaxed)) {
    const std::string name = part_.text() + " of the " + text_of(*part_.origin) + ", record " +
                             std::to_string(context.record.index) + ", field \"" +
                             input.field().name + "\"";
    std::string wrong;
    status = checked_call(in, out, item_bytes, name, run, wrong);
    if (!wrong.empty()) return broken("it " + wrong);
  } else {
    status = run(in.data(), out.data());
  }
  if (status != HEADRACE_OK) return plugin_failure(part_, status, message, "run()");
  if (misused) return broken("it draws random numbers without declaring HEADRACE_RANDOM");
  return {};
}

Result<void> PluginOp::apply_to_picture(OpContext& context, size_t at, Canvas& canvas) const {
  const int field = context.fields[at];
  const FieldState* const planned = at < context.after.size() ? &context.after[at] : nullptr;
  FieldValue& value = context.record.fields[size_t(field)];
  const auto pixels = pixels_now(context, field);
  if (!pixels) return pixels.error();
  const Picture& in = **pixels;
  const Shape shape = {in.channels, in.height, in.width};
  const char* const name = planned ? planned->name.c_str() : "field";
  PluginView input(value.kind, name, in.dtype, shape), output(value.kind, name, in.dtype, shape);
  Result<void> shaped = shape_output(context, input, value.kind, planned, output);
  if (!shaped) return shaped;
  Shape made = *output.shape();
  if (!planned) {  // a rehearsal on a blank picture runs nothing
    for (size_t i = 0; i < 3; ++i) made[i] = made[i] > 0 ? made[i] : shape[i];
  }
  const Size after{static_cast<int>(made[1]), static_cast<int>(made[2])};
  const Size before{in.height, in.width};
  if (!canvas.known) canvas = {before, after, true};
  canvas.differs |= !(canvas.before == before && canvas.after == after);
  const size_t bytes = size_t(element_count(made)) * size_of(*output.dtype());
  if (Result<void> fits = context.renderer.check_growth(in.pixels.size(), bytes); !fits)
    return fits;
  auto out = std::make_shared<Picture>(static_cast<int>(made[0]), after.height, after.width,
                                       *output.dtype());
  if (planned) {
    headrace_field &from = input.field(), &to = output.field();
    from.canvas_height = in.height, from.canvas_width = in.width;
    to.canvas_height = after.height, to.canvas_width = after.width;
    Result<void> done = call(context, input, in.pixels.bytes(), output,
                             {out->pixels.data(), out->pixels.size()}, size_of(in.dtype));
    if (!done) return done;
  } else {
    std::memset(out->pixels.data(), 0, out->pixels.size());
  }
  value.picture = Recipe(std::shared_ptr<const Picture>(std::move(out)));
  return {};
}

Result<void> PluginOp::apply_to_numbers(OpContext& context, size_t at, const Canvas& canvas) const {
  const int field = context.fields[at];
  const FieldState* const planned = at < context.after.size() ? &context.after[at] : nullptr;
  FieldValue& value = context.record.fields[size_t(field)];
  if (!planned) return {};  // a rehearsal has no values
  if (value.kind == FieldKind::kAudio) {
    if (Result<void> made = make_samples(value, context.renderer); !made) return made;
  }
  if (value.shape.size() > HEADRACE_MAX_AXES)
    return broken("a value has " + std::to_string(value.shape.size()) +
                  " axes, but plug-ins support at most 8");
  const char* const name = planned->name.c_str();
  PluginView input(value.kind, name, value.dtype, value.shape);
  Shape form = value.shape;
  if (value.kind == FieldKind::kMasks && moves() && canvas.known) {
    // Without a move, only checks that the planes cover the image.
    if (Result<void> covers = follow(context, field, canvas.before, Geometry()); !covers)
      return covers;
    form[form.size() - 2] = canvas.after.height;  // planes over the image
    form[form.size() - 1] = canvas.after.width;
  }
  PluginView output(value.kind, name, value.dtype, form);
  const std::string format(name_of(value.box_format));
  for (PluginView* view : {&input, &output}) {
    headrace_field& each = view->field();
    const Size& size = view == &input ? canvas.before : canvas.after;
    each.canvas_height = size.height, each.canvas_width = size.width;
    if (value.kind == FieldKind::kBoxes) each.box_format = format.c_str();
    if (value.kind == FieldKind::kAudio) each.sample_rate = value.sample_rate;
  }
  Result<void> shaped = shape_output(context, input, value.kind, planned, output);
  if (!shaped) return shaped;
  const Shape made = *output.shape();
  const size_t item = size_of(value.dtype);
  const bool scalar = value.bytes.empty() && value.shape.empty();
  std::span<const uint8_t> in = value.bytes;
  if (scalar) in = {reinterpret_cast<const uint8_t*>(&value.scalar), sizeof value.scalar};
  std::vector<double> aligned;  // memory lent by a source may be unaligned
  if (reinterpret_cast<uintptr_t>(in.data()) % item != 0) {
    aligned.resize(in.size() / sizeof(double) + 1);
    std::memcpy(aligned.data(), in.data(), in.size());
    in = {reinterpret_cast<const uint8_t*>(aligned.data()), in.size()};
  }
  const size_t bytes = size_t(element_count(made)) * size_of(*output.dtype());
  if (bytes > context.renderer.largest_value())
    return broken("its result would have " + std::to_string(bytes) + " bytes");
  const std::shared_ptr<Buffer> out = context.renderer.values().of(bytes);
  Result<void> done = call(context, input, in, output, {out->data(), bytes}, item);
  if (!done) return done;
  value.shape = made;
  value.dtype = *output.dtype();
  value.own(out);
  if (value.dtype == DType::kInt64 && bytes == sizeof value.scalar && made.empty())
    std::memcpy(&value.scalar, out->data(), bytes);
  return {};
}

// Images first, because fields in their coordinates depend on the result.
Result<void> PluginOp::apply(OpContext& context) const {
  Canvas canvas;
  bool others = false;  // fields in the coordinates of images
  const auto kind_of = [&](size_t at) {
    return context.record.fields[size_t(context.fields[at])].kind;
  };
  for (size_t i = 0; i < context.fields.size(); ++i) {
    others |= keeps_rows(kind_of(i));
  }
  if (others && moves()) {
    if (Result<Size> common = common_size(context); !common) return std::move(common.error());
  }
  for (size_t i = 0; i < context.fields.size(); ++i) {
    if (!is_picture(kind_of(i)) || !takes(kind_of(i))) continue;
    if (Result<void> done = apply_to_picture(context, i, canvas); !done) return done;
  }
  if (others && moves() && canvas.differs)
    return broken("it returned images of different sizes, but other fields follow a single size");
  if (canvas.differs) canvas = {};
  for (size_t i = 0; i < context.fields.size(); ++i) {
    if (is_picture(kind_of(i)) || !takes(kind_of(i))) continue;
    if (Result<void> done = apply_to_numbers(context, i, canvas); !done) return done;
  }
  return {};
}

}  // namespace

std::unique_ptr<Op> make_plugin_op(const PluginTransform& transform, const Arguments& arguments) {
  const headrace_transform& table = transform.table;
  const std::vector<headrace_value> values = values_of(transform.record.params, arguments);
  void* self = nullptr;
  if (table.create) {
    create_plugin_object(part_of(transform), [&](headrace_error* error) {
      return table.create(values.data(), uint32_t(values.size()), &self, error);
    });
  }
  return std::make_unique<PluginOp>(transform, self);
}

}  // namespace headrace
