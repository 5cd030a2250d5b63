// SPDX-License-Identifier: Apache-2.0
//
// Note [Lines by their upper and lower bits]: a line, slope * value + offset, is the sum of a term
// for the value's upper four bits and a term for its lower four. Each term is an integer and a
// fraction, and the sum's integer is one more if the two fractions add up to 1 or more. Only the
// order of the 16 fractions of either kind matters, and it fits into bytes: `rank` is the number of
// lower fractions with which an upper fraction reaches 1, `order` the number of lower fractions
// that need less than this one to reach 1. So five 16-byte shuffles give the same results as a
// table lookup, which takes 16.
#include <algorithm>
#include <cmath>

#include "headrace/kernels/color/table_rows.h"

namespace headrace {
namespace {

struct Number {
  int floor;
  float fraction;
};

Number number_of(double v) {
  const double floor = std::floor(v);
  return {static_cast<int>(floor), static_cast<float>(v - floor)};
}

uint8_t to_byte(int v) { return static_cast<uint8_t>(std::clamp(v, 0, 255)); }

uint8_t at(const TableForm& form, unsigned value) {
  const size_t upper = value >> 4, lower = value & 15;
  const int part = form.part[lower] + (form.rank[upper] > form.order[lower]);
  return to_byte(std::min(form.rise[upper] + part, 255) - form.fall[upper]);
}

bool is_line(const std::array<uint8_t, 256>& table, const TableForm& form) {
  for (unsigned value = 0; value < 256; ++value) {
    if (at(form, value) != table[value]) return false;
  }
  return true;
}

// Exact unless `slope` and `offset` are not those the table was computed with.
TableForm line(double slope, double offset) {
  TableForm form{.kind = TableForm::Kind::kLine};
  float needed[16];  // needed to reach 1
  for (size_t lower = 0; lower < 16; ++lower) {
    const Number number = number_of(static_cast<double>(lower) * slope);
    form.part[lower] = to_byte(number.floor);
    needed[lower] = 1 - number.fraction;
  }
  for (size_t lower = 0; lower < 16; ++lower) {
    int less = 0;
    for (const float other : needed) less += other < needed[lower];
    form.order[lower] = static_cast<uint8_t>(less);
  }
  for (size_t upper = 0; upper < 16; ++upper) {
    const Number number = number_of(static_cast<double>(16 * upper) * slope + offset);
    int reached = 0;
    for (const float need : needed) reached += number.fraction >= need;
    form.rank[upper] = static_cast<uint8_t>(reached);
    form.rise[upper] = to_byte(number.floor);
    form.fall[upper] = to_byte(-number.floor);
  }
  return form;
}

TableForm masked_form(const std::array<uint8_t, 256>& table, uint8_t mask, int threshold) {
  for (int value = 0; value < 256; ++value) {
    const int masked = value & mask;
    if (table[size_t(value)] != (value >= threshold ? 255 - masked : masked)) return {};
  }
  return {.kind = TableForm::Kind::kMasked, .mask = mask, .threshold = threshold};
}

}  // namespace

TableForm form_of(const std::array<uint8_t, 256>& table, const TableGuess& guess) {
  const double slope = guess.slope, offset = guess.offset;
  if (slope < 0) return masked_form(table, guess.mask, guess.threshold);
  if (!(slope < 16 && std::abs(offset) < 65536)) return {};
  // Where the line crosses an integer, the table's own rounding decides which side it falls on.
  for (const double beside : {1.0 / (1 << 17), 0.0, -1.0 / (1 << 17)}) {
    const TableForm form = line(slope, offset + beside);
    if (is_line(table, form)) return form;
  }
  return {};
}

}  // namespace headrace
