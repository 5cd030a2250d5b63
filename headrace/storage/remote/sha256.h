// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), of the short texts that signatures are made of.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::string_view text);

// HMAC with one key: the two hashes that begin with it are kept.
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
// Lower case, as signatures are sent.
std::string hex(std::span<const uint8_t> bytes);

}  // namespace headrace
