// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/stored_sounds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "headrace/codecs/audio/sound.h"
#include "headrace/fields/stored_ranges.h"
#include "headrace/sources/source_around.h"

namespace headrace {
namespace {

const ErrorCode kNoSoundOpens{
    "HR0357", ErrorKind::kData, "audio storage unknown",
    "Audio has the sample rate and channels of the first record, but none of the first records "
    "could be opened. The message names the problem with the first of them."};

constexpr int64_t kSoundsTried = 16;  // records

bool is_stored_sound(const Field& field) {
  return field.kind == FieldKind::kAudio && field.encoded;
}

class StoredSounds final : public SourceAround {
 public:
  explicit StoredSounds(SourcePtr inner) : SourceAround(std::move(inner)) {
    schema_ = this->inner()->schema();
    for (size_t i = 0; i < schema_.size(); ++i) {
      if (is_stored_sound(schema_[i])) look(i);
    }
  }
  const Schema& schema() const override { return schema_; }
  std::string identity() const override { return inner()->identity(); }  // the same records

 private:
  void look(size_t number) {
    Field& field = schema_[number];
    std::vector<bool> wanted(schema_.size());
    wanted[number] = true;
    const int64_t records = std::min(inner()->size(), kSoundsTried);
    std::optional<Error> first;
    for (int64_t index = 0; index < records; ++index) {
      const Result<AudioHeader> header = header_of(index, wanted, number);
      if (header) {
        field.shape = {header->channels, -1};
        field.dtype = DType::kFloat32;
        field.sample_rate = header->sample_rate;
        return;
      }
      if (!first) first = header.error();
    }
    if (!first) return;
    raise(kNoSoundOpens,
          "\"" + field.name + "\" of record 0 (" + inner()->key(0) +
              "): " + std::string(first->code->id) + " " + first->what,
          first->hint.empty() ? "fetch such files again, or leave them out" : first->hint);
  }

  Result<AudioHeader> header_of(int64_t index, const std::vector<bool>& wanted,
                                size_t number) const {
    RecordData record;
    record.by_range = &wanted;
    inner()->read({&index, 1}, wanted, {&record, 1});
    if (!record.result) return std::move(record.result.error());
    AudioDecoders decoders;
    const Result<Sound> sound = open_sound(stored_ranges(record.fields[number]), decoders);
    if (!sound) return sound.error();
    return sound->header;
  }

  Schema schema_;
};

}  // namespace

SourcePtr with_stored_sounds(SourcePtr source) {
  if (!std::ranges::any_of(source->schema(), is_stored_sound)) return source;
  return std::make_shared<StoredSounds>(std::move(source));
}

}  // namespace headrace
