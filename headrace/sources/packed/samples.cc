// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/samples.h"

#include <algorithm>

#include "headrace/base/byte_stream.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/packed/document_errors.h"
#include "headrace/sources/packed/image_layout.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/value_parts.h"

namespace headrace {

const ErrorCode kTooManyImages{
    "HR1457", ErrorKind::kResource, "images of a row exceed the memory limit",
    "The encoded images of the documents in one packed row have more bytes than memory_limit "
    "leaves "
    "for one record. Use a smaller length=, or raise memory_limit."};

namespace {

const ErrorCode kBadId{
    "HR1455", ErrorKind::kData, "token id out of range",
    "A document has a negative id, or one that is not below vocab_size. An embedding lookup would "
    "read outside its table."};

const ErrorCode kUnequalFields{
    "HR1456", ErrorKind::kData, "field differs from the tokens in length",
    "Labels, masks and fields of token_fields= have one value per token of their document. In this "
    "document the numbers differ, so the program that wrote it has a bug."};

class SampleSource final : public Source {
 public:
  SampleSource(SourcePtr source, SampleOptions options, std::vector<ImageForm> forms)
      : source_(std::move(source)), options_(std::move(options)), forms_(std::move(forms)) {
    inner_wanted_.assign(source_->schema().size(), false);
    tokens_ = want(options_.tokens);
    add(options_.tokens, source_->schema()[tokens_].dtype, {-1});
    if (!options_.labels.empty()) own_labels_ = want(options_.labels);
    if (!options_.mask.empty()) mask_ = want(options_.mask);
    if (options_.labeled) {
      labels_ = schema_.size();
      add(kSampleLabels, DType::kInt64, {-1});
    }
    first_along_ = schema_.size();
    for (const std::string& name : options_.along) {
      along_.push_back(want(name));
      add(name, source_->schema()[along_.back()].dtype, {-1});
    }
    first_image_ = schema_.size();
    for (const std::string& name : options_.images) {
      images_.push_back(field_number(source_->schema(), name));
    }
    if (images_.empty()) return;
    add(kSampleImages, DType::kUInt8, {-1});
    add(kSamplePositions, DType::kInt64, {-1});
    add(kSampleSizes, DType::kInt64, {-1, 2});
    add(kSampleEntries, DType::kInt64, {-1, kEntryNumbers});
  }

  DocumentFields fields() const {
    DocumentFields out;
    if (options_.labeled) out.labels = labels_;
    for (size_t i = 0; i < along_.size(); ++i) out.along.push_back(first_along_ + i);
    out.images = first_image_;
    return out;
  }

