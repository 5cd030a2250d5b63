// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/host_set.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "headrace/kernels/batch/gather_on_host.h"
#include "headrace/sampling/sampler.h"

namespace headrace {
namespace {

// Long enough that claiming it costs nothing, short enough that two threads finish together.
constexpr size_t kPieceBytes = size_t{128} << 10;
// Bytes per batch below which waking a worker takes longer than the work.
constexpr size_t kAheadBytes = size_t{192} << 10;
// Smaller memory outside the rings comes from malloc.
constexpr size_t kPageBytes = size_t{64} << 10;

}  // namespace

HostSet::HostSet(std::vector<ResidentField> fields, HostSetOptions options)
    : fields_(std::move(fields)), options_(std::move(options)) {
  throw_if_forked();
  const int64_t rows = options_.layout.rank_batch();
  for (const ResidentField& field : fields_) {
    row_bytes_ += field.record_bytes();
    const size_t bytes = std::max<size_t>(field.record_bytes() * size_t(rows), 1);
    rings_.push_back(std::make_shared<SlotRing>(bytes, options_.batches, nullptr, options_.device));
  }
  piece_rows_ =
      std::clamp<int64_t>(int64_t(kPieceBytes / std::max<size_t>(row_bytes_, 1)), 1, rows);
  tools_.reserve(static_cast<size_t>(options_.threads));
  if (works_ahead()) ThreadPool::workers().add(*this);
}

HostSet::~HostSet() {
  if (forked_from_running_engine()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  if (works_ahead()) ThreadPool::workers().remove(*this);
}

bool HostSet::works_ahead() const {
  return !options_.view && options_.threads > 1 &&
         row_bytes_ * size_t(options_.layout.rank_batch()) >= kAheadBytes;
}

std::optional<Batch> HostSet::take(uint64_t seed, uint64_t epoch, int64_t batch) {
  if (options_.view) return view_of(epoch, batch);
  throw_if_forked();
  begin(seed, epoch, batch);
  while (true) {
    Piece piece;
    std::optional<Batch> taken;
    bool wake = false;
    {
      MutexLock lock(mutex_);
      while (!front_is_done() && !claim(piece)) progress_.wait(mutex_);
      if (!piece.open) taken = take_front();
      wake = idle_ && has_work();
      if (wake) idle_ = false;
    }
    if (wake) ThreadPool::workers().wake(max_workers());
    if (!piece.open) return taken;
    make(std::move(piece));
  }
}

// Makes the batch the first of the open ones.
void HostSet::begin(uint64_t seed, uint64_t epoch, int64_t batch) {
  MutexLock lock(mutex_);
  const int64_t expected = open_.empty() ? next_open_ : open_.front()->batch.index;
  if (seed != seed_ || epoch != epoch_ || batch != expected) {
    stopping_ = true;
    while (active_ > 0) progress_.wait(mutex_);
    stopping_ = false;
    open_.clear();
    seed_ = seed;
    epoch_ = epoch;
    next_open_ = batch;
  }
  if (open_.empty()) open_next();
}

bool HostSet::front_is_done() const { return open_.front()->done == open_.front()->range.size(); }

// Returns nullopt, which ends the run, if a piece of the batch could not be made.
std::optional<Batch> HostSet::take_front() {
  const std::unique_ptr<Open> front = std::move(open_.front());
  open_.pop_front();
  if (!front->failed) return std::move(front->batch);
  next_open_ = -1;
  return std::nullopt;
}

bool HostSet::work(Renderer&) {
  Piece piece;
  {
    MutexLock lock(mutex_);
    if (!may_claim(piece)) {
      idle_ = true;
      return false;
    }
  }
  make(std::move(piece));
  return true;
}

// A run begins on the consumer's thread, which also gets the error if allocating a batch fails.
bool HostSet::may_claim(Piece& piece) {
  try {
    return !open_.empty() && claim(piece);
  } catch (const std::exception&) {
    return false;
  }
}

bool HostSet::has_work() const {
  if (!works_ahead() || open_.empty() || stopping_) return false;
  return open_.back()->claimed < open_.back()->range.size() || may_open_ahead();
}

bool HostSet::may_open_ahead() const {
  if (!works_ahead() || next_open_ < 0 || next_open_ >= options_.layout.batches()) return false;
  return std::ranges::all_of(rings_, [](const auto& ring) { return ring->available() > 0; });
}

bool HostSet::claim(Piece& piece) {
  if (stopping_) return false;
  const auto is_open = [](const auto& open) { return open->claimed < open->range.size(); };
  auto found = std::ranges::find_if(open_, is_open);
  if (found == open_.end()) {
    if (!may_open_ahead()) return false;
    open_next();
    found = open_.end() - 1;
  }
  if (tools_.empty()) {
    piece.tools = std::make_unique<Tools>();
  } else {
    piece.tools = std::move(tools_.back());
    tools_.pop_back();
  }
  Open& open = **found;
  piece.open = &open;
  piece.first = open.claimed;
  piece.rows = std::min(piece_rows_, open.range.size() - open.claimed);
  open.claimed += piece.rows;
  ++active_;
  return true;
}

void HostSet::open_next() {
  auto open = std::make_unique<Open>();
  open->seed = seed_;
  open->range = options_.layout.range(next_open_);
  const int64_t rows = open->range.size();
  open->batch = {static_cast<int64_t>(epoch_), next_open_, rows, {}};
  bool beyond = false;
  for (size_t i = 0; i < fields_.size(); ++i) {
    BatchField& field = open->batch.fields.emplace_back(fields_[i].batch_field(rows));
    field.lease = rings_[i]->take();
    field.is_pinned = field.lease && rings_[i]->pinned();
    if (!field.lease) {
      field.lease = memory_beyond(rings_[i]->bytes());
      beyond = true;
    }
    field.view.data = field.lease.get();
  }
  if (beyond) ++beyond_;
  open_.push_back(std::move(open));
  ++next_open_;
}

std::shared_ptr<void> HostSet::memory_beyond(size_t bytes) {
  if (bytes >= kPageBytes) return make_pages(bytes);
  return std::shared_ptr<uint8_t[]>(new uint8_t[bytes]);
}

void HostSet::make(Piece piece) {
  bool failed = false;
  try {
    fill(piece);
  } catch (const std::exception&) {
    failed = true;  // the engine will report the error
  }
  MutexLock lock(mutex_);
  Open& open = *piece.open;
  open.failed |= failed;
  open.done += piece.rows;
  if (tools_.size() < tools_.capacity()) tools_.push_back(std::move(piece.tools));
  --active_;
  if (open.done == open.range.size() || active_ == 0) progress_.notify_all();
}

void HostSet::fill(const Piece& piece) {
  Tools& tools = *piece.tools;
  const Batch& batch = piece.open->batch;
  const auto epoch = static_cast<uint64_t>(batch.epoch);
  const int64_t begin = piece.open->range.begin + piece.first;
  tools.indices.resize(size_t(piece.rows));
  wrapped_indices(*options_.sampler, piece.open->seed, epoch, begin, options_.layout.positions(),
                  tools.indices);
  if (options_.steps) {
    if (!tools.steps)
      tools.steps = std::make_unique<DeviceSteps>(options_.steps, DeviceSteps::Work::kEdit);
    tools.steps->begin(piece.open->seed, epoch, begin, piece.rows);
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    auto* const data = static_cast<uint8_t*>(batch.fields[i].view.data);
    fill_field(fields_[i], piece, data + size_t(piece.first) * fields_[i].record_bytes());
  }
}

void HostSet::fill_field(const ResidentField& field, const Piece& piece, uint8_t* to) const {
  const std::vector<int64_t>& indices = piece.tools->indices;
  if (field.origin == OutputOrigin::kId) {
    std::memcpy(to, indices.data(), indices.size() * 8);
  } else if (field.origin == OutputOrigin::kValid) {
    const int64_t begin = piece.open->range.begin + piece.first;
    for (int64_t row = 0; row < piece.rows; ++row) {
      to[row] = begin + row < piece.open->range.valid_end;
    }
  } else if (field.edited >= 0) {
    edit(field, piece, to);
  } else if (options_.sampler->in_order() && indices.back() - indices.front() == piece.rows - 1) {
    const size_t bytes = field.record_bytes();
    if (bytes > 0) {
      std::memcpy(to, field.values + size_t(indices.front()) * bytes, bytes * indices.size());
    }
  } else {
    gather_on_host(field.values, field.record_bytes(), indices.data(), to, piece.rows);
  }
}

void HostSet::edit(const ResidentField& field, const Piece& piece, uint8_t* to) const {
  const DeviceSteps::Output& output = piece.tools->steps->outputs()[size_t(field.edited)];
  const RecipeEdit& sample = output.sample;
  HostEdits how{.pictures = field.values,
                .channels = int(output.stored[0]),
                .height = int(output.stored[1]),
                .width = int(output.stored[2]),
                .to_height = sample.size.height,
                .to_width = sample.size.width,
                .channels_last = options_.memory_format == MemoryFormat::kChannelsLast};
  for (int c = 0; c < how.channels; ++c) {
    how.tables[size_t(c)] = &sample.map->table(c);
    how.padding[size_t(c)] = uint8_t(sample.fill[size_t(c)]);
  }
  edit_on_host(how, piece.tools->indices.data(), output.edits.data(), piece.rows, to,
               piece.tools->strip);
}

// Slices of the data itself; other fields are made.
Batch HostSet::view_of(uint64_t epoch, int64_t batch) const {
  const BatchRange range = options_.layout.range(batch);
  Batch out{static_cast<int64_t>(epoch), batch, range.size(), {}};
  for (const ResidentField& field : fields_) {
    BatchField& made = out.fields.emplace_back(field.batch_field(range.size()));
    if (field.has_values()) {
      made.view.data =
          const_cast<uint8_t*>(field.values) + size_t(range.begin) * field.record_bytes();
      made.lease = std::const_pointer_cast<void>(field.owner);
      continue;
    }
    made.lease = memory_beyond(std::max<size_t>(made.view.dense_bytes(), 1));
    made.view.data = made.lease.get();
    auto* const ids = static_cast<int64_t*>(made.view.data);
    if (field.origin == OutputOrigin::kId) std::iota(ids, ids + range.size(), range.begin);
    if (field.origin == OutputOrigin::kValid) std::memset(ids, 1, size_t(range.size()));
  }
  return out;
}

ResidentStats HostSet::stats() const {
  ResidentStats stats;
  stats.beyond = beyond_;
  for (const auto& ring : rings_) stats.batch_bytes += ring->mapped_bytes();
  return stats;
}

}  // namespace headrace
