// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/image_forms.h"

#include "headrace/sources/packed/document_errors.h"
#include "headrace/sources/packed/samples.h"

namespace headrace {
namespace {

const ErrorCode kUnusableImage{
    "HR1454", ErrorKind::kData, "image cannot be packed",
    "The number of tokens of an image follows from the size in its header. This header cannot be "
    "read, or the transforms do not accept an image of that size. Repair or remove the record; "
    "bad_images=\"drop\" drops such records, and print(rows) counts them."};

// Whether a record has no value for an image.
bool is_empty(const Source& source, size_t field, int64_t record) {
  std::vector<bool> wanted(source.schema().size());
  wanted[field] = true;
  RecordData data;
  source.read(std::span(&record, 1), wanted, std::span(&data, 1));
  if (!data.result) {
    if (!is_bad_record(data.result.error())) throw Exception(data.result.error());
    return false;
  }
  return data.fields[field].bytes.empty();
}

}  // namespace

std::vector<ImageForm> image_forms(const Source& source, const SampleOptions& options,
                                   std::vector<int64_t>& lengths) {
  const size_t each = options.images.size();
  std::vector<ImageForm> forms(lengths.size() * each);
  for (size_t document = 0; document < lengths.size() && each > 0; ++document) {
    const auto number = static_cast<int64_t>(document);
    for (size_t i = 0; i < each; ++i) {
      const std::string& name = options.images[i];
      const size_t at = document * each + i;
      const int64_t height = options.sizes[2 * at], width = options.sizes[2 * at + 1];
      const bool readable = height > 0 && width > 0;
      if (!readable && is_empty(source, field_number(source.schema(), name), number)) continue;
      Result<ImageForm> form =
          readable ? options.rule(height, width) : Error{.what = "its header is damaged"};
      if (form) {
        forms[at] = *form;
        if (options.expand) lengths[document] += form->tokens - 1;
        continue;
      }
      if (!options.drop_bad) {
        throw Exception(document_error(kUnusableImage, source, number,
                                       value_text(name, number) + ": " + form.error().what,
                                       "bad_images=\"drop\" drops such records"));
      }
      lengths[document] = 0;
      break;
    }
  }
  return forms;
}

}  // namespace headrace
