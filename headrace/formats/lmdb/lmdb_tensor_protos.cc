// SPDX-License-Identifier: Apache-2.0
// Caffe2's TensorProtos: a list of tensors, mostly a picture and its label. An encoded picture is a
// STRING of one element, a raw one BYTEs of (height, width, channels).
#include <algorithm>
#include <array>
#include <cctype>

#include "headrace/codecs/codec.h"
#include "headrace/formats/lmdb/caffe2_tensor.h"
#include "headrace/formats/shards/proto_wire.h"

namespace headrace {
namespace {

// What becomes of the tensor at one place of the list.
struct Role {
  enum class Form : uint8_t { kEncodedPicture, kPixels, kBytes, kLabel, kNumbers };
  Form form = Form::kNumbers;
  uint64_t type = 1;
  Shape shape;  // of kPixels and kNumbers, -1 where records differ
};

Result<Role> role_of(const Caffe2Tensor& tensor, size_t place) {
  Role role{.type = tensor.type, .shape = {}};
  if (tensor.type == kCaffe2String) {
    if (tensor.strings != 1) {
      return bad_value("a tensor of " + std::to_string(tensor.strings) + " strings is not read");
    }
    role.form = place == 0 && begins_like_picture(tensor.string) ? Role::Form::kEncodedPicture
                                                                 : Role::Form::kBytes;
    return role;
  }
  const Caffe2Type* const type = caffe2_type(tensor.type);
  if (!type) return bad_value("a tensor of type " + std::to_string(tensor.type) + " is not read");
  const Result<uint64_t> elements = elements_of(tensor, *type);
  if (!elements) return elements.error();
  role.shape = tensor.dims;
  const Shape& dims = tensor.dims;
  if (place == 0 && type->as_bytes && *elements > 0 &&
      (dims.size() == 2 || (dims.size() == 3 && dims[2] >= 1 && dims[2] <= 4))) {
    role.form = Role::Form::kPixels;
    role.shape = dims.size() == 2 ? Shape{1, dims[0], dims[1]} : Shape{dims[2], dims[0], dims[1]};
  } else if (place > 0 && is_one_integer(tensor)) {
    role.form = Role::Form::kLabel;
  }
  return role;
}

class TensorProtosValues final : public LmdbValues {
 public:
  TensorProtosValues(std::vector<Role> roles, Schema schema, bool bgr)
      : roles_(std::move(roles)), bgr_(bgr) {
    schema_ = std::move(schema);
    for (size_t i = 0; i < schema_.size(); ++i) {
      if (schema_[i].name == "label") label_ = i;
    }
  }

  std::string_view name() const override { return "tensorprotos"; }
  size_t buffers() const override { return 1 + roles_.size(); }

  Result<void> parse(ValueBytes value, const std::vector<bool>& wanted,
                     RecordData& out) const override {
    const Result<std::vector<Caffe2Tensor>> tensors = caffe2_tensors_from(value);
    if (!tensors) return tensors.error();
    if (tensors->size() != roles_.size()) {
      return bad_value("there are " + std::to_string(tensors->size()) + " tensors, and " +
                       std::to_string(roles_.size()) + " in others");
    }
    for (size_t i = 0; i < roles_.size(); ++i) {
      if (!wanted[i]) continue;
      Result<void> done = parse_tensor((*tensors)[i], i, out);
      if (done) continue;
      done.error().what = "tensor " + std::to_string(i) + ": " + done.error().what;
      done.error().where.offset = (*tensors)[i].message.data() - value.data();
      return done;
    }
    return {};
  }

  Result<int64_t> label(uint64_t bytes, const ReadValue& read) const override {
    uint64_t at = 0;
    for (size_t i = 0;; ++i) {
      std::array<uint8_t, 16> head{};
      const std::span<uint8_t> part(head.data(), std::min<uint64_t>(head.size(), bytes - at));
      if (Result<void> done = read(at, part); !done) return done.error();
      VarintReader in(part);
      const uint64_t tag = in.next(), length = in.next();
      at += part.size() - in.left();
      if (!in.good() || tag != (1 << 3 | 2) || length > bytes - at) {
        return bad_value("the TensorProtos are damaged", at);
      }
      if (i < label_) {
        at += length;
        continue;
      }
      constexpr uint64_t kMost = 4096;  // far more than one number and its name take
      if (length > kMost) return bad_value("the label is no single number", at);
      std::vector<uint8_t> message(length);
      if (Result<void> done = read(at, message); !done) return done.error();
      const Result<Caffe2Tensor> tensor = caffe2_tensor_from(message, at);
      if (!tensor) return tensor.error();
      if (!is_one_integer(*tensor)) return bad_value("the label is no single number", at);
      return integer_of(*tensor);
    }
  }

