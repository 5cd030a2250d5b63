// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>

#include "headrace/codecs/video/frame_bytes.h"
#include "headrace/codecs/video/media_decoder.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
// Three buffers keep everybody busy: one at the consumer, one ready, one being filled. Small
// batches get more, so that an uneven consumer does not stall the workers.
constexpr int kUsualDepth = 3, kDeepest = 8;
constexpr size_t kDeepBytes = 64 * kMiB;
// What a worker keeps between records, of which its run's read buffers have kKeptBytes and the
// Renderer the rest; and what the smallest useful share of the others is.
constexpr size_t kThreadBytes = 8 * kMiB, kKeptBytes = 4 * kMiB, kLeastRecords = 8 * kMiB,
                 kLeastReadAhead = kMiB;

// A clip's frames that a worker keeps: 16 of 1920 x 1080 take 48 MiB.
constexpr size_t kMostKeptFrames = 64 * kMiB;

// What else a near partner may take on average.
constexpr size_t kNearRows = 16 << 10;

const ErrorCode kLimitTooSmall{
    "HR0702", ErrorKind::kConfig, "memory_limit too small",
    "The limit must hold at least two batches, the scratch of every thread, and the working memory "
    "of one record. Use a smaller batch, fewer threads, uint8 or float16 batches, or a higher "
    "limit."};

void add_sound(const ClipForm& form, PixelsBetween::SoundOfVideo& to) {
  to.times += form.sounds();
  const bool known = form.sound_frames >= 0 && to.seconds >= 0;
  to.seconds = known ? std::max(to.seconds, double(form.sound_frames) / form.sound_rate) : -1;
}

std::string in_mib(size_t bytes) { return std::to_string((bytes + kMiB - 1) / kMiB) + " MiB"; }

}  // namespace

size_t batch_bytes(const Plan& plan, int64_t rows, const LeftToDevice& left) {
  size_t bytes = 0;
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const Output& output = plan.outputs()[i];
    if (left.finishes(i)) bytes += slot_row_bytes(output, i, left);
    if (left.decodes(i)) bytes += CodedRows::told_row_bytes(left.coded_row);
    if (left.place(i) != FinishPlace::kDevice) bytes += output.bytes_per_record;
  }
  return bytes * size_t(rows);
}

MemoryShares divide_memory(size_t limit, size_t batch_bytes, int threads, bool reads_ahead,
                           bool has_lists, std::optional<size_t> host_bytes) {
  MemoryShares shares;
  shares.renderer_bytes = kThreadBytes - kKeptBytes;
  shares.threads = kThreadBytes * static_cast<size_t>(threads);
  // Which records are too large must not depend on the number of threads, nor on who finishes and
  // decodes, or batches would.
  const size_t on_host = host_bytes.value_or(batch_bytes);
  const size_t beside_batches = limit - std::min(limit, 2 * on_host);
  shares.largest_record = beside_batches / (has_lists ? 6 : 3);
  shares.largest_listed = beside_batches / 2;  // a batch of larger ones is refused anyway
  const size_t fixed = shares.threads + (reads_ahead ? kLeastReadAhead : 0);
  const size_t least = fixed + std::max(kLeastRecords, fixed / 2);  // so that a third is left
  const size_t wanted = std::max(least, fixed + shares.largest_record * (has_lists ? 2 : 1));
  shares.depth = kUsualDepth;
  while (shares.depth < kDeepest && (shares.depth + 1) * batch_bytes <= kDeepBytes) ++shares.depth;
  while (shares.depth > 2 && shares.depth * batch_bytes + wanted > limit) --shares.depth;
  shares.slots = shares.depth * batch_bytes;
  size_t lowest = 2 * batch_bytes + least;
  if (batch_bytes > on_host) {  // the largest record has its room beside these, too
    const size_t beside =
        has_lists ? 3 * fixed - 3 * std::min(2 * fixed, least) / 2 : fixed * 3 / 2;
    lowest = std::max(lowest, 3 * batch_bytes - on_host + beside + 1);
  }
  if (lowest > limit) {
    raise(kLimitTooSmall,
          "memory_limit is " + in_mib(limit) + ", the least that works here is " + in_mib(lowest) +
              " (2 batches of " + in_mib(batch_bytes) + ", " + std::to_string(threads) +
              " threads)",
          "raise memory_limit, or use a smaller batch_size or fewer threads");
  }
  size_t rest = limit - shares.slots - shares.threads;
  if (has_lists) shares.lists = (rest - least + shares.threads) / 2;
  rest -= shares.lists;
  if (reads_ahead) {
    shares.read_ahead = std::clamp(rest / 4, kLeastReadAhead, 64 * kMiB);
    shares.read_ahead = std::min(shares.read_ahead, rest - shares.largest_record);
    // One file alone may exceed the share; what it has beyond comes out of the records' share.
    shares.largest_file = std::max(kLeastReadAhead, shares.largest_record);
  }
  shares.records = rest - shares.read_ahead;
  return shares;
}

