// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/open_budget.h"

#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kTooCostly{
    "HR0499", ErrorKind::kResource, "opening is too expensive for the size of the files",
    "According to its contents, opening the file would take many times its own size in memory or "
    "work: structures referenced again and again, values that expand without limit, rows that were "
    "never written. Malicious files look like this, and so do some damaged ones. Rewrite a genuine "
    "dataset, or select fewer fields."};

constexpr uint64_t kPollEvery = uint64_t{4} << 20;  // bytes
constexpr uint64_t kBytesAStep = 256;               // each counts as one step

uint64_t proportional(uint64_t least, uint64_t factor, uint64_t bytes) {
  uint64_t out = 0;
  if (__builtin_mul_overflow(factor, bytes, &out) || __builtin_add_overflow(out, least, &out)) {
    return UINT64_MAX;
  }
  return out;
}

}  // namespace

OpenBudget::OpenBudget(std::string path, uint64_t file_bytes, const Progress* progress)
    : path_(std::move(path)),
      file_bytes_(file_bytes),
      bytes_left_(proportional(kBytes, kBytesPerByte, file_bytes)),
      steps_left_(proportional(kSteps, kStepsPerByte, file_bytes)),
      progress_(progress) {}

void OpenBudget::spend(uint64_t bytes, std::string_view what) {
  if (bytes > bytes_left_) exceeded(what, bytes, "byte");
  bytes_left_ -= bytes;
  poll(bytes);
}

void OpenBudget::step(uint64_t count, std::string_view what) {
  if (count > steps_left_) exceeded(what, count, "step");
  steps_left_ -= count;
  poll(count < UINT64_MAX / kBytesAStep ? count * kBytesAStep : kPollEvery);
}

void OpenBudget::poll(uint64_t cost) {
  since_ += cost;
  if (since_ < kPollEvery) return;
  since_ = 0;
  if (progress_ && *progress_) (*progress_)(++polls_, -1);
}

void OpenBudget::exceeded(std::string_view what, uint64_t of, std::string_view unit) const {
  throw Exception(Error{
      .code = &kTooCostly,
      .what = std::string(what) + " would take " +
              count_text(static_cast<int64_t>(of), std::string(unit)) +
              " more than the remaining budget, for files of " +
              count_text(static_cast<int64_t>(file_bytes_), "byte"),
      .where = Where{.file = path_},
      .hint =
          "select the fields you need, or rewrite the files; do not read files of unknown origin"});
}

}  // namespace headrace
