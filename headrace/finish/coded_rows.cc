// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/coded_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <utility>

#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/finish/missing_rows.h"
#include "headrace/kernels/batch/memory_sections.h"
#include "headrace/kernels/batch/queue.h"

namespace headrace {
namespace {

using Place = DeviceDecoding::Place;

constexpr size_t kSlotAlignment = 16;
// Limit on the device memory that a picture may take in addition to the batch's output. A batch
// that exceeds one scratch buffer is decoded in parts, but a picture is never split.
constexpr int64_t kMaxScratch = int64_t{128} << 20;
// Gaps up to this many bytes between two rows are copied too, because a separate copy takes as
// long.
constexpr size_t kCopiedAlong = size_t{128} << 10;

size_t in_slot(size_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

// The picture as a JPEG with its row index: an index made separately takes precedence over a
// pack's.
std::optional<DenseJpegView> jpeg_in(const EncodedImage& picture) {
  const std::span<const uint8_t> known = picture.row_index.known;
  if (picture.codec->name == "jpeg") return DenseJpegView{picture.bytes, known};
  if (picture.codec->name != "dense_jpeg") return std::nullopt;
  std::optional<DenseJpegView> view = view_of_dense(picture.bytes);
  if (view && !known.empty()) view->row_index = known;
  return view;
}

// Fills in a draft except for the rows' bytes, using rows that are known or are found now.
Place begin_draft(const CodedWindow& window, const DenseJpegView& jpeg, JpegDrafting& drafting,
                  JpegDeviceDraft& draft) {
  const EncodedImage& picture = window.picture;
  const auto is_begun_by = [&](std::span<const uint8_t> rows) {
    return !rows.empty() && drafting.begin(jpeg.jpeg, rows, window.decoded, picture.color, draft);
  };
  const bool is_begun = is_begun_by(jpeg.row_index);
  if (is_begun && (drafting.is_searched() || !picture.row_index.store)) return Place::kDevice;
  if (!is_begun && missing_rows(jpeg.jpeg, jpeg.row_index) != MissingRows::kUnknown) {
    return Place::kFormat;
  }
  const std::span<const uint8_t> learned = find_rows(picture, jpeg.jpeg);
  if (learned.empty()) return is_begun ? Place::kDevice : Place::kNoIndex;
  return is_begun_by(learned) ? Place::kDevice : Place::kFormat;
}

int64_t scratch_of(const JpegDeviceDraft& draft) {
  int64_t bytes = draft.blocks * 128 + 2 * draft.out_bytes();
  for (int c = 0; c < draft.image.components; ++c) bytes += draft.sample_bytes(c);
  return bytes;
}

// Host memory for the draft and for the data that is assembled from it.
size_t instruction_bytes_of(const JpegDeviceDraft& draft, size_t jobs, const ResizeTo& to,
                            const ResizeWindow& window, const std::vector<CodedStage>& stages) {
  const int64_t samples = draft.blocks / kPiece + 3, pixels = draft.out_bytes() / 8 / kPiece + 1;
  return sizeof(JpegDeviceDraft) + 4 * sizeof(DeviceCode) +
         jobs * (2 * sizeof(RowJob) + sizeof(WalkGroup)) +
         size_t(samples + pixels) * sizeof(PieceJob) + 3 * sizeof(ResampleJob) +
         2 * sizeof(ResizeAxis) + size_t(made_bytes(to, window)) +
         size_t(draft.out_bytes() + to.strides.picture) / 128 +
         PixelStages::instruction_bytes(stages);
}

// Adds `more` (modulo the type's size) if the sum stays within a limit. Thread-safe.
bool add_within(std::atomic<size_t>& sum, size_t more, size_t most) {
  size_t now = sum.load();
  do {
    if (now + more > most) return false;
  } while (!sum.compare_exchange_weak(now, now + more));
  return true;
}

// The CPU decode reason for what keeps a recipe off the device.
Place place_for(NotCoded why) {
  switch (why) {
    case NotCoded::kPixels:
      return Place::kPixels;
    case NotCoded::kForm:
      return Place::kFormat;
    case NotCoded::kColors:
    case NotCoded::kRectangles:
      return Place::kColors;
    case NotCoded::kResizedBorder:
      return Place::kResizedBorder;
    case NotCoded::kTooLarge:
      break;
  }
  return Place::kLarge;
}

}  // namespace

CodedRows::CodedRows(const Shape& shape, int64_t rows, std::shared_ptr<DeviceDecoding> log,
                     size_t coded)
    : shape_(shape),
      log_(std::move(log)),
      capacity_(size_t(rows) * slot_row_bytes(shape, coded)),
      max_instruction_bytes_(size_t(rows) * instruction_row_bytes(coded)),
      rows_(size_t(rows)),
      promised_(size_t(rows) * in_slot(size_t(element_count(shape)))),
      stages_(shape) {}

size_t CodedRows::slot_row_bytes(const Shape& shape, size_t coded) {
  return in_slot(std::max(size_t(element_count(shape)), coded));
}

// Pictures with many pixels have many work items.
size_t CodedRows::instruction_row_bytes(size_t coded) {
  constexpr size_t kUsual = size_t{64} << 10;
  return std::max(kUsual, coded > kUsualRow ? coded / 2 : 0);
}

// Reserves room in the slot, always leaving enough for every row's pixels, because the CPU may have
// to decode them. A row that is taken again may get another position; its previous contents are not
// read.
bool CodedRows::place(int64_t row, size_t bytes, size_t instructions) {
  Row& its = rows_[size_t(row)];
  if (bytes <= its.room) return true;
  const size_t wanted = in_slot(bytes);
  const size_t promised = its.placed ? 0 : in_slot(pixel_bytes());
  if (!add_within(instruction_bytes_, instructions, max_instruction_bytes_)) return false;
  if (!add_within(promised_, wanted - promised, capacity_)) {
    instruction_bytes_ -= instructions;
    return false;
  }
  its.placed = true;
  its.at = used_.fetch_add(wanted);
  its.room = wanted;
  return true;
}

void CodedRows::give_back(int64_t row, size_t bytes) {
  Row& its = rows_[size_t(row)];
  const size_t kept = in_slot(bytes);
  size_t end = its.at + its.room;
  if (used_.compare_exchange_strong(end, its.at + kept)) promised_ -= its.room - kept;
  its.room = kept;
}

uint8_t* CodedRows::pixels(int64_t row, uint8_t* slot) {
  Row& its = rows_[size_t(row)];
  its.coded = nullptr;
  return place(row, pixel_bytes(), 0) ? slot + its.at : nullptr;
}

bool CodedRows::can_know_rows(const EncodedImage& picture) {
  const std::optional<DenseJpegView> jpeg = jpeg_in(picture);
  if (!jpeg) return false;
  if (!jpeg->row_index.empty()) return true;
  return may_find_rows(picture, jpeg->jpeg) &&
         missing_rows(jpeg->jpeg, {}) == MissingRows::kUnknown;
}

bool CodedRows::take(int64_t row, int64_t record, const Recipe& recipe, uint8_t* slot) {
  Row& its = rows_[size_t(row)];
  its.coded = nullptr;
  thread_local JpegDrafting drafting;
  auto coded = std::make_shared<Coded>();
  coded->record = record;
  Place where = why_not(recipe, drafting, *coded);
  if (where == Place::kDevice) where = write(row, drafting, *coded, slot);
  if (where == Place::kDevice) {
    coded->room = room_for(*coded);
    its.coded = std::move(coded);
  }
  log_->count(where);
  return where == Place::kDevice;
}

DeviceDecoding::Place CodedRows::write(int64_t row, const JpegDrafting& drafting, Coded& coded,
                                       uint8_t* slot) {
  const size_t told =
      instruction_bytes_of(coded.draft, drafting.max_jobs(), resize_to(coded.window.filter),
                           coded.window.resize(0, 0, 0), coded.stages);
  if (!place(row, drafting.max_words() * sizeof(uint32_t), told)) return Place::kNoRoom;
  auto* const to = reinterpret_cast<uint32_t*>(slot + rows_[size_t(row)].at);
  const size_t words = drafting.write(to, coded.draft);
  if (words == 0) return Place::kFormat;
  give_back(row, words * sizeof(uint32_t));
  return Place::kDevice;
}

DeviceDecoding::Place CodedRows::why_not(const Recipe& recipe, JpegDrafting& drafting,
                                         Coded& coded) const {
  if (log_->is_off()) return Place::kNoMemory;
  if (!log_->trusts(coded.record)) return Place::kDamaged;
  NotCoded why{};
  std::optional<CodedProgram> program = coded_program_of(recipe, why);
  if (!program) return place_for(why);
  if (!PixelStages::takes(program->stages, shape_)) return Place::kPixels;
  CodedWindow* const window = &program->window;
  const EncodedImage& picture = window->picture;
  const std::optional<DenseJpegView> jpeg = jpeg_in(picture);
  if (!jpeg) return Place::kFormat;
  JpegDeviceDraft& draft = coded.draft;
  const Place where = begin_draft(*window, *jpeg, drafting, draft);
  if (where != Place::kDevice) return where;
  if (draft.image.channels != shape_[0]) return Place::kFormat;
  if (scratch_of(draft) > kMaxScratch) return Place::kLarge;
  coded.window = *window;
  coded.window.picture = {};  // its bytes are freed with the record
  coded.stages = std::move(program->stages);
  return Place::kDevice;
}

// Approximate: the intermediate between a resize's passes depends on both windows, and its tables
// on filters.
CodedRows::Room CodedRows::room_for(const Coded& coded) const {
  const JpegDeviceDraft& draft = coded.draft;
  const ResizeWindow window = coded.window.resize(0, 0, 0);
  const int64_t columns = window.shown_width ? window.shown_width : shape_[2];
  const int64_t between = (shape_[0] * window.height + 1) * (columns + 8);
  constexpr size_t kResizeTables = size_t{16} << 10;
  Room room{.kept = sizeof(WalkTables) + instruction_bytes_of(draft, draft.row_jobs.size(),
                                                              resize_to(coded.window.filter),
                                                              window, coded.stages),
            .coefficients = size_t(draft.blocks) * 128,
            .after = size_t(draft.out_bytes() + between) + kResizeTables +
                     (1 + coded.stages.size()) * pixel_bytes()};
  for (int c = 0; c < draft.image.components; ++c) room.kept += size_t(draft.sample_bytes(c));
  return room;
}

void CodedRows::settle(int64_t rows) {
  rows_.resize(size_t(rows));
  index();
}

void CodedRows::index() {
  Room sum;
  before_.assign(1, sum);
  slot_end_ = 0;
  for (const Row& row : rows_) {
    if (row.room > 0) slot_end_ = std::max(slot_end_, row.at + row.room);
    sum.kept += row.room + sizeof(int64_t);
    if (row.coded) {
      sum.kept += row.coded->room.kept;
      sum.coefficients += row.coded->room.coefficients;
      sum.after += row.coded->room.after;
    }
    before_.push_back(sum);
  }
}

size_t CodedRows::room_of(int64_t first, int64_t last) const {
  const Room &begin = before_[size_t(first)], &end = before_[size_t(last)];
  return end.kept - begin.kept +
         std::max(end.coefficients - begin.coefficients, end.after - begin.after);
}

bool CodedRows::exceeds_memory() const {
  const auto is_coded = [](const Row& row) { return row.coded != nullptr; };
  if (std::ranges::none_of(rows_, is_coded)) return false;
  log_->turn_off();
  return true;
}

std::unique_ptr<CodedRows> CodedRows::part(int64_t first, int64_t last) const {
  auto out = std::make_unique<CodedRows>(shape_, 0, log_);
  out->rows_.assign(rows_.begin() + first, rows_.begin() + last);
  out->index();
  return out;
}

// Threads place rows in the slot in order of arrival, so those of a part may be anywhere.
void CodedRows::find_pieces() {
  std::vector<size_t> placed;  // rows, sorted by position
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].room > 0) placed.push_back(row);
  }
  std::ranges::sort(placed, {}, [this](size_t row) { return rows_[row].at; });
  pieces_.clear();
  device_offsets_.assign(rows_.size(), 0);
  size_t before = 0;  // bytes of all pieces before the last one
  for (const size_t row : placed) {
    const size_t at = rows_[row].at, end = at + rows_[row].room;
    if (pieces_.empty() || at > pieces_.back().end() + kCopiedAlong) {
      if (!pieces_.empty()) before += pieces_.back().bytes;
      pieces_.push_back({at, 0});
    }
    pieces_.back().bytes = end - pieces_.back().begin;
    device_offsets_[row] = before + at - pieces_.back().begin;
  }
  slot_bytes_ = pieces_.empty() ? 0 : before + pieces_.back().bytes;
}