MemoryShares with_near_partners(MemoryShares shares, const Plan& plan) {
  const int64_t within = plan.partners_within();
  const size_t to_spare = shares.records - std::min(shares.records, shares.largest_record);
  const size_t each = plan.prepared_bytes() + kNearRows;
  shares.kept = size_t(std::min<int64_t>(within, int64_t(to_spare / 2 / each))) * each;
  shares.records -= shares.kept;
  return shares;
}

MemoryShares with_kept_frames(MemoryShares shares, const Plan& plan, int threads) {
  const bool takes_clips = std::ranges::any_of(
      plan.steps(), [](const Step& step) { return step.op && step.op->clip(); });
  if (!takes_clips) return shares;
  const size_t to_spare = shares.records - std::min(shares.records, shares.largest_record);
  const size_t each = std::min(to_spare / 2 / size_t(threads), kMostKeptFrames);
  shares.renderer_bytes += each;
  shares.threads += each * size_t(threads);
  shares.records -= each * size_t(threads);
  return shares;
}

PixelsBetween pixels_between(const Plan& plan) {
  PixelsBetween out;
  std::vector<FieldState> states = plan.inputs();
  std::vector<std::vector<FieldState>> outside;  // of the selections that a step stands under
  std::vector<int> pass(states.size(), 1);
  const std::vector<int> passes = plan.passes();
  std::vector<int> root(states.size());  // what a Fork's view is a view of
  std::iota(root.begin(), root.end(), 0);
  out.views.resize(states.size());
  out.kept_of_video.resize(states.size());
  out.sound_of_video.resize(states.size());
  std::vector<bool> kept_with_pixels(states.size());
  const auto count_sound = [&](const FieldState& state) {  // at a step that needs its samples
    if (state.kind != FieldKind::kAudio) return;
    out.any = true;
    const bool open = std::ranges::any_of(state.shape, [](int64_t size) { return size < 0; });
    out.open_sounds |= open;
    if (open) return;
    out.largest_sound =
        std::max(out.largest_sound, size_t(element_count(state.shape)) * size_of(state.dtype));
  };
  const auto count = [&](const FieldState& state) {
    if (!is_picture(state.kind)) return;
    out.any = true;
    const bool open =
        std::any_of(state.shape.begin(), state.shape.end(), [](int64_t size) { return size < 0; });
    const size_t sample = size_of(state.dtype);
    if (open) {
      out.open_factor = std::max(out.open_factor, sample);
    } else {
      out.largest = std::max(out.largest, size_t(element_count(state.shape)) * sample);
      out.known_pixels =
          std::max(out.known_pixels, size_t(state.shape[1]) * size_t(state.shape[2]));
    }
  };
  const auto count_field = [&](int field) {
    count(states[field]);
    if (!is_picture(states[field].kind) || states[field].clip_frame < 0) return;
    if (kept_with_pixels[field]) return;
    kept_with_pixels[field] = true;
    ++out.kept_with_pixels;
  };
  for (size_t s = 0; s < plan.steps().size(); ++s) {
    const Step& step = plan.steps()[s];
    if (step.op && step.op->clip()) {
      out.any = true;
      const ClipForm& form = *step.op->clip();
      out.kept_of_video[root[step.fields[0]]] += size_t(form.pictures());
      if (form.sound_rate > 0) add_sound(form, out.sound_of_video[root[step.fields[0]]]);
      continue;
    }
    if (step.kind == Step::Kind::kPython) {
      out.any = true;
      for (int field : step.fields) count_field(field);
      for (int field : step.fields) out.clips_cross |= states[field].clip_frame >= 0;
      for (int field : step.fields) count_sound(states[field]);
      for (const FieldState& state : step.after) count(state);
      for (size_t i = 0; i < step.output_fields.size(); ++i) {
        states[step.output_fields[i]] = step.after[i];
      }
      continue;
    }
    if (step.kind == Step::Kind::kSelect) outside.push_back(states);
    if (step.kind == Step::Kind::kNext) {  // another list begins where this one did
      states = outside.back();
      if (step.list + 1 == std::ssize(plan.steps()[step.select].lists)) outside.pop_back();
    }
    if (step.kind == Step::Kind::kCopy) {
      states[step.fields[1]] = states[step.fields[0]];
      pass[step.fields[1]] = pass[step.fields[0]];
      root[step.fields[1]] = root[step.fields[0]];
      ++out.views[root[step.fields[0]]];
      continue;
    }
    if (step.op && (step.op->partners() > 0 || step.op->measures())) {  // it works on pixels
      out.any = true;
      out.scratch_per_pixel = std::max(out.scratch_per_pixel, step.op->scratch_per_pixel());
      for (int field : step.fields) count_field(field);
      for (int field : step.fields) count_sound(states[field]);
      for (const FieldState& state : step.after) count(state);
      for (const FieldState& state : step.after) count_sound(state);
    }
    const bool rehearsed = passes[s] > 0;  // else nobody knows where a rendering begins
    const bool anew =
        step.op && !step.fields.empty() && (!rehearsed || passes[s] > pass[step.fields[0]]);
    for (size_t i = 0; i < step.fields.size(); ++i) {
      if (anew) count_field(step.fields[i]);
      if (anew) pass[step.fields[i]] = passes[s];
      if (i < step.after.size()) states[step.fields[i]] = step.after[i];
    }
  }
  return out;
}

