// SPDX-License-Identifier: Apache-2.0
// Removes secrets from messages.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Addresses in a text without a name and password before the host, and without queries, which hold
// signatures and tokens. Messages are shown so.
std::string without_secrets(std::string_view text);

}  // namespace headrace
