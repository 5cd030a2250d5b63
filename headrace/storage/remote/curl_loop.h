// SPDX-License-Identifier: Apache-2.0
// Runs libcurl's transfers: waits for their sockets with one epoll, until the timeout that libcurl
// requests. wake() may be called by any thread, all other functions by a single thread.
#pragma once

#include <optional>

#include "headrace/storage/remote/curl_functions.h"

namespace headrace {

class CurlLoop {
 public:
  CurlLoop();
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  // Why it cannot be used: libcurl is missing, or there are no descriptors.
  const std::optional<Error>& missing() const { return missing_; }
  const Curl& curl() const { return *curl_; }  // REQUIRES: not missing(), here and below

  // Ends a wait(), or the next one.
  void wake() const;

  // `max_idle`: connections kept open for later transfers.
  void begin(int max_idle);
  void end();  // REQUIRES: all handles were removed
  void add(Curl::Handle* handle);
  void remove(Curl::Handle* handle);
  // Waits until a transfer can make progress, or until this time, and lets libcurl act.
  void wait(double until);
  struct Done {
    void* transfer;  // the handle's kPrivate
    int code;        // of libcurl
  };
  // The next transfer that has ended; the caller must remove() it.
  std::optional<Done> next_done();

 private:
  static int on_socket(Curl::Handle*, int socket, int what, void* loop, void* known);
  static int on_timer(Curl::Multi*, long milliseconds, void* loop);

  const Curl* curl_ = nullptr;
  std::optional<Error> missing_;
  int epoll_ = -1, event_ = -1;
  Curl::Multi* multi_ = nullptr;
  std::optional<double> due_;
};

}  // namespace headrace
