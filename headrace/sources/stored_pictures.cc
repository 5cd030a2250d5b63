// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/stored_pictures.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "headrace/fields/pictures.h"
#include "headrace/image/render.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/subset.h"

namespace headrace {
namespace {

const ErrorCode kNoneOpens{
    "HR0134", ErrorKind::kData, "image storage unknown",
    "With mode=\"stored\" images keep the channels and samples of the first image, but none of "
    "the first records could be opened. mode=\"RGB\", \"L\" and \"RGBA\" do not need to look."};

const ErrorCode kNothingDecoded{
    "HR0137", ErrorKind::kConfig, "mode needs an image to decode",
    "mode= selects what encoded images are converted to when they are decoded. Arrays keep their "
    "channels and samples, and a source without encoded images or masks has nothing to decode."};

constexpr int64_t kTried = 16;  // records

bool is_decoded(const Field& field) { return is_picture(field.kind) && field.encoded; }

using IsWanted = std::function<bool(std::string_view field)>;

class StoredPictures final : public SourceAround {
 public:
  StoredPictures(SourcePtr inner, const PictureOptions& options, const IsWanted& wanted)
      : SourceAround(std::move(inner)) {
    schema_ = this->inner()->schema();
    for (size_t i = 0; i < schema_.size(); ++i) {
      if (is_decoded(schema_[i]) && wanted(schema_[i].name)) look(i, options);
    }
  }
  const Schema& schema() const override { return schema_; }
  std::string identity() const override { return inner()->identity(); }  // the same records

 private:
  void look(size_t number, const PictureOptions& options) {
    Field& field = schema_[number];
    std::vector<bool> wanted(schema_.size());
    wanted[number] = true;
    const int64_t records = std::min(inner()->size(), kTried);
    std::optional<Error> first;
    for (int64_t index = 0; index < records; ++index) {
      const Result<PictureForm> form = form_of(index, wanted, number, options);
      if (form) {
        field.shape = {form->channels, -1, -1};
        field.dtype = form->sample;
        return;
      }
      if (form.error().code->kind == ErrorKind::kStorage) throw Exception(form.error());
      if (!first) first = form.error();
    }
    if (first) {
      raise(kNoneOpens, "\"" + field.name + "\" of record 0: " + first->what,
            first->hint.empty() ? "mode=\"RGB\"" : first->hint);
    }
  }

  Result<PictureForm> form_of(int64_t index, const std::vector<bool>& wanted, size_t number,
                              const PictureOptions& options) const {
    RecordData record;
    inner()->read({&index, 1}, wanted, {&record, 1});
    if (!record.result) return std::move(record.result.error());
    Renderer renderer;
    const Result<EncodedPicture> opened =
        renderer.open(record.fields[number].bytes, options.limits, options.page);
    if (!opened) return opened.error();
    return picture_form(options.mode, schema_[number].kind, opened->header);
  }

  Schema schema_;
};

}  // namespace

SourcePtr with_stored_pictures(const SourcePtr& source, const PictureOptions& options,
                               const IsWanted& wanted) {
  if (options.mode == PictureMode::kRGB) return source;
  const bool any = std::ranges::any_of(source->schema(), [&](const Field& field) {
    return is_decoded(field) && wanted(field.name);
  });
  if (!any) {
    raise(kNothingDecoded, "no field of the source is an encoded image",
          "leave mode= out; arrays come as they are");
  }
  if (options.mode != PictureMode::kStored) return source;
  // Below a view, whose records keep the numbers by which a row index knows them.
  return with_viewed(source, [&](const SourcePtr& viewed) {
    return std::make_shared<StoredPictures>(viewed, options, wanted);
  });
}

}  // namespace headrace
