// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/packed/document_errors.h"
#include "headrace/sources/packed/packed.h"
#include "headrace/sources/packed/packing.h"
#include "headrace/sources/packed/row_images.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/value_parts.h"

namespace headrace {
namespace {

// A field of the documents, and the position of its values in a row.
struct PackedField {
  size_t from = 0, to = 0;
  DType stored = DType::kInt64, delivered = DType::kInt64;
  int64_t pad = 0;
  bool next = false;  // if a piece's document continues, also read the next value
};

class PackedSource final : public Source {
 public:
  PackedSource(SourcePtr source, const PackedRowOptions& options, const DocumentFields& fields,
               DocumentRows packing, uint64_t of_lengths)
      : source_(std::move(source)),
        options_(options),
        packing_(std::move(packing)),
        wanted_of_documents_(source_->schema().size(), false) {
    const Schema& from = source_->schema();
    const bool hugging = options_.shift == 0, labeled = options_.shift >= 0;
    const bool own_labels = labeled && fields.labels;
    add_values(fields.tokens, hugging ? "input_ids" : options_.tokens, options_.to, options_.pad,
               labeled && !own_labels);
    if (labeled) {
      labels_ = schema_.size();
      add(hugging ? "labels" : "targets", options_.to, options_.pack.length);
    }
    for (const size_t field : fields.along) {
      add_values(field, from[field].name, from[field].dtype, 0, false);
    }
    if (own_labels) {  // read into a buffer after those of the fields
      add_values(*fields.labels, {}, options_.to, options_.ignore_index, true);
    }
    positions_ = schema_.size();
    add("position_ids", DType::kInt64, options_.pack.length);
    add("segment_ids", DType::kInt32, options_.pack.length);
    add("cu_seqlens", DType::kInt32, packing_.max_pieces + 1);
    if (options_.samples && !options_.samples->images.empty()) add_images(fields.images);
    for (PackedField& field : values_) {
      if (field.to == kLabelsOnly) field.to = schema_.size();
    }
    by_parts_ = has_parts(*source_);
    fingerprint_ = fingerprint_of(of_lengths);
  }

  int64_t size() const override { return packing_.rows(); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return source_->read_style(); }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string identity() const override {
    return "packed " + std::to_string(fingerprint_) + " of " + source_->identity();
  }

  std::string key(int64_t index) const override {
    const PackedPieces pieces = pieces_of(index);
    const std::string first = source_->key(pieces.front().document);
    return pieces.size() == 1 ? first
                              : first + " and " + std::to_string(pieces.size() - 1) + " more";
  }
  Where where(int64_t index) const override {
    Where place = source_->where(pieces_of(index).front().document);
    place.record = index;
    return place;
  }
  std::string root() const override { return source_->root(); }

