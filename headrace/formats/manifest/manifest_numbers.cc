// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>

#include "headrace/base/number_text.h"
#include "headrace/formats/manifest/manifest_columns.h"

namespace headrace {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool begins_with_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

template <class Number>
std::optional<Number> parsed(std::string_view text) {
  return begins_with_zero(text) ? std::nullopt : number_from<Number>(text);
}

// Significant digits: "-0.0120e7" has three.
int64_t digits_of(std::string_view text) {
  text = text.substr(0, text.find_first_of("eE"));
  const size_t first = text.find_first_of("123456789");
  if (first == text.npos) return 0;
  return std::ranges::count_if(text.substr(first), is_digit);
}

// Note [Which fractions need 64 bits]
// float32 has a relative error of 6e-8, which most columns tolerate. Two types of columns do not:
// numbers of 2^24 and above, where float32 cannot represent all integers (ids written with a
// decimal point, seconds since 1970), and decimal numbers of which two would become equal (map
// coordinates in meters with centimeters, seconds with milliseconds). Fractions of more than 12
// digits were computed: their last digits are noise, and among many such values some are always
// nearly equal.
constexpr double kUnitsLost = 1 << 24;
constexpr int64_t kSafeDigits = 6, kDecimalDigits = 12;

}  // namespace

std::optional<int64_t> integer_in(std::string_view text) { return parsed<int64_t>(text); }
std::optional<double> number_in(std::string_view text) { return parsed<double>(text); }

bool is_whole(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

void FractionWidth::add(std::string_view written, double value) {
  if (loses_units_ || !std::isfinite(value)) return;
  loses_units_ = std::abs(value) >= kUnitsLost;
  const int64_t digits = digits_of(written);
  if (digits > kSafeDigits && digits <= kDecimalDigits) decimal_.push_back(value);
}

DType FractionWidth::dtype() {
  if (loses_units_) return DType::kFloat64;
  std::ranges::sort(decimal_);
  const auto become_one = [](double a, double b) {
    return a != b && static_cast<float>(a) == static_cast<float>(b);
  };
  const bool lost = std::ranges::adjacent_find(decimal_, become_one) != decimal_.end();
  return lost ? DType::kFloat64 : DType::kFloat32;
}

}  // namespace headrace
