// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/sound_forms.h"

#include <deque>
#include <string>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/codecs/audio/audio_clip.h"
#include "headrace/fields/record.h"
#include "headrace/sources/header_cache.h"

namespace headrace {
namespace {

struct Key {
  std::string identity, field;
  bool operator==(const Key&) const = default;
};

Key key_of(const Source& source, size_t field) {
  return {source.identity(), source.schema()[field].name};
}

class KnownForms {
 public:
  void keep(Key key, SoundForms forms) EXCLUDES_LOCK(mutex_) {
    constexpr size_t kMax = 16;
    const MutexLock lock(mutex_);
    entries_.emplace_front(std::move(key), std::move(forms));
    if (entries_.size() > kMax) entries_.pop_back();
  }
  SoundForms of(const Key& key) const EXCLUDES_LOCK(mutex_) {
    const MutexLock lock(mutex_);
    for (const auto& [of, forms] : entries_) {
      if (of == key) return forms;
    }
    return nullptr;
  }

 private:
  mutable Mutex mutex_;
  std::deque<std::pair<Key, SoundForms>> entries_ GUARDED_BY(mutex_);  // latest first
};

KnownForms& known() {
  static KnownForms forms;
  return forms;
}

SoundForms remember(const Source& source, size_t field, std::vector<SoundForm> forms) {
  auto made = std::make_shared<const std::vector<SoundForm>>(std::move(forms));
  known().keep(key_of(source, field), made);
  return made;
}

}  // namespace

SoundForms read_sound_forms(const Source& source, size_t field, const Progress& progress) {
  constexpr int64_t kToldEvery = 256;
  constexpr size_t kNumbers = 3;  // numbers per record in the cache
  std::vector<bool> wanted(source.schema().size());
  wanted[field] = true;
  std::vector<SoundForm> forms(static_cast<size_t>(source.size()));
  const HeaderCache cache(source, field);
  if (const auto kept = cache.read(forms.size() * kNumbers)) {
    for (size_t i = 0; i < forms.size(); ++i) {
      const int64_t* const numbers = kept->data() + i * kNumbers;
      forms[i] = {numbers[0], static_cast<int32_t>(numbers[1]), static_cast<int32_t>(numbers[2])};
    }
    return remember(source, field, std::move(forms));
  }
  bool all_read = true;  // results are not cached if a storage fails
  AudioDecoders decoders;
  RecordData record;
  record.by_range = &wanted;  // open files: only the headers of long audio are read
  for (int64_t i = 0; i < source.size(); ++i) {
    source.read({&i, 1}, wanted, {&record, 1});
    if (record.result) {
      const Result<AudioClip> sound = open_audio(byte_ranges_of(record.fields[field]), decoders);
      if (sound) {
        forms[static_cast<size_t>(i)] = {sound->frames(), sound->header.sample_rate,
                                         sound->header.channels};
      }
    } else {
      all_read &= is_bad_record(record.result.error());
    }
    if (progress && i % kToldEvery == 0) progress(i, source.size());
  }
  std::vector<int64_t> numbers;
  for (const SoundForm& form : forms) {
    numbers.insert(numbers.end(), {form.frames, form.sample_rate, form.channels});
  }
  if (all_read) cache.write(numbers);
  return remember(source, field, std::move(forms));
}

std::vector<SoundForms> known_sound_forms(const Source& source) {
  std::vector<SoundForms> out;
  for (size_t i = 0; i < source.schema().size(); ++i) {
    const Field& field = source.schema()[i];
    const bool stored = field.kind == FieldKind::kAudio && field.encoded;
    out.push_back(stored ? known().of(key_of(source, i)) : nullptr);
  }
  return out;
}

}  // namespace headrace
