// SPDX-License-Identifier: Apache-2.0
// Azure Storage's "Shared Key": requests are signed with a key of the account.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/storage/remote/range_client.h"
#include "headrace/storage/remote/url.h"

namespace headrace {

using HeaderPairs = std::vector<std::pair<std::string, std::string>>;

// The text to sign. `headers`: all headers sent that begin with "x-ms-", in lower case.
std::string azure_text_to_sign(const std::string& account, const Url& url, const HttpCall& call,
                               HeaderPairs headers);
// The value of the Authorization header; empty if the key is not base64.
std::string azure_authorization(const std::string& account, std::string_view key, const Url& url,
                                const HttpCall& call, HeaderPairs headers);

std::string base64(std::string_view bytes);
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace headrace
