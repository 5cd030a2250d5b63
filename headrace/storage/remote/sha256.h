// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for signing requests: short texts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::string_view text);

// HMAC with a fixed key: caches the two hash states after the padded key.
class HmacSha256 {
 public:
  explicit HmacSha256(std::span<const uint8_t> key);
  Sha256 operator()(std::string_view text) const;

 private:
  std::array<uint32_t, 8> inner_, outer_;
};
inline Sha256 hmac_sha256(std::span<const uint8_t> key, std::string_view text) {
  return HmacSha256(key)(text);
}
// Lower case, as in signatures.
std::string hex(std::span<const uint8_t> bytes);

}  // namespace headrace