  std::string description() const override {
    const double places = static_cast<double>(size()) * static_cast<double>(options_.pack.length);
    const auto tenths =
        static_cast<int64_t>(1000.0 * static_cast<double>(packing_.tokens) / places + 0.5);
    std::string out = "packed (" + count_text(size(), "row") + " of " +
                      with_commas(options_.pack.length) + ", " + std::to_string(tenths / 10) + "." +
                      std::to_string(tenths % 10) + " % tokens";
    const auto add = [&](int64_t count, const std::string& noun, const char* what) {
      if (count > 0) out += ", " + count_text(count, noun) + " " + what;
    };
    add(packing_.cut, "document", options_.pack.truncates() ? "truncated" : "split");
    add(packing_.dropped, "document", "left out");
    add(packing_.tokens_left_out, "token", "left out");
    return out + ") of " + source_->description();
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], schema_.size(), schema_.size() + 6, out[i]);
      if (Result<void> read = read_row(indices[i], wanted, out[i]); !read) {
        read.error().where.record = indices[i];
        out[i].result = std::move(read);
      }
    }
  }

  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    if (source_->read_style() != ReadStyle::kLater) return;
    for (const PackedPiece& piece : pieces_of(index)) {
      if (!by_parts_) {
        source_->pieces(piece.document, wanted_inside(wanted), out);
        continue;
      }
      for (const PackedField& field : values_) {
        if (!is_wanted(field, wanted)) continue;
        const Origin origin = source_->origin(piece.document, field.from);
        parts_of(*origin.source)
            ->part_pieces(origin.index, origin.field, piece.begin, count_of(piece, field), out);
      }
    }
  }

 private:
  static constexpr size_t kLabelsOnly = SIZE_MAX;

  bool has_images() const { return images_ < schema_.size(); }
  void add_images(size_t first) {
    images_ = schema_.size();
    for (size_t i = 0; i < image_fields_.size(); ++i) {
      image_fields_[i] = first + i;
      wanted_of_documents_[first + i] = true;
    }
    schema_.push_back({.name = kSampleImages, .kind = FieldKind::kBytes});
    for (const char* name : {kSamplePositions, kSampleSizes}) {
      Shape shape = {-1};
      if (name == kSampleSizes) shape.push_back(2);
      schema_.push_back({.name = name,
                         .kind = FieldKind::kTensor,
                         .dtype = DType::kInt64,
                         .shape = std::move(shape),
                         .row_group = 1});
    }
  }
  std::vector<bool> wanted_inside(const std::vector<bool>& wanted) const {
    std::vector<bool> out = wanted_of_documents_;
    if (has_images() && !wanted[images_]) out[image_fields_[0]] = false;
    return out;
  }

  void add(const std::string& name, DType dtype, int64_t size) {
    schema_.push_back({.name = name, .kind = FieldKind::kTensor, .dtype = dtype, .shape = {size}});
  }
  // `name`: empty if the values are used only for labels.
  void add_values(size_t number, const std::string& name, DType to, int64_t pad, bool for_labels) {
    wanted_of_documents_[number] = true;
    values_.push_back({.from = number,
                       .to = name.empty() ? kLabelsOnly : schema_.size(),
                       .stored = source_->schema()[number].dtype,
                       .delivered = to,
                       .pad = pad,
                       .next = for_labels && options_.shift == 1});
    if (for_labels) labels_from_ = values_.size() - 1;
    if (!name.empty()) add(name, to, options_.pack.length);
  }

  uint64_t fingerprint_of(uint64_t of_lengths) const {
    Fingerprint print;
    print.add("packed");
    print.add(source_->fingerprint());
    print.add(of_lengths);
    const RowPacking& pack = options_.pack;
    for (const int64_t number :
         {pack.length, static_cast<int64_t>(pack.method), static_cast<int64_t>(pack.too_long),
          static_cast<int64_t>(pack.seed), int64_t{options_.shift}, options_.pad,
          options_.ignore_index}) {
      print.add(static_cast<uint64_t>(number));
    }
    print.add(name_of(options_.to));
    print.add(options_.tokens);
    print.add(options_.labels);
    for (const std::string& name : options_.along) print.add(name);
    return print.value();
  }

  PackedPieces pieces_of(int64_t row) const {
    const auto number = static_cast<size_t>(row);
    const auto begin = static_cast<size_t>(number == 0 ? 0 : packing_.row_ends[number - 1]);
    const auto end = static_cast<size_t>(packing_.row_ends[number]);
    return PackedPieces(packing_.pieces).subspan(begin, end - begin);
  }

  static int64_t count_of(const PackedPiece& piece, const PackedField& field) {
    return piece.count + (field.next && piece.continues ? 1 : 0);
  }
  // Whether labels are requested and are made from this field.
  bool makes_labels(const PackedField& field, const std::vector<bool>& wanted) const {
    return labels_ < schema_.size() && &field == &values_[labels_from_] && wanted[labels_];
  }
  bool is_wanted(const PackedField& field, const std::vector<bool>& wanted) const {
    return makes_labels(field, wanted) || (field.to < schema_.size() && wanted[field.to]);
  }

  Result<void> read_row(int64_t index, const std::vector<bool>& wanted, RecordData& out) const {
    const PackedPieces pieces = pieces_of(index);
    if (!by_parts_) {
      if (Result<void> read = read_documents(pieces, wanted, out); !read) return read;
    }
    for (const PackedField& field : values_) {
      if (!is_wanted(field, wanted)) continue;
      if (Result<void> read = read_values(field, pieces, wanted, out); !read) return read;
    }
    const auto write = [&]<class T>(size_t field, T, const auto& fill) {
      if (!wanted[field]) return;
      Buffer& buffer = out.owned[field];
      buffer.resize(static_cast<size_t>(schema_[field].shape[0]) * sizeof(T));
      fill(std::span(reinterpret_cast<T*>(buffer.data()), buffer.size() / sizeof(T)));
      out.fields[field].bytes = buffer.bytes();
    };
    write(positions_, int64_t{}, [&](auto to) { write_position_ids(pieces, to); });
    write(positions_ + 1, int32_t{}, [&](auto to) { write_segment_ids(pieces, to); });
    write(positions_ + 2, int32_t{},
          [&](auto to) { write_cu_seqlens(pieces, options_.pack.length, to); });
    if (!has_images()) return {};
    return read_images(pieces, wanted, out);
  }

  // Reads documents completely if parts cannot be read separately.
  Result<void> read_documents(PackedPieces pieces, const std::vector<bool>& wanted,
                              RecordData& out) const {
    std::vector<int64_t> documents;
    for (const PackedPiece& piece : pieces) documents.push_back(piece.document);
    if (out.parts.size() < pieces.size()) out.parts.resize(pieces.size());
    const auto parts = std::span(out.parts).first(pieces.size());
    for (RecordData& part : parts) part.max_bytes = out.max_bytes;
    const std::vector<bool> inside = wanted_inside(wanted);
    if (has_images() && wanted[images_]) return read_with_images(documents, inside, parts);
    source_->read(documents, inside, parts);
    for (RecordData& part : parts) {
      if (!part.result) return std::move(part.result);
    }
    return {};
  }

  // Reads documents one after the other: max_bytes limits the images of all together.
  Result<void> read_with_images(std::span<const int64_t> documents, const std::vector<bool>& inside,
                                std::span<RecordData> parts) const {
    const size_t most = parts.empty() ? 0 : parts[0].max_bytes;
    size_t taken = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].max_bytes = most - taken;
      source_->read(documents.subspan(i, 1), inside, parts.subspan(i, 1));
      if (Result<void>& result = parts[i].result; !result) {
        if (i == 0 || result.error().code->kind != ErrorKind::kResource) return std::move(result);
        return Error{.code = &kTooManyImages,
                     .what = "the images of a row have more than " +
                             with_commas(static_cast<int64_t>(most)) +
                             " bytes: " + result.error().what};
      }
      taken += parts[i].fields[image_fields_[0]].bytes.size();
    }
    return {};
  }

  Result<void> read_images(PackedPieces pieces, const std::vector<bool>& wanted,
                           RecordData& out) const {
    RowImages images;
    int64_t at = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const std::vector<FieldData>& fields = out.parts[i].fields;
      images.add(at, fields[image_fields_[0]].bytes, fields[image_fields_[1]].bytes,
                 fields[image_fields_[2]].bytes, fields[image_fields_[3]].bytes);
      at += pieces[i].count;
    }
    const auto put = [&](size_t number, Shape shape, const auto& write) {
      if (!wanted[images_ + number]) return;
      Buffer& buffer = out.owned[schema_.size() + 3 + number];
      write(buffer);
      out.fields[images_ + number].bytes = buffer.bytes();
      out.fields[images_ + number].shape = std::move(shape);
    };
    put(0, {}, [&](Buffer& to) { images.write(to); });
    put(1, {images.count()}, [&](Buffer& to) { images.write_positions(to); });
    put(2, {images.count(), 2}, [&](Buffer& to) { images.write_sizes(to); });
    return {};
  }

  // One field of a row, and the labels if they are derived from it.
  Result<void> read_values(const PackedField& field, PackedPieces pieces,
                           const std::vector<bool>& wanted, RecordData& out) const {
    const size_t item = size_of(field.delivered),
                 length = static_cast<size_t>(options_.pack.length);
    const bool labels = makes_labels(field, wanted);
    Buffer& row = out.owned[field.to];
    row.resize((length + 1) * item);  // plus the value after the last one in the row
    if (labels) out.owned[labels_].resize(length * item);
    size_t at = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (Result<void> read = read_piece(field, pieces, i, row.data() + at * item, out); !read) {
        return read;
      }
      if (labels) {
        write_labels(pieces[i], row.data() + at * item, field.delivered, options_.shift,
                     options_.ignore_index, out.owned[labels_].data() + at * item);
      }
      at += static_cast<size_t>(pieces[i].count);
    }
    const auto rest = static_cast<int64_t>(length - at);
    if (labels) {
      fill_integers(out.owned[labels_].data() + at * item, field.delivered, rest,
                    options_.ignore_index);
      out.fields[labels_].bytes = out.owned[labels_].bytes();
    }
    if (field.to >= schema_.size() || !wanted[field.to]) return {};
    if (is_integer(field.delivered)) {
      fill_integers(row.data() + at * item, field.delivered, rest, field.pad);
    } else {
      std::fill_n(row.data() + at * item, static_cast<size_t>(rest) * item, uint8_t{0});
    }
    out.fields[field.to].bytes = {row.data(), length * item};
    return {};
  }

  Result<void> read_piece(const PackedField& field, PackedPieces pieces, size_t number, uint8_t* to,
                          RecordData& out) const {
    const PackedPiece& piece = pieces[number];
    const int64_t count = count_of(piece, field);
    const size_t item = size_of(field.stored);
    const uint8_t* stored = nullptr;
    if (by_parts_) {
      const Origin origin = source_->origin(piece.document, field.from);
      Buffer& between = out.owned[schema_.size() + 1];
      const bool in_place = field.stored == field.delivered;
      if (!in_place) between.resize(static_cast<size_t>(count) * item);
      uint8_t* into = in_place ? to : between.data();
      if (Result<void> read = parts_of(*origin.source)
                                  ->read_part(origin.index, origin.field, piece.begin, count,
                                              out.owned[schema_.size() + 2], into);
          !read) {
        return read;
      }
      if (in_place) return {};
      stored = into;
    } else {
      const auto bytes = out.parts[number].fields[field.from].bytes;
      const auto end = static_cast<size_t>(piece.begin + count);
      const bool same =
          piece.continues ? bytes.size() > (end - 1) * item : bytes.size() == end * item;
      if (!same) return other_length(piece, field, bytes.size() / item);
      stored = bytes.data() + static_cast<size_t>(piece.begin) * item;
    }
    return deliver(field, piece, stored, count, to);
  }

  Result<void> deliver(const PackedField& field, const PackedPiece& piece, const uint8_t* stored,
                       int64_t count, uint8_t* to) const {
    if (field.stored == field.delivered) {
      std::copy_n(stored, static_cast<size_t>(count) * size_of(field.stored), to);
      return {};
    }
    if (const auto bad = unrepresentable_value(stored, field.stored, count, field.delivered)) {
      return too_wide_token(*source_, piece.document, field.from, *bad, field.delivered);
    }
    convert_integers(stored, field.stored, count, field.delivered, to);
    return {};
  }

  Error other_length(const PackedPiece& piece, const PackedField& field, size_t found) const {
    return document_error(
        kOtherLength, *source_, piece.document,
        value_text(source_->schema()[field.from].name, piece.document) + " has " +
            with_commas(static_cast<int64_t>(found)) + " values, the packing expects " +
            (piece.continues ? "more than " : "") + with_commas(piece.begin + piece.count),
        "recreate the source, from data that does not change");
  }

  const SourcePtr source_;
  const PackedRowOptions options_;
  const DocumentRows packing_;
  Schema schema_;
  std::vector<PackedField> values_;
  std::vector<bool> wanted_of_documents_;
  size_t labels_ = SIZE_MAX;  // index of the field of labels or targets, if any
  size_t labels_from_ = 0;    // index in values_
  size_t positions_ = 0;      // index of position_ids, followed by segment_ids and cu_seqlens
  size_t images_ = SIZE_MAX;  // index of the images, followed by their positions and sizes, if any
  std::array<size_t, 4> image_fields_{};  // fields of the documents, starting at kSampleImages
  bool by_parts_ = true;                  // whether parts of documents can be read separately
  uint64_t fingerprint_ = 0;
};
}  // namespace

SourcePtr packed_source(SourcePtr documents, const PackedRowOptions& options,
                        const DocumentFields& fields, DocumentRows rows, uint64_t of_lengths) {
  return std::make_shared<PackedSource>(std::move(documents), options, fields, std::move(rows),
                                        of_lengths);
}

}  // namespace headrace
