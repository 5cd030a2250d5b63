// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/secrets.h"

#include <algorithm>

namespace headrace {

std::string without_secrets(std::string_view text) {
  std::string out;
  for (;;) {
    const size_t colon = text.find("://");
    if (colon == std::string_view::npos) break;
    const size_t host = colon + 3;
    out.append(text.substr(0, host));
    text.remove_prefix(host);
    const size_t end = std::min(text.find_first_of("\"\n"), text.size());
    const std::string_view authority = text.substr(0, std::min(end, text.find_first_of("/? ")));
    if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
      text.remove_prefix(at + 1);  // name:password
    }
    const size_t question = text.find('?');
    if (question >= std::min(text.find_first_of("\"\n"), text.size())) continue;
    const size_t over = std::min(text.find_first_of(" \t\"\n", question), text.size());
    const bool is_query =
        text.substr(question, over - question).find('=') != std::string_view::npos;
    if (!is_query) continue;  // a wildcard
    out.append(text.substr(0, question)).append("?...");
    text.remove_prefix(over);
  }
  return out.append(text);
}

}  // namespace headrace
