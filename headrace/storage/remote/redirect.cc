// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string_view>

#include "headrace/storage/remote/range_client.h"
#include "headrace/storage/remote/url.h"

namespace headrace {
namespace {

bool same_server(const Url& a, const Url& b) { return a.scheme == b.scheme && a.host == b.host; }

// The host name without the port.
std::string_view name_of_host(std::string_view host) {
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == host.npos;
  return has_port ? host.substr(0, colon) : host;
}

Error refused(const std::string& what) { return {.what = what}; }

}  // namespace

Result<HttpRequest> redirected(const HttpRequest& from, const std::string& location,
                               bool any_redirect) {
  const std::optional<Url> base = parse_url(from.url);
  const std::optional<Url> to = base ? resolved(*base, location) : std::nullopt;
  if (!to) return refused("to an invalid address");
  if (to->scheme != "https" && to->scheme != "http") return refused("to " + to->scheme + "://");
  const bool same = same_server(*base, *to);
  if (!any_redirect) {
    const std::string server = to->scheme + "://" + to->host;
    const bool loses_tls = base->scheme == "https" && to->scheme != "https";
    if (loses_tls) return refused("to a server without TLS, " + server);
    const bool gains_tls = base->scheme != to->scheme;
    const bool same_host = name_of_host(base->host) == name_of_host(to->host);
    if (!from.any_host && !same && !(gains_tls && same_host)) {
      return refused("to another server, " + server);
    }
  }
  HttpRequest moved{.url = to->text(),
                    .user = same ? from.user : "",
                    .version = from.version,
                    .asks_version = from.asks_version,
                    .any_host = from.any_host};
  if (same) moved.headers = from.headers;
  return moved;
}

}  // namespace headrace
