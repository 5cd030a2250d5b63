// SPDX-License-Identifier: Apache-2.0
// Removes secrets from messages.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Removes from all URLs in a text the user name and password before the host, and the query, which
// may hold signatures and tokens. Applied to every error message.
std::string without_secrets(std::string_view text);

}  // namespace headrace