void CodedRows::put_together() {
  find_pieces();
  batch_.clear();
  std::vector<int64_t> coded;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (!rows_[row].coded) continue;
    batch_.add(rows_[row].coded->draft, uint32_t(device_offsets_[row] / sizeof(uint32_t)));
    coded.push_back(int64_t(row));
  }
  plan_resizes(coded);
  lay_out();
}

ResizeTo CodedRows::resize_to(Filter filter) const {
  return {.filter = filter,
          .channels = int32_t(shape_[0]),
          .height = int32_t(shape_[1]),
          .width = int32_t(shape_[2]),
          .strides = PictureStrides::channels_first(shape_[0], shape_[1], shape_[2])};
}

// `coded`: the numbers of the rows whose pictures the device decodes.
void CodedRows::plan_resizes(std::span<const int64_t> coded) {
  resizes_.clear();
  made_.assign(rows_.size(), -1);
  made_bytes_ = 0;
  std::set<Filter> filters;
  for (const int64_t row : coded) filters.insert(rows_[size_t(row)].coded->window.filter);
  for (const Filter filter : filters) {
    std::vector<ResizeWindow> windows;
    const size_t first = UnfinishedRows::aligned(made_bytes_);
    for (size_t i = 0; i < coded.size(); ++i) {
      const CodedWindow& window = rows_[size_t(coded[i])].coded->window;
      if (window.filter != filter) continue;
      const DeviceImage& picture = batch_.image(i);
      windows.push_back(
          window.resize(batch_.row_offset(i, 0, 0), picture.out_stride, picture.out_plane));
      made_[size_t(coded[i])] = int64_t(first + (windows.size() - 1) * pixel_bytes());
    }
    resizes_.push_back({.plan = plan_resize(resize_to(filter), windows), .made = first});
    made_bytes_ = first + windows.size() * pixel_bytes();
  }
  stages_.begin(made_bytes_);
  for (const int64_t row : coded) {
    int64_t& made = made_[size_t(row)];
    made = stages_.add(made, rows_[size_t(row)].coded->stages);
  }
  stages_.lay_out();
  made_bytes_ = stages_.image_bytes();
}

