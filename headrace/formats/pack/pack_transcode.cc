// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_transcode.h"

#include <limits>

#include "headrace/base/byte_stream.h"
#include "headrace/fields/kind.h"
#include "headrace/formats/pack/indexed_video.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/crc32c.h"

namespace headrace {
namespace {

const ErrorCode kWrongValue{
    "HR0454", ErrorKind::kData, "value does not match its field",
    "A source delivered a value whose size does not match the field's dtype and shape, or a value "
    "of more than 4 GiB, the maximum in a pack. Inspect the record: src[i]."};

constexpr std::string_view kUnusable = "unusable: ";

class NullSink final : public RowSink {
 public:
  void rows(const RowBlock&) override {}
};

Error wrong_value(const Field& field, std::string what) {
  return {.code = &kWrongValue,
          .what = "field '" + field.name + "': " + std::move(what),
          .hint = "inspect the record: src[i]"};
}

PackedValue as_it_is(std::span<const uint8_t> bytes) {
  PackedValue value;
  value.bytes.assign(bytes.begin(), bytes.end());
  value.facts.original_bytes = value.facts.stored_bytes = static_cast<uint32_t>(bytes.size());
  value.facts.original_sum = value.facts.stored_sum = crc32c(bytes);
  return value;
}

// A value of a fixed shape in column format.
Result<PackedValue> column_value(const Field& field, const FieldData& data, size_t width) {
  PackedValue value;
  if (data.bytes.empty() && field.dtype == DType::kInt64 && field.shape.empty()) {
    const auto* raw = reinterpret_cast<const uint8_t*>(&data.scalar);
    value.bytes.assign(raw, raw + sizeof data.scalar);
  } else {
    value.bytes.assign(data.bytes.begin(), data.bytes.end());
  }
  if (value.bytes.size() == width) return value;
  return wrong_value(field, "it has " +
                                count_text(static_cast<int64_t>(value.bytes.size()), "byte") +
                                ", not " + with_commas(static_cast<int64_t>(width)));
}

// Dense elements, followed by their shape if the schema leaves it open.
Result<PackedValue> tensor_value(const Field& field, const FieldData& data) {
  const Shape& shape = has_own_shape(field) ? data.shape : field.shape;
  if (shape.size() != field.shape.size() ||
      static_cast<size_t>(element_count(shape)) * size_of(field.dtype) != data.bytes.size()) {
    return wrong_value(field, "its bytes do not match its shape");
  }
  if (!has_own_shape(field)) return as_it_is(data.bytes);
  ByteWriter out;
  out.bytes(data.bytes);
  for (int64_t size : shape) out.number(size);
  return as_it_is(out.out);
}

}  // namespace

Result<PackedValue> Transcoder::value(const Field& field, const FieldData& data) {
  constexpr size_t kMax = std::numeric_limits<uint32_t>::max() / 2;
  if (const size_t width = column_bytes(field)) return column_value(field, data, width);
  if (data.bytes.size() > kMax) {
    return wrong_value(field, with_commas(static_cast<int64_t>(data.bytes.size())) +
                                  " bytes exceed the maximum size of a value in a pack");
  }
  if (field.encoded && is_picture(field.kind)) return picture(field, data.bytes);
  if (field.encoded) return file(*media_of(field.kind), data.bytes);
  if (field.kind == FieldKind::kText || field.kind == FieldKind::kBytes) {
    return as_it_is(data.bytes);
  }
  return tensor_value(field, data);
}

// Other media are already compressed. Checks that they can be read, and also stores their indexes.
PackedValue Transcoder::file(const MediaRecord& media, std::span<const uint8_t> bytes) {
  PackedValue value = as_it_is(bytes);
  if (!level_) return value;
  Result<void> read = {};
  if (media.index) {
    const Result<std::vector<uint8_t>> index = media.index(bytes);
    if (!index) read = index.error();
    append_video_index(index ? *index : std::vector<uint8_t>(), value.bytes);
    value.facts.stored_bytes = static_cast<uint32_t>(value.bytes.size());
    value.facts.stored_sum = crc32c(value.bytes);
    value.facts.form = static_cast<uint8_t>(PackForm::kIndexed);
  } else {
    const std::string format(media.format_of(bytes));
    if (!format.empty()) value.reason = std::string(media.noun) + "s (" + format + ")";
    read = media.check(bytes, renderer_);
  }
  if (read) return value;
  value.facts.form |= kUnusableBit;
  value.reason = std::string(kUnusable) + std::string(read.error().code->id) + " " +
                 std::string(read.error().code->title);
  return value;
}

Result<PackedValue> Transcoder::picture(const Field& field, std::span<const uint8_t> bytes) {
  std::vector<uint8_t> original;  // for a picture that comes from a pack
  if (is_packed_jpeg(bytes)) {
    Result<std::vector<uint8_t>> unpacked = unpack_jpeg(bytes);
    if (unpacked) {
      original = std::move(*unpacked);
      const size_t size = original.size();
      original.resize(size + Buffer::kPadding);
      bytes = std::span<const uint8_t>(original).first(size);
    }
  }
  PackedValue value = as_it_is(bytes);
  if (!level_) return value;
  const CodecRecord* codec = codec_of(bytes);
  if (codec && codec->name == "jpeg") {
    Result<std::vector<uint8_t>> packed = pack_jpeg(bytes, *level_);
    if (packed) {
      value.bytes = std::move(*packed);
      value.facts.stored_bytes = static_cast<uint32_t>(value.bytes.size());
      value.facts.stored_sum = crc32c(value.bytes);
      value.facts.form =
          static_cast<uint8_t>(*level_ == PackLevel::kFast ? PackForm::kFast : PackForm::kDense);
      return value;
    }
    value.reason = packed.error().what;
  } else if (codec) {
    value.reason = "not a JPEG but " + std::string(codec->name);
  }
  if (std::string wrong = trial_decode(field, bytes); !wrong.empty()) {
    value.facts.form |= kUnusableBit;
    value.reason = std::string(kUnusable) + wrong;
  }
  return value;
}

std::string Transcoder::trial_decode(const Field& field, std::span<const uint8_t> bytes) {
  const auto named = [](const Error& error) {
    return std::string(error.code->id) + " " + std::string(error.code->title);
  };
  const CodecRecord* codec = codec_of(bytes);
  if (!codec) return "its bytes are not an image";
  std::unique_ptr<ImageDecoder>& decoder = decoders_[codec];
  if (!decoder) decoder = codec->make();
  Result<ImageHeader> header = decoder->read_header(bytes);
  if (!header) return named(header.error());
  if (Result<void> small = check_limits(*header, {}); !small) return named(small.error());
  NullSink sink;
  DecodeJob job;
  job.bytes = bytes;
  job.window = {.x = 0, .y = 0, .width = header->width, .height = header->height};
  job.color = record_of(field.kind).color;
  job.repair = true;  // accepts any pixels; the loader decides whether they are good enough
  job.sixteen_bit = SixteenBit::kHighByte;
  job.sink = &sink;
  decoder->decode({&job, 1});
  return job.result ? "" : named(job.result.error());
}

}  // namespace headrace
