// SPDX-License-Identifier: Apache-2.0
// The target of a server's redirect, and whether a request may follow it.
#pragma once

#include <string>

#include "headrace/base/error.h"
#include "headrace/storage/remote/range_client.h"

namespace headrace {

// The request for the URL that `from` is redirected to. Headers and credentials are for the
// original server, so they are not sent to another one. If the redirect must not be followed,
// `what` of the error is the reason: "to another server, https://other". `any_redirect`:
// RemoteOptions::any_redirect.
Result<HttpRequest> redirected(const HttpRequest& from, const std::string& location,
                               bool any_redirect);

}  // namespace headrace