// Rows without a place in the slot, because they are transferred separately, point to one dummy
// row.
void CodedRows::lay_out() {
  const auto after = [](size_t at, size_t bytes) { return UnfinishedRows::aligned(at + bytes); };
  const DeviceJpegSizes& sizes = batch_.sizes();
  size_t parameters = decodes() ? after(0, size_t(upload_bytes(sizes))) : 0;
  size_t between = 0;
  for (Resize& resize : resizes_) {
    resize.at = parameters;
    parameters = after(parameters, size_t(upload_bytes(resize.plan)));
    between = std::max(between, size_t(headrace::scratch_bytes(resize.plan)));
  }
  stages_at_ = parameters;
  offsets_at_ = after(parameters, stages_.parameter_bytes());
  parameters_end_ = offsets_at_ + rows_.size() * sizeof(int64_t);
  const auto lies_nowhere = [](const Row& row) { return row.room == 0; };
  const auto nowhere = std::ranges::find_if(rows_, lies_nowhere) != rows_.end();
  // Reuses the memory of the coefficients, which have been read by then.
  out_at_ = decodes() ? after(0, size_t(lasting_bytes(sizes))) : 0;
  between_at_ = after(out_at_, size_t(sizes.out_bytes));
  made_at_ = after(between_at_, between);
  stages_scratch_at_ = after(made_at_, made_bytes_ + (nowhere ? pixel_bytes() : 0));
  scratch_end_ = std::max(stages_scratch_at_ + stages_.scratch_bytes(),
                          decodes() ? size_t(headrace::scratch_bytes(sizes)) : 0);
}

