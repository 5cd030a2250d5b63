// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/bad_records.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace headrace {
namespace {

// Rates mean nothing before this many records.
constexpr int64_t kMinimumSeen = 1000;
constexpr size_t kListed = 10'000;

const ErrorCode kNoQuarantineFile{"HR0730", ErrorKind::kConfig, "quarantine file cannot be written",
                                  "quarantine= names a file to which each bad record is "
                                  "appended as a line of JSON. Its folder must exist and be "
                                  "writable."};

const ErrorCode kBudgetSpent{
    "HR0731", ErrorKind::kData, "too many bad records",
    "on_error= tolerates bad records up to error_budget=, by number and by share. More than that "
    "usually means a broken copy or a wrong path, and training on substitutes would hide it. "
    "`headrace scan` lists every bad record."};

// How many bytes at the front are one character of UTF-8 (RFC 3629), beyond ASCII; 0 if none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto is_tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first >= 0xC2 && first <= 0xDF && is_tail(1)) return 2;
  if (first >= 0xE0 && first <= 0xEF && is_tail(1) && is_tail(2)) {
    const bool overlong = first == 0xE0 && second < 0xA0,
               surrogate = first == 0xED && second > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4 && is_tail(1) && is_tail(2) && is_tail(3)) {
    const bool overlong = first == 0xF0 && second < 0x90, beyond = first == 0xF4 && second > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

// Names of files are bytes. Those that are no UTF-8 are written as Python's os.fsdecode gives them,
// \udc80 to \udcff, so that the line stays JSON and the name can be had again.
void append_json_text(std::string& out, std::string_view text) {
  const auto append_escaped = [&](unsigned code) {
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", code);
    out += escaped;
  };
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    size_t taken = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i];
    } else if (c < 0x20) {
      append_escaped(c);
    } else if (c < 0x80) {
      out += text[i];
    } else if (const size_t count = character_bytes(text.substr(i)); count > 0) {
      out += text.substr(i, count);
      taken = count;
    } else {
      append_escaped(0xDC00u + c);
    }
    i += taken;
  }
  out += '"';
}

}  // namespace

void add_place(Error& error, const Source& source, int64_t record) {
  error.where.record = record;
  if (!error.where.file.empty()) return;
  Where place = source.where(record);
  if (place.offset >= 0 && error.where.offset >= 0) {
    error.note += (error.note.empty() ? "" : "; ") + std::string("at byte ") +
                  std::to_string(error.where.offset) + " of the picture";
  }
  if (place.offset < 0) place.offset = error.where.offset;
  error.where = std::move(place);
  error.where.record = record;
}

std::string json_of(const BadRecord& record) {
  const Error& error = record.error;
  std::string out = "{\"epoch\": " + std::to_string(record.epoch) +
                    ", \"position\": " + std::to_string(record.position) +
                    ", \"record\": " + std::to_string(record.record) + ", \"key\": ";
  append_json_text(out, record.key);
  out += ", \"code\": ";
  append_json_text(out, error.code ? error.code->id : "");
  out += ", \"what\": ";
  append_json_text(out, error.what);
  out += ", \"file\": ";
  append_json_text(out, error.where.file);
  if (!error.where.member.empty()) {
    out += ", \"member\": ";
    append_json_text(out, error.where.member);
  }
  if (error.where.offset >= 0) out += ", \"offset\": " + std::to_string(error.where.offset);
  out += ", \"action\": ";
  append_json_text(out, record.action);
  return out + "}";
}

BadRecords::BadRecords(int64_t budget, double rate, const std::string& path)
    : budget_(budget), rate_(rate), path_(path) {
  if (!path.empty() && !std::ofstream(path, std::ios::app)) {
    raise(kNoQuarantineFile, path + ": " + std::strerror(errno));
  }
}

void BadRecords::begin_epoch(int64_t bad) {
  MutexLock lock(mutex_);
  in_epoch_ = bad;
}

void BadRecords::add(BadRecord record) {
  MutexLock lock(mutex_);
  ++in_epoch_;
  // A batch that is tried again, or an epoch that is resumed, finds the same records bad.
  if (listed_.size() < kListed && !listed_.insert({record.epoch, record.position}).second) return;
  ++total_;
  if (!path_.empty()) std::ofstream(path_, std::ios::app) << json_of(record) << '\n';
  if (list_.size() < kListed) list_.push_back(std::move(record));
}

void BadRecords::check(int64_t seen) const {
  MutexLock lock(mutex_);
  const bool many = in_epoch_ > budget_;
  const bool often =
      seen >= kMinimumSeen && static_cast<double>(in_epoch_) > rate_ * static_cast<double>(seen);
  if (!many && !often) return;
  Error error{.code = &kBudgetSpent,
              .what = std::to_string(in_epoch_) + " of " + std::to_string(seen) +
                      " records of this epoch are bad; " +
                      (many ? "the budget is " + std::to_string(budget_)
                            : "the tolerated share is " + std::to_string(rate_)),
              .hint = "`headrace scan` lists every bad record; error_budget= raises the limit"};
  if (!list_.empty())
    error.note = "the last one: " + list_.back().error.what + " (" + list_.back().key + ")";
  throw Exception(std::move(error));
}

int64_t BadRecords::in_epoch() const {
  MutexLock lock(mutex_);
  return in_epoch_;
}

int64_t BadRecords::total() const {
  MutexLock lock(mutex_);
  return total_;
}

std::vector<BadRecord> BadRecords::list() const {
  MutexLock lock(mutex_);
  return list_;
}

}  // namespace headrace