  int64_t size() const override { return source_->size(); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return source_->read_style(); }
  std::string key(int64_t index) const override { return source_->key(index); }
  Where where(int64_t index) const override { return source_->where(index); }
  std::string root() const override { return source_->root(); }
  std::string description() const override { return source_->description(); }
  std::vector<std::string> cautions() const override { return source_->cautions(); }
  std::string identity() const override {
    return "samples " + std::to_string(fingerprint()) + " of " + source_->identity();
  }
  uint64_t fingerprint() const override {
    Fingerprint print;
    print.add("samples");
    print.add(source_->fingerprint());
    for (const std::string* name : {&options_.tokens, &options_.labels, &options_.mask}) {
      print.add(*name);
    }
    for (const std::string& name : options_.images) print.add(name);
    for (const int64_t id : options_.ignore_tokens) print.add(static_cast<uint64_t>(id));
    for (const int64_t number : {options_.ignore_index, options_.placeholder, options_.vocab_size,
                                 int64_t{options_.expand}}) {
      print.add(static_cast<uint64_t>(number));
    }
    for (const ImageForm& form : forms_) {
      print.add(static_cast<uint64_t>(form.tokens));
      print.add(static_cast<uint64_t>(form.parts));
    }
    return print.value();
  }

  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    source_->pieces(index, wanted_inside(wanted), out);
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    std::vector<RecordData> inside(out.size());
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], schema_.size(), schema_.size(), out[i]);
      if (out[i].parts.empty()) out[i].parts.resize(1);
      std::swap(inside[i], out[i].parts[0]);
      inside[i].max_bytes = out[i].max_bytes;
    }
    source_->read(indices, wanted_inside(wanted), inside);
    for (size_t i = 0; i < out.size(); ++i) {
      std::swap(inside[i], out[i].parts[0]);
      RecordData& from = out[i].parts[0];
      if (!from.result) {
        out[i].result = std::move(from.result);
      } else if (Result<void> made = make(indices[i], from, wanted, out[i]); !made) {
        out[i].result = std::move(made);
      }
    }
  }

 private:
  void add(const std::string& name, DType dtype, Shape shape) {
    schema_.push_back(
        {.name = name, .kind = FieldKind::kTensor, .dtype = dtype, .shape = std::move(shape)});
  }
  size_t want(const std::string& name) {
    const size_t number = field_number(source_->schema(), name);
    inner_wanted_[number] = true;
    return number;
  }
  bool has_images(const std::vector<bool>& wanted) const {
    return !images_.empty() && wanted[first_image_];
  }
  std::vector<bool> wanted_inside(const std::vector<bool>& wanted) const {
    std::vector<bool> out = inner_wanted_;
    if (has_images(wanted)) {
      for (const size_t image : images_) out[image] = true;
    }
    return out;
  }

  std::span<const ImageForm> forms_of(int64_t document) const {
    const size_t count = images_.size();
    return std::span(forms_).subspan(static_cast<size_t>(document) * count, count);
  }

  Result<void> make(int64_t document, const RecordData& from, const std::vector<bool>& wanted,
                    RecordData& out) const {
    const auto tokens = from.fields[tokens_].bytes;
    const DType stored = source_->schema()[tokens_].dtype;
    const auto count = static_cast<int64_t>(tokens.size() / size_of(stored));
    std::vector<int64_t> ids(static_cast<size_t>(count));
    convert_integers(tokens.data(), stored, count, DType::kInt64,
                     reinterpret_cast<uint8_t*>(ids.data()));
    if (Result<void> good = check_ids(document, ids); !good) return good;
    Result<ImageLayout> layout =
        image_layout(ids, forms_of(document), options_.placeholder, options_.expand);
    if (!layout) {
      return document_error(*layout.error().code, *source_, document,
                            document_text(document) + " has " + layout.error().what);
    }
    if (wanted[0]) {
      std::vector<uint8_t> filler(size_of(stored));
      if (!images_.empty()) fill_integers(filler.data(), stored, 1, options_.placeholder);
      spread(*layout, tokens, filler.size(), filler, out.owned[0]);
      deliver(0, {layout->length}, out);
    }
    if (options_.labeled && wanted[labels_]) {
      if (Result<void> made = make_labels(document, ids, from, *layout, out); !made) return made;
    }
    for (size_t i = 0; i < along_.size(); ++i) {
      const size_t to = first_along_ + i;
      if (!wanted[to]) continue;
      if (Result<void> equal = check_length(document, along_[i], from); !equal) return equal;
      spread(*layout, from.fields[along_[i]].bytes, size_of(schema_[to].dtype), {}, out.owned[to]);
      deliver(to, {layout->length}, out);
    }
    return images_.empty() ? Result<void>() : put_images(document, from, *layout, wanted, out);
  }

  static void deliver(size_t field, Shape shape, RecordData& out) {
    out.fields[field].bytes = out.owned[field].bytes();
    out.fields[field].shape = std::move(shape);
  }

  Result<void> check_ids(int64_t document, const std::vector<int64_t>& ids) const {
    const bool wraps = source_->schema()[tokens_].dtype == DType::kUInt64;
    if (ids.empty() || (options_.vocab_size == 0 && images_.empty() && !wraps)) return {};
    const auto [least, most] = std::ranges::minmax(ids);
    const bool beyond = options_.vocab_size > 0 && most >= options_.vocab_size;
    if (least >= 0 && !beyond) return {};
    return document_error(
        kBadId, *source_, document,
        value_text(options_.tokens, document) + " has the id " +
            std::to_string(least < 0 ? least : most) +
            (least < 0 ? "" : ", but vocab_size is " + with_commas(options_.vocab_size)));
  }

  Result<void> check_length(int64_t document, size_t field, const RecordData& from) const {
    const Schema& schema = source_->schema();
    const auto elements = [&](size_t of) {
      return static_cast<int64_t>(from.fields[of].bytes.size() / size_of(schema[of].dtype));
    };
    if (elements(field) == elements(tokens_)) return {};
    return document_error(kUnequalFields, *source_, document,
                          value_text(schema[field].name, document) + " has " +
                              count_text(elements(field), "value") + ", and '" + options_.tokens +
                              "' " + with_commas(elements(tokens_)));
  }

  Result<void> make_labels(int64_t document, const std::vector<int64_t>& ids,
                           const RecordData& from, const ImageLayout& layout,
                           RecordData& out) const {
    std::vector<int64_t> values = ids;
    const auto as_int64 = [&](size_t field, std::vector<int64_t>& to) -> Result<void> {
      if (Result<void> equal = check_length(document, field, from); !equal) return equal;
      const DType stored = source_->schema()[field].dtype;
      to.resize(ids.size());
      if (stored == DType::kBool) {
        std::ranges::copy(from.fields[field].bytes, to.begin());
      } else {
        convert_integers(from.fields[field].bytes.data(), stored, std::ssize(ids), DType::kInt64,
                         reinterpret_cast<uint8_t*>(to.data()));
      }
      return {};
    };
    if (!options_.labels.empty()) {
      if (Result<void> read = as_int64(own_labels_, values); !read) return read;
      const uint8_t* const stored = from.fields[own_labels_].bytes.data();
      const DType dtype = source_->schema()[own_labels_].dtype;
      if (const auto bad =
              unrepresentable_value(stored, dtype, std::ssize(values), DType::kInt64)) {
        return too_wide_token(*source_, document, own_labels_, *bad, DType::kInt64);
      }
    }
    std::vector<int64_t> mask;
    if (!options_.mask.empty()) {
      if (Result<void> read = as_int64(mask_, mask); !read) return read;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const bool ignored =
          (!mask.empty() && mask[i] == 0) || (!images_.empty() && ids[i] == options_.placeholder) ||
          std::ranges::find(options_.ignore_tokens, ids[i]) != options_.ignore_tokens.end();
      if (ignored) values[i] = options_.ignore_index;
    }
    spread(layout, raw_bytes(values), sizeof(int64_t),
           raw_bytes(std::span(&options_.ignore_index, 1)), out.owned[labels_]);
    deliver(labels_, {layout.length}, out);
    return {};
  }

  Result<void> put_images(int64_t document, const RecordData& from, const ImageLayout& layout,
                          const std::vector<bool>& wanted, RecordData& out) const {
    std::vector<int64_t> sizes, entries;
    Buffer& bytes = out.owned[first_image_];
    size_t total = 0;
    const auto visit = [&](const auto& image) {
      for (size_t i = 0; i < images_.size(); ++i) {
        if (forms_of(document)[i].tokens > 0) image(i, from.fields[images_[i]].bytes);
      }
    };
    visit([&](size_t, std::span<const uint8_t> image) { total += image.size(); });
    if (total > out.max_bytes) {
      return document_error(kTooManyImages, *source_, document,
                            "the images of " + document_text(document) + " have " +
                                with_commas(static_cast<int64_t>(total)) + " bytes");
    }
    bytes.resize(has_images(wanted) ? total : 0);
    uint8_t* at = bytes.data();
    visit([&](size_t i, std::span<const uint8_t> image) {
      const ImageForm& form = forms_of(document)[i];
      const size_t number = static_cast<size_t>(document) * images_.size() + i;
      sizes.insert(sizes.end(), {form.height, form.width});
      entries.insert(entries.end(), {std::ssize(image), options_.sizes[2 * number],
                                     options_.sizes[2 * number + 1], form.parts, document});
      if (has_images(wanted)) at = std::ranges::copy(image, at).out;
    });
    deliver(first_image_, {std::ssize(bytes.bytes())}, out);
    const auto put = [&](size_t field, const std::vector<int64_t>& numbers, Shape shape) {
      copy_bytes(raw_bytes(numbers), out.owned[field]);
      deliver(field, std::move(shape), out);
    };
    const auto images = std::ssize(layout.positions);
    put(first_image_ + 1, layout.positions, {images});
    put(first_image_ + 2, sizes, {images, 2});
    put(first_image_ + 3, entries, {images, kEntryNumbers});
    return {};
  }

  const SourcePtr source_;
  const SampleOptions options_;
  const std::vector<ImageForm>
      forms_;  // by document and field of images; 0 tokens if there is no image
  Schema schema_;
  std::vector<bool> inner_wanted_;  // fields wanted from the documents, without images
  size_t tokens_ = 0, own_labels_ = 0, mask_ = 0, labels_ = 0, first_along_ = 0, first_image_ = 0;
  std::vector<size_t> along_, images_;
};

}  // namespace

Samples samples(const SourcePtr& source, const SampleOptions& options, const Progress& progress) {
  std::vector<int64_t> lengths =
      value_lengths(*source, field_number(source->schema(), options.tokens), progress);
  std::vector<ImageForm> forms = image_forms(*source, options, lengths);
  auto made = std::make_shared<SampleSource>(source, options, std::move(forms));
  const DocumentFields fields = made->fields();
  return {std::move(made), std::move(lengths), fields};
}

}  // namespace headrace
