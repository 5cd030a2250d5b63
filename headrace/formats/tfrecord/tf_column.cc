// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>

#include "headrace/formats/shards/extent_source.h"
#include "headrace/formats/tfrecord/tf_fields.h"
#include "headrace/formats/tfrecord/tfrecord_frames.h"
#include "headrace/formats/tfrecord/tfrecord_source.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 20;  // for an entry that is one number

struct Piece {
  uint64_t begin = 0, end = 0;  // in the file
};

// Reads the messages of a record like TfEntries does, through a window of its file.
class NumberFinder {
 public:
  NumberFinder(FileWindow& window, const TfField& field) : window_(window), field_(field) {}

  Result<int64_t> find(Piece message) {
    Piece map, entry, value;
    Result<bool> more = true;
    while ((more = next(message, 1, map)) && *more) {
      while ((more = next(map, 1, entry)) && *more) {
        Result<bool> named = is_named(entry, value);
        if (!named) return std::move(named.error());
        if (*named) value_ = value;
      }
      if (!more) return std::move(more.error());
    }
    if (!more) return std::move(more.error());
    return number();
  }

 private:
  // The next field with number `wanted`, a message or bytes; continues after it.
  Result<bool> next(Piece& rest, uint32_t wanted, Piece& out) {
    Result<std::optional<uint32_t>> field = next(rest, out);
    while (field && *field && **field != wanted) field = next(rest, out);
    if (!field) return std::move(field.error());
    return field->has_value();
  }
  // The next length-delimited field, regardless of its number.
  Result<std::optional<uint32_t>> next(Piece& rest, Piece& out) {
    constexpr size_t kTagAndLength = 20;
    while (rest.begin < rest.end) {
      const auto most =
          static_cast<size_t>(std::min<uint64_t>(kTagAndLength, rest.end - rest.begin));
      Result<std::span<const uint8_t>> head = window_.at(rest.begin, most);
      if (!head) return std::move(head.error());
      VarintReader in(*head);
      const uint64_t tag = in.next();
      const auto type = static_cast<ProtoType>(tag & 7);
      const uint64_t length = type == ProtoType::kFixed64   ? 8
                              : type == ProtoType::kFixed32 ? 4
                                                            : in.next();
      out.begin = rest.begin + (head->size() - in.left());
      const bool known = type == ProtoType::kVarint || type == ProtoType::kBytes ||
                         type == ProtoType::kFixed64 || type == ProtoType::kFixed32;
      const uint64_t bytes = type == ProtoType::kVarint ? 0 : length;
      if (!in.good() || !known || tag >> 3 == 0 || tag >> 32 != 0 || bytes > rest.end - out.begin) {
        return bad();
      }
      rest.begin = out.end = out.begin + bytes;
      if (type == ProtoType::kBytes) return std::optional(static_cast<uint32_t>(tag >> 3));
    }
    return std::optional<uint32_t>();
  }

  // Whether the map entry has the name; returns its value.
  Result<bool> is_named(Piece entry, Piece& value) {
    bool named = field_.feature.empty(), has_value = false;
    value = {entry.begin, entry.begin};
    Piece piece;
    Result<std::optional<uint32_t>> field = next(entry, piece);
    for (; field && *field; field = next(entry, piece)) {
      if (**field == 2) {
        if (has_value) return bad();
        has_value = true;
        value = piece;
      }
      if (**field != 1) continue;
      named = piece.end - piece.begin == field_.feature.size();
      if (!named) continue;
      Result<std::span<const uint8_t>> name = window_.at(piece.begin, field_.feature.size());
      if (!name) return std::move(name.error());
      named = std::equal(name->begin(), name->end(), field_.feature.begin(), field_.feature.end(),
                         [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); });
    }
    if (!field) return std::move(field.error());
    return named;
  }

  Result<int64_t> number() {
    FieldData data;
    std::span<const uint8_t> bytes;
    if (value_) {
      const auto count = std::min<uint64_t>(value_->end - value_->begin, kMaxBytes);
      Result<std::span<const uint8_t>> read = window_.at(value_->begin, count);
      if (!read) return std::move(read.error());
      // An empty feature has no values.
      static const uint8_t kNothing = 0;
      bytes = read->empty() ? std::span<const uint8_t>(&kNothing, 0) : *read;
    }
    Result<size_t> found = prepare_value(field_, bytes, false, bytes.data(), data);
    if (!found) return std::move(found.error());
    return data.scalar;
  }

  static Error bad() {
    return not_an_example({.what = "an invalid field", .place = nullptr}, nullptr);
  }

  FileWindow& window_;
  const TfField& field_;
  std::optional<Piece> value_;
};

}  // namespace

std::vector<int64_t> tf_integer_column(const FileSet& files, const ContainerIndex& index,
                                       std::string_view feature, int64_t offset) {
  const TfField field{.field = {.name = {}, .dtype = DType::kInt64},
                      .feature = std::string(feature)};
  return column_of(files, index, [&](FileWindow& window, int64_t, const Extent& extent) {
    const uint64_t bytes = std::max(extent.bytes, kTfFrameBytes) - kTfFrameBytes;
    const uint64_t begin = extent.offset + kTfHeaderBytes;
    Result<int64_t> number =
        NumberFinder(window, field).find({.begin = begin, .end = begin + bytes});
    if (number) *number = tf_label(*number, offset);
    return number;
  });
}

}  // namespace headrace
