// SPDX-License-Identifier: Apache-2.0
// Human-readable byte sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

// "200GB", "1.5 TiB", "64000000". Empty if the text is not a size.
std::optional<uint64_t> byte_size_of_text(std::string_view text);

}  // namespace headrace
