// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/image_layout.h"

#include <algorithm>
#include <cstring>

#include "headrace/sources/packed/document_errors.h"
#include "headrace/sources/packed/samples.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kPlaceholders{
    "HR1453", ErrorKind::kData, "placeholders do not match the images",
    "Each image of a document has one placeholder among its tokens (expand=True), or one for each "
    "of its tokens (expand=False). A document with more or fewer is damaged, lacks images, or was "
    "tokenized for images of other sizes."};

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

Result<ImageLayout> image_layout(std::span<const int64_t> ids, std::span<const ImageForm> forms,
                                 int64_t placeholder, bool expand) {
  const int64_t count = std::ssize(ids);
  ImageLayout out{.runs = {}, .positions = {}, .length = count};
  if (forms.empty()) {
    out.runs.push_back({.begin = 0, .count = count});
    return out;
  }
  int64_t images = 0, wanted = 0;
  for (const ImageForm& form : forms) {
    images += form.tokens > 0;
    wanted += expand ? form.tokens > 0 : form.tokens;
  }
  const auto total = std::ranges::count(ids, placeholder);
  if (total != wanted) {
    return Error{.code = &kPlaceholders,
                 .what = count_text(total, "placeholder") + " (id " + std::to_string(placeholder) +
                         ") for " + count_text(images, "image") +
                         (expand ? "" : " of " + count_text(wanted, "token"))};
  }
  int64_t begin = 0, found = 0, rest = 0;
  auto next = forms.begin();
  for (int64_t at = 0; at < count && found < total; ++at) {
    if (ids[static_cast<size_t>(at)] != placeholder) continue;
    ++found;
    if (rest > 0) {  // another placeholder of the same image
      --rest;
      continue;
    }
    while (next->tokens == 0) ++next;
    const int64_t tokens = (next++)->tokens;
    out.positions.push_back(at + out.length - count);
    if (expand) {
      out.runs.push_back({.begin = begin, .count = at - begin, .image_tokens = tokens});
      begin = at + 1;
      out.length += tokens - 1;
    } else {
      rest = tokens - 1;
    }
  }
  out.runs.push_back({.begin = begin, .count = count - begin});
  return out;
}

void spread(const ImageLayout& layout, std::span<const uint8_t> values, size_t item,
            std::span<const uint8_t> filler, Buffer& out) {
  out.resize(static_cast<size_t>(layout.length) * item);
  uint8_t* at = out.data();
  for (const Run& run : layout.runs) {
    const uint8_t* const begin = values.data() + static_cast<size_t>(run.begin) * item;
    const size_t bytes = static_cast<size_t>(run.count) * item;
    if (bytes > 0) std::memcpy(at, begin, bytes);
    at += bytes;
    const uint8_t* const one = filler.empty() ? begin + bytes : filler.data();
    for (int64_t i = 0; i < run.image_tokens; ++i, at += item) std::memcpy(at, one, item);
  }
}

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