 private:
  Result<void> parse_tensor(const Caffe2Tensor& tensor, size_t i, RecordData& out) const {
    const Role& declared = roles_[i];
    Result<Role> role = role_of(tensor, i);
    if (!role) return role.error();
    // What is said to be a picture is one even where the bytes are none: decoding tells.
    const bool encoded =
        declared.form == Role::Form::kEncodedPicture && tensor.type == kCaffe2String;
    // One integer in a list that elsewhere has several.
    if (declared.form == Role::Form::kNumbers && role->form == Role::Form::kLabel) {
      role->form = Role::Form::kNumbers;
    }
    if (role->type != declared.type || (role->form != declared.form && !encoded)) {
      return bad_value("it is of another type than in others");
    }
    if ((declared.form == Role::Form::kPixels || declared.form == Role::Form::kNumbers) &&
        !fits_shape(role->shape, declared.shape)) {
      return bad_value("it is of " + sizes_text(role->shape) + ", and others of " +
                       sizes_text(declared.shape));
    }
    FieldData& field = out.fields[i];
    if (std::ranges::count(schema_[i].shape, -1) > 0 && !schema_[i].encoded) {
      field.shape = role->shape;
    }
    return deliver(tensor, *role, declared, out.owned[1 + i], field);
  }

  Result<void> deliver(const Caffe2Tensor& tensor, const Role& role, const Role& declared,
                       Buffer& memory, FieldData& field) const {
    switch (declared.form) {
      case Role::Form::kEncodedPicture:
      case Role::Form::kBytes:
        field.bytes = tensor.string;
        return {};
      case Role::Form::kLabel: {
        const Result<int64_t> label = integer_of(tensor);
        if (!label) return label.error();
        field.scalar = *label;
        return {};
      }
      case Role::Form::kPixels:
        memory.resize(tensor.bytes.size());
        planes_from_pixels(tensor.bytes.data(), role.shape[0], role.shape[1] * role.shape[2],
                           memory.data(), bgr_);
        field.bytes = memory.bytes();
        return {};
      case Role::Form::kNumbers:
        break;
    }
    const Result<ValueBytes> numbers = numbers_of(tensor, *caffe2_type(tensor.type), memory);
    if (!numbers) return numbers.error();
    field.bytes = *numbers;
    return {};
  }

  std::vector<Role> roles_;
  bool bgr_;
  size_t label_ = 0;
};

bool is_identifier(std::string_view name) {
  const auto fits = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); };
  return !name.empty() && name.size() <= 64 && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(name, fits);
}

// Fields get the names that the tensors have, else what they are.
Schema schema_of(std::vector<Role>& roles, std::span<const std::string> names) {
  Schema schema;
  bool labeled = false;
  const auto is_free = [&](std::string_view name) {
    return name != "id" && name != "key" && name != "valid" && name != "image" && name != "label" &&
           std::ranges::find(schema, name, &Field::name) == schema.end();
  };
  for (size_t i = 0; i < roles.size(); ++i) {
    Role& role = roles[i];
    if (role.form == Role::Form::kLabel && labeled) role.form = Role::Form::kNumbers;
    Field field{.name = i == 0 ? "data" : "tensor_" + std::to_string(i), .shape = role.shape};
    if (is_identifier(names[i]) && is_free(names[i])) field.name = names[i];
    switch (role.form) {
      case Role::Form::kEncodedPicture:
        field = {
            .name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true};
        break;
      case Role::Form::kPixels:
        field.name = "image";
        field.kind = FieldKind::kImage;
        break;
      case Role::Form::kBytes:
        field.kind = FieldKind::kBytes;
        break;
      case Role::Form::kLabel:
        field = {.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64};
        labeled = true;
        break;
      case Role::Form::kNumbers:
        field.dtype = caffe2_type(role.type)->dtype;
    }
    schema.push_back(std::move(field));
  }
  return schema;
}

// What both samples allow at this place, or why they do not go together.
std::string merge(const Role& more, Role& role) {
  if (role.form == Role::Form::kLabel && more.form == Role::Form::kNumbers) role.form = more.form;
  const bool list = role.form == Role::Form::kNumbers && more.form == Role::Form::kLabel;
  if (role.type != more.type || (role.form != more.form && !list))
    return "the tensors differ in type";
  if (!merge_shapes(more.shape, role.shape)) return "the tensors differ in dimensions";
  const bool pixels = role.form == Role::Form::kPixels;
  return pixels && role.shape[0] < 0 ? "the number of channels differs" : "";
}

}  // namespace

std::unique_ptr<LmdbValues> tensor_protos_values(std::span<const ValueBytes> samples,
                                                 const ValueOptions& options, std::string& why) {
  std::vector<Role> roles;
  std::vector<std::string> names;
  for (const ValueBytes value : samples) {
    const Result<std::vector<Caffe2Tensor>> tensors = caffe2_tensors_from(value);
    if (!tensors || tensors->empty()) {
      why = tensors ? "a value has no tensor" : tensors.error().what;
      return nullptr;
    }
    const bool first = roles.empty();
    if (!first && tensors->size() != roles.size()) {
      why = "they differ in their number of tensors";
      return nullptr;
    }
    for (size_t i = 0; i < tensors->size(); ++i) {
      const Result<Role> role = role_of((*tensors)[i], i);
      why = role ? "" : role.error().what;
      if (role && !first) why = merge(*role, roles[i]);
      if (!why.empty()) return nullptr;
      if (!first) continue;
      roles.push_back(*role);
      names.emplace_back((*tensors)[i].name);
    }
  }
  if (roles.empty()) {
    why = "there is none to look at";
    return nullptr;
  }
  Schema schema = schema_of(roles, names);
  return std::make_unique<TensorProtosValues>(std::move(roles), std::move(schema), options.bgr);
}

}  // namespace headrace
