// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_transcode.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "headrace/formats/pack/pack_test_files.h"
#include "headrace/kernels/jpeg/jpeg_test_files.h"
#include "headrace/storage/crc32c.h"

namespace headrace {
namespace {

const Field kPicture{
    .name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true};

FieldData data_of(std::span<const uint8_t> bytes, Shape shape = {}) {
  return {.bytes = bytes, .shape = std::move(shape)};
}

// Bytes with the padding that pictures need after them.
class Padded {
 public:
  explicit Padded(const std::string& text) : bytes_(text.begin(), text.end()), size_(text.size()) {
    bytes_.resize(size_ + Buffer::kPadding);
  }
  std::span<const uint8_t> span() const { return std::span(bytes_).first(size_); }

 private:
  std::vector<uint8_t> bytes_;
  size_t size_;
};

std::string jpeg() {
  const jpeg_test::Bytes bytes = jpeg_test::encode({.width = 24, .height = 16});
  return {bytes.begin(), bytes.end()};
}

// Gray pixels, all black. The data is for 1 x 1, regardless of the header.
std::string png(uint32_t width, uint32_t height) {
  const auto big = [](uint32_t value) {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
    return out;
  };
  const auto chunk = [&](const std::string& typed) {
    const auto* raw = reinterpret_cast<const Bytef*>(typed.data());
    const uLong crc = ::crc32(0, raw, static_cast<uInt>(typed.size()));
    return big(static_cast<uint32_t>(typed.size() - 4)) + typed + big(static_cast<uint32_t>(crc));
  };
  std::string packed(64, '\0');
  uLongf bytes = packed.size();
  const Bytef row[2] = {0, 0};
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &bytes, row, sizeof row);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR" + big(width) + big(height) + std::string("\x08\0\0\0\0", 5)) +
         chunk("IDAT" + packed.substr(0, bytes)) + chunk("IEND");
}

PackForm form_of(const PackedValue& value) {
  return static_cast<PackForm>(value.facts.form & kFormBits);
}

std::string error_of(const Field& field, const FieldData& data) {
  const Result<PackedValue> value = Transcoder(PackLevel::kFast).value(field, data);
  if (value) return "taken";
  return std::string(value.error().code->id) + ": " + value.error().what;
}

TEST(Transcoder, AColumnValueHasTheColumnsWidth) {
  const Field number{.name = "n", .dtype = DType::kInt64};
  const Field point{.name = "point", .dtype = DType::kFloat32, .shape = {2}};
  Transcoder transcoder(PackLevel::kFast);
  FieldData scalar;
  scalar.scalar = 258;
  const Result<PackedValue> label = transcoder.value(number, scalar);
  ASSERT_TRUE(label);
  EXPECT_EQ(label->bytes, (std::vector<uint8_t>{2, 1, 0, 0, 0, 0, 0, 0}));
  const std::vector<uint8_t> eight = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(transcoder.value(point, data_of(eight)));
  EXPECT_EQ(transcoder.value(point, data_of(eight))->bytes, eight);
  EXPECT_EQ(error_of(point, data_of(std::span(eight).first(7))),
            "HR0454: field 'point': it has 7 bytes, not 8");
  EXPECT_EQ(error_of(point, {}), "HR0454: field 'point': it has 0 bytes, not 8");
}

TEST(Transcoder, ATensorStoresItsShapeIfTheSchemaDoesNotFixIt) {
  const Field boxes{.name = "boxes", .dtype = DType::kUInt8, .shape = {-1, 2}};
  const std::vector<uint8_t> four = {1, 2, 3, 4};
  const Result<PackedValue> value = Transcoder({}).value(boxes, data_of(four, {2, 2}));
  ASSERT_TRUE(value);
  ASSERT_EQ(value->bytes.size(), 4u + 16u);
  int64_t shape[2];
  std::memcpy(shape, value->bytes.data() + 4, sizeof shape);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[1], 2);
  const std::string wrong = "HR0454: field 'boxes': its bytes do not match its shape";
  EXPECT_EQ(error_of(boxes, data_of(four, {3, 2})), wrong);
  EXPECT_EQ(error_of(boxes, data_of(four, {4})), wrong);
}

