// SPDX-License-Identifier: Apache-2.0
// How remote storages are read, for the whole process: timeouts, retries and the like. A request
// uses the options that are set when it is submitted. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headrace {

struct RemoteOptions {
  int connections = 256;       // concurrent requests to one server or bucket
  int retries = 10;            // per request
  double retry_seconds = 180;  // from the start of the first attempt to the start of the last
  double first_pause = 0.1;    // seconds; grows to `longest_pause`
  double longest_pause = 15;
  double stall_seconds = 5;     // the connection is dropped after this long without a byte
  double least_rate = 100;      // bytes per second: likewise if slower over that time
  bool hedge = true;            // send the slowest requests a second time
  double hedge_seconds = 0.05;  // but not before this time
  bool any_redirect = false;    // follow redirects to other hosts and to hosts without TLS
  std::string ca_file;          // certificates; empty: CURL_CA_BUNDLE, SSL_CERT_FILE, libcurl's
  std::vector<std::string> headers;  // "Name: value", for https:// and http:// requests
  // By scheme ("s3"); default: from the environment, otherwise the cloud's default.
  std::map<std::string, std::string> endpoints;
  std::string region;      // for s3://; empty: AWS_REGION, AWS_DEFAULT_REGION
  std::string addressing;  // "path", "virtual"; empty: path with an endpoint, else virtual
  bool anonymous = false;  // send no credentials

  std::string endpoint(const std::string& scheme) const {
    const auto found = endpoints.find(scheme);
    return found == endpoints.end() ? std::string() : found->second;
  }
};

std::shared_ptr<const RemoteOptions> remote_options();  // shared: with requests in progress
void set_remote_options(RemoteOptions options);

}  // namespace headrace
