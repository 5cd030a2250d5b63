// SPDX-License-Identifier: Apache-2.0
// Where a server's redirect leads, and whether a request may follow it.
#pragma once

#include <string>

#include "headrace/base/error.h"
#include "headrace/storage/remote/range_client.h"

namespace headrace {

// The request for the place that `from` is redirected to. Headers and credentials are for the
// server that was named, so another one gets none. If it may not follow, `what` of the error is the
// reason: "to another server, https://other". any_redirect: RemoteOptions::any_redirect.
Result<HttpRequest> redirected(const HttpRequest& from, const std::string& location,
                               bool any_redirect);

}  // namespace headrace