TEST(Transcoder, AValueBeyond2GiBIsRejected) {
  const uint8_t one = 0;  // it is not checked
  const Field text{.name = "text", .kind = FieldKind::kText};
  EXPECT_EQ(
      error_of(text, data_of({&one, size_t{1} << 31})),
      "HR0454: field 'text': 2,147,483,648 bytes exceed the maximum size of a value in a pack");
}

TEST(Transcoder, AJpegGetsTheRequestedForm) {
  const Padded picture(jpeg());
  const std::pair<std::optional<PackLevel>, PackForm> forms[] = {
      {PackLevel::kFast, PackForm::kFast},
      {PackLevel::kDense, PackForm::kDense},
      {std::nullopt, PackForm::kAsIs}};
  for (const auto& [level, form] : forms) {
    const Result<PackedValue> value = Transcoder(level).value(kPicture, data_of(picture.span()));
    ASSERT_TRUE(value);
    EXPECT_EQ(form_of(*value), form);
    EXPECT_EQ(value->facts.original_sum, crc32c(picture.span()));
    EXPECT_EQ(value->facts.stored_sum, crc32c(value->bytes));
    if (form == PackForm::kAsIs) continue;
    // Repacking a picture of a pack gives the same bytes.
    const Padded packed(text_of(value->bytes));
    const Result<PackedValue> again = Transcoder(level).value(kPicture, data_of(packed.span()));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->bytes, value->bytes);
    EXPECT_EQ(again->facts.original_bytes, picture.span().size());
  }
}

TEST(Transcoder, UndecodableImagesAreStoredUnchangedAndReported) {
  const auto reason = [](const std::string& bytes, const Field& field = kPicture) {
    const Padded picture(bytes);
    const Result<PackedValue> value =
        Transcoder(PackLevel::kFast).value(field, data_of(picture.span()));
    EXPECT_TRUE(value);
    EXPECT_EQ(text_of(value->bytes), bytes);
    EXPECT_EQ(form_of(*value), PackForm::kAsIs);
    EXPECT_EQ((value->facts.form & kUnusableBit) != 0, value->reason.starts_with("unusable: "));
    return value->reason;
  };
  EXPECT_EQ(reason("no image at all"), "unusable: its bytes are not an image");
  EXPECT_EQ(reason(""), "unusable: its bytes are not an image");
  EXPECT_TRUE(reason("\x89PNG\r\n\x1a\n").starts_with("unusable: HR03"));
  EXPECT_TRUE(reason(png(100'000, 100'000)).starts_with("unusable: HR03"));
  EXPECT_TRUE(reason(png(9, 9)).starts_with("unusable: HR03"));
  // A truncated JPEG is not repacked; it still decodes, partly gray.
  const std::string whole = jpeg();
  EXPECT_EQ(reason(whole.substr(0, whole.size() - 20)).find("unusable"), std::string::npos);
  EXPECT_TRUE(reason(whole.substr(0, 30)).starts_with("unusable: HR03"));
}

TEST(Transcoder, AnImageOfAnotherCodecIsStoredUnchanged) {
  const Padded picture(png(1, 1));
  Field mask = kPicture;
  mask.kind = FieldKind::kMask;
  for (const Field& field : {kPicture, mask}) {
    const Result<PackedValue> value =
        Transcoder(PackLevel::kDense).value(field, data_of(picture.span()));
    ASSERT_TRUE(value);
    EXPECT_EQ(value->reason, "not a JPEG but png");
    EXPECT_EQ(value->facts.form, 0);
  }
}

}  // namespace
}  // namespace headrace