size_t PixelsBetween::bytes_of(const Sound& sound) const {
  if (!sound.is_encoded() || (largest_sound == 0 && !open_sounds)) return 0;
  const size_t samples = std::max(largest_sound, open_sounds ? sound.sample_bytes() : 0);
  return 2 * samples + sound.header.working_bytes;
}

size_t PixelsBetween::scratch_bytes(const Recipe& picture) const {
  const Size size = picture.size();
  return scratch_per_pixel *
         std::max(known_pixels, open_factor ? size_t(size.height) * size_t(size.width) : 0);
}

size_t PixelsBetween::bytes_of(const Recipe& picture) const {
  return bytes_of_pictures(picture.size(), picture.channels());
}

size_t PixelsBetween::bytes_of_pictures(Size size, int channels) const {
  return std::max(largest, open_factor * size_t(size.height) * size.width * size_t(channels));
}

// The frames that are kept, those that the decoder has, and pixels where a step needs them.
size_t PixelsBetween::bytes_of(const Video& video, size_t field) const {
  const VideoTrack& track = *video.track;
  size_t bytes = video_working_bytes(track) + kept_of_video[field] * most_frame_bytes(track);
  if (const SoundOfVideo& sound = sound_of_video[field]; sound.times > 0) {
    // As decoded, two channels of 48 kHz, and at another rate.
    constexpr double kBytesASecond = 2 * 2 * 48000 * sizeof(float);
    const double whole = track.seconds(track.duration);
    const double seconds = std::clamp(sound.seconds < 0 ? whole : sound.seconds, 0.0, 1e6);
    bytes += size_t(double(sound.times) * seconds * kBytesASecond);
    bytes += sound_working_bytes(track, video.file);
  }
  if (kept_with_pixels == 0) return bytes;
  const size_t copies = clips_cross ? 5 : 2;  // before and after Python, there, and as one array
  return bytes + copies * kept_with_pixels * bytes_of_pictures({track.height, track.width}, 3);
}

}  // namespace headrace
