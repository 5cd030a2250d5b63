// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/edits_ahead.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

// Long enough that claiming them costs nothing (about 50 us), short enough that threads finish
// together.
constexpr int64_t kPieceRows = 64;

int64_t position_of(const EditedRows& rows, int64_t row) {
  for (const BatchRange& range : rows.positions) {
    if (row < range.size()) return range.begin + row;
    row -= range.size();
  }
  return row;
}

int64_t pieces_of(int64_t rows) { return (rows + kPieceRows - 1) / kPieceRows; }

}  // namespace

int64_t EditedRows::count() const {
  int64_t rows = 0;
  for (const BatchRange& range : positions) rows += range.size();
  return rows;
}

bool EditedRows::same_as(const EditedRows& other) const {
  const auto same = [](const BatchRange& a, const BatchRange& b) {
    return a.begin == b.begin && a.end == b.end;
  };
  return seed == other.seed && epoch == other.epoch &&
         std::ranges::equal(positions, other.positions, same);
}

EditsAhead::EditsAhead(std::shared_ptr<DeviceSteps> steps, int threads)
    : steps_(std::move(steps)), threads_(threads) {
  throw_if_forked();
  idle_.reserve(size_t(std::max(threads_, 1)));
  if (threads_ > 1) ThreadPool::workers().add(*this);
}

EditsAhead::~EditsAhead() {
  if (forked_from_running_engine()) return;
  {
    MutexLock lock(mutex_);
    if (job_) job_->claimed = job_->count;  // no new pieces
  }
  if (threads_ > 1) ThreadPool::workers().remove(*this);
}

EditsAhead::Outcome EditsAhead::take(const EditedRows& rows) {
  throw_if_forked();
  if (open(rows)) wake();
  while (true) {
    Piece piece;
    std::unique_ptr<Job> done;
    {
      MutexLock lock(mutex_);
      while (job_->done < job_->count && !claim(piece)) progress_.wait(mutex_);
      if (!piece.job) done = std::move(job_);
    }
    if (done) return adopt(*done);
    make(std::move(piece));
  }
}

void EditsAhead::begin(const EditedRows& rows) {
  if (threads_ > 1 && open(rows)) wake();
}

// Opens a job for these rows; false if it is open already.
bool EditsAhead::open(const EditedRows& rows) {
  MutexLock lock(mutex_);
  if (job_ && job_->rows.same_as(rows)) return false;
  if (job_) job_->claimed = job_->count;  // another one is needed
  while (active_ > 0) progress_.wait(mutex_);
  const size_t outputs = steps_->outputs().size();
  const auto count = rows.count();
  job_ = std::make_unique<Job>();
  job_->rows = rows;
  job_->count = count;
  job_->edits.assign(outputs, std::vector<PictureEdit>(size_t(count)));
  job_->fills.assign(outputs, std::vector<Fill>(size_t(pieces_of(count))));
  return true;
}

void EditsAhead::wake() {
  int64_t pieces = 0;
  {
    MutexLock lock(mutex_);
    pieces = pieces_of(job_->count);
  }
  if (threads_ > 1) ThreadPool::workers().wake(int(std::min<int64_t>(pieces, max_workers())));
}

bool EditsAhead::work(Renderer&) {
  Piece piece;
  {
    MutexLock lock(mutex_);
    if (!job_ || !claim(piece)) return false;
  }
  make(std::move(piece));
  return true;
}

bool EditsAhead::claim(Piece& piece) {
  if (job_->claimed >= job_->count) return false;
  if (!idle_.empty()) {
    piece.steps = std::move(idle_.back());
    idle_.pop_back();
  }
  piece.job = job_.get();
  piece.first = job_->claimed;
  piece.rows = std::min(kPieceRows, job_->count - job_->claimed);
  job_->claimed += piece.rows;
  ++active_;
  return true;
}

void EditsAhead::make(Piece piece) {
  int64_t row = piece.first;  // earlier rows have edits
  std::exception_ptr error;
  try {
    if (!piece.steps) {
      piece.steps = std::make_unique<DeviceSteps>(steps_->plan(), DeviceSteps::Work::kEdit);
    }
    fill(piece, row);
  } catch (...) {
    error = std::current_exception();
  }
  MutexLock lock(mutex_);
  Job& job = *piece.job;
  if (error && row < job.failed) {
    job.failed = row;
    job.error = error;
  }
  job.done += piece.rows;
  if (idle_.size() < idle_.capacity()) idle_.push_back(std::move(piece.steps));
  --active_;
  progress_.notify_all();
}

void EditsAhead::fill(Piece& piece, int64_t& row) {
  Job& job = *piece.job;
  const std::vector<DeviceSteps::Output>& outputs = piece.steps->outputs();
  const int64_t end = piece.first + piece.rows;
  int64_t before = 0;  // rows of the ranges received
  for (const BatchRange& range : job.rows.positions) {
    const int64_t last = std::min(end, before + range.size());
    if (row >= before && row < last) {
      const int64_t position = range.begin + row - before;
      const auto keep = [&](int64_t count) {
        for (size_t i = 0; i < outputs.size(); ++i) {
          std::copy_n(outputs[i].edits.begin(), count, job.edits[i].begin() + row);
        }
        row += count;
      };
      try {
        piece.steps->begin(job.rows.seed, job.rows.epoch, position, last - row);
      } catch (...) {
        const auto fewer = [](const auto& a, const auto& b) {
          return a.edits.size() < b.edits.size();
        };
        const auto least = std::ranges::min_element(outputs, fewer);
        keep(least == outputs.end() ? 0 : int64_t(least->edits.size()));
        throw;
      }
      keep(last - row);
    }
    before += range.size();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const RecipeEdit& sample = outputs[i].sample;
    job.fills[i][size_t(piece.first / kPieceRows)] = {sample.is_filled, sample.fill};
  }
}

EditsAhead::Outcome EditsAhead::adopt(Job& job) {
  Outcome out{std::min(job.failed, job.count), job.error};
  std::vector<DeviceSteps::Output>& outputs = steps_->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (int64_t row = 0; row < out.rows; row += kPieceRows) {
      const Fill& fill = job.fills[i][size_t(row / kPieceRows)];
      if (!fill.is_seen || steps_->fills_with(i, fill.value)) continue;
      out.rows = row;
      out.error = steps_->other_edit(position_of(job.rows, row), job.rows.epoch);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].edits = std::move(job.edits[i]);
    outputs[i].edits.resize(size_t(out.rows));
  }
  return out;
}

}  // namespace headrace
