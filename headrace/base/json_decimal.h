// SPDX-License-Identifier: Apache-2.0
// Parses a decimal number digit by digit, and finds the double nearest to it.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace headrace {

struct JsonDecimal {
  static constexpr int kMaxDigits = 19;  // that many always fit into the mantissa

  bool negative = false;
  uint64_t mantissa = 0;    // of the first 19 significant digits
  int64_t significant = 0;  // number of digits, from the first nonzero one
  int64_t exponent = 0;     // power of ten by which to scale the mantissa, if it holds all digits
  int64_t leading = 0;      // decimal position of the first significant digit: 12 -> 2, 0.01 -> -1

  void add(unsigned digit, bool fraction) {
    significant += significant > 0 || digit > 0;
    if (significant <= kMaxDigits) mantissa = mantissa * 10 + digit;
    if (fraction) {
      --exponent;
      leading -= significant == 0;
    } else {
      ++leading;
    }
  }
  void shift(int64_t places) {
    exponent += places;
    leading += places;
  }

  std::optional<int64_t> integer() const {
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    if (significant > kMaxDigits || mantissa > kMax + negative) return {};
    return static_cast<int64_t>(negative ? -mantissa : mantissa);
  }

  // `text`: the complete text of the number. Infinity if it is too large.
  double value(std::string_view text) const {
    constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    // Both factors are exact, so the result is rounded once (Clinger 1990).
    if (significant <= kMaxDigits && mantissa < uint64_t{1} << 53 && exponent >= -22 &&
        exponent <= 22) {
      const double digits = static_cast<double>(mantissa);
      const double out = exponent < 0 ? digits / kPowers[-exponent] : digits * kPowers[exponent];
      return negative ? -out : out;
    }
    double out = 0;
    const auto done = std::from_chars(text.data(), text.data() + text.size(), out);
    if (done.ec == std::errc::result_out_of_range) {
      out = leading > 0 ? std::numeric_limits<double>::infinity() : 0.0;
      if (negative) out = -out;
    }
    return out;
  }
};

}  // namespace headrace