size_t CodedRows::parameter_bytes() const { return parameters_end_; }
size_t CodedRows::scratch_bytes() const { return scratch_end_; }
size_t CodedRows::verdict_bytes() const {
  return decodes() ? size_t(flag_bytes(batch_.sizes())) : 0;
}

void CodedRows::write_parameters(uint8_t* to, size_t scratch) const {
  if (decodes()) batch_.write(to);
  for (const Resize& resize : resizes_) headrace::write(resize.plan, to + resize.at);
  stages_.write(to + stages_at_);
  const size_t made = scratch + made_at_;
  std::vector<int64_t> offsets;
  for (size_t row = 0; row < rows_.size(); ++row) {
    const int64_t at = rows_[row].room == 0 ? int64_t(made_bytes_) : made_[row];
    offsets.push_back(at < 0 ? int64_t(device_offsets_[row]) : int64_t(made) + at);
  }
  write_array(to, offsets_at_, offsets);
}

const int64_t* CodedRows::queue(Stream& stream, const DevicePointers& there) const {
  const uint8_t* const parameters = there.parameters;
  if (decodes()) {
    uint8_t* const out = there.scratch + out_at_;
    DeviceJpegMemory at =
        headrace::place(batch_.sizes(), const_cast<uint8_t*>(parameters), there.scratch, out);
    at.streams = array_at<uint32_t>(there.slot, 0);
    queue_decoding(stream, batch_.sizes(), at);
    stream.copy(there.verdict, at.refused, verdict_bytes());
    for (const Resize& resize : resizes_) {
      queue_resize(stream, resize.plan,
                   {.upload = parameters + resize.at,
                    .scratch = there.scratch + between_at_,
                    .pictures = out,
                    .batch = there.scratch + made_at_ + resize.made});
    }
    stages_.queue(stream, parameters + stages_at_, there.scratch + stages_scratch_at_,
                  there.scratch + made_at_);
  }
  return array_at<int64_t>(parameters, offsets_at_);
}

bool CodedRows::accepts(const uint8_t* verdict) const {
  std::vector<int64_t> refused;
  for (const Row& row : rows_) {
    if (row.coded && *verdict++) refused.push_back(row.coded->record);
  }
  if (refused.empty()) return true;
  log_->distrust(refused);
  return false;
}

}  // namespace headrace
