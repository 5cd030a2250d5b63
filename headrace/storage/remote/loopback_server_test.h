// SPDX-License-Identifier: Apache-2.0
// For tests: an HTTP server of one object on the loopback interface, with a thread per connection.
// The bytes are a function of their offset, so that each one can be checked.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace headrace {

inline uint8_t byte_at(uint64_t place) { return static_cast<uint8_t>(place * 131 + place / 251); }

// The fault for one request.
struct LoopbackFault {
  int status = 206;          // 200: the whole object, whatever range was requested
  size_t cut = SIZE_MAX;     // bytes of the body, then the connection is closed
  bool drips = false;        // sends one byte of the body per 5 ms
  bool hangs = false;        // never answers
  bool unsized = false;      // sends the body in chunks, without Content-Length
  bool endless = false;      // likewise, and goes on with more chunks
  bool unended = false;      // likewise, and then sends nothing more: the last chunk is missing
  std::string headers = {};  // additional ones
};

class LoopbackServer {
 public:
  explicit LoopbackServer(uint64_t bytes, std::function<LoopbackFault(int)> fault = {})
      : bytes_(bytes), fault_(std::move(fault)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    (void)bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    (void)listen(listener_, 512);
    (void)getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }

  ~LoopbackServer() {
    over_ = true;
    (void)shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    close(listener_);
    {
      const std::scoped_lock lock(mutex_);
      for (const int connection : connections_) (void)shutdown(connection, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
  }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/object"; }
  int requests() const { return requests_; }
  // Requests whose client closed the connection before their answer was complete.
  int aborted() const { return aborted_; }

 private:
  void accept_all() {
    for (;;) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const std::scoped_lock lock(mutex_);
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int connection) {
    std::string head;
    char block[4096];
    for (;;) {
      const size_t end = head.find("\r\n\r\n");
      if (end != std::string::npos) {
        if (!answer(connection, head.substr(0, end))) break;
        head.erase(0, end + 4);
        continue;
      }
      const ssize_t got = recv(connection, block, sizeof block, 0);
      if (got <= 0) break;
      head.append(block, static_cast<size_t>(got));
    }
    (void)shutdown(connection, SHUT_RDWR);
    const std::scoped_lock lock(mutex_);
    std::erase(connections_, connection);
    close(connection);
  }

  bool answer(int connection, const std::string& head) {
    const LoopbackFault fault = fault_ ? fault_(requests_++) : LoopbackFault{};
    if (!fault_) ++requests_;
    if (fault.hangs) return wait_for_end(connection);
    uint64_t first = 0, last = bytes_ - 1;
    const size_t range = head.find("Range: bytes=");
    if (fault.status != 200 && range != std::string::npos) {
      char* dash = nullptr;
      first = std::strtoull(head.c_str() + range + 13, &dash, 10);
      if (dash[1] >= '0' && dash[1] <= '9') last = std::strtoull(dash + 1, nullptr, 10);
      last = std::min(last, bytes_ - 1);
    }
    const bool in_chunks = fault.unsized || fault.endless || fault.unended;
    std::string body = in_chunks ? "error" : "";
    if (fault.status < 300) {
      body.resize(last - first + 1);
      for (char& c : body) c = static_cast<char>(byte_at(first++));
      first -= body.size();
    }
    std::string out =
        "HTTP/1.1 " + std::to_string(fault.status) + " Said\r\nETag: \"one\"\r\n" + fault.headers;
    out += in_chunks ? std::string("Transfer-Encoding: chunked\r\n")
                     : "Content-Length: " + std::to_string(body.size()) + "\r\n";
    if (fault.status == 206) {
      out += "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
             std::to_string(bytes_) + "\r\n";
    }
    out += "\r\n" + (in_chunks ? chunk_of(body) : body.substr(0, fault.cut));
    if (fault.unsized) out += "0\r\n\r\n";
    const size_t dripped = fault.drips ? out.find("\r\n\r\n") + 4 : SIZE_MAX;
    if (!send_all(connection, out, dripped)) return false;
    if (fault.unended) return wait_for_end(connection);
    const std::string more = chunk_of(std::string(size_t{1} << 16, 'x'));
    while (fault.endless) {
      if (!send_all(connection, more)) return false;
    }
    return fault.cut >= body.size();
  }

  static std::string chunk_of(const std::string& bytes) {
    if (bytes.empty()) return {};  // it would be the last chunk
    char size[32];
    (void)std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    return size + bytes + "\r\n";
  }

  // Starting at `dripped`, one byte per 5 ms.
  bool send_all(int connection, const std::string& out, size_t dripped = SIZE_MAX) {
    for (size_t sent = 0; sent < out.size();) {
      if (over_) return false;
      const size_t most = sent < dripped ? std::min(out.size(), dripped) - sent : 1;
      if (sent >= dripped) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const ssize_t count = send(connection, out.data() + sent, most, MSG_NOSIGNAL);
      if (count <= 0) {
        ++aborted_;
        return false;
      }
      sent += static_cast<size_t>(count);
    }
    return true;
  }

  // Until the client closes the connection, or the server ends. Always false.
  bool wait_for_end(int connection) {
    while (!over_) {
      pollfd wanted{.fd = connection, .events = POLLIN, .revents = 0};
      char byte = 0;
      if (poll(&wanted, 1, 5) > 0 && recv(connection, &byte, 1, 0) <= 0) {
        ++aborted_;
        break;
      }
    }
    return false;
  }

  const uint64_t bytes_;
  const std::function<LoopbackFault(int)> fault_;
  int listener_ = -1, port_ = 0;
  std::atomic<int> requests_{0}, aborted_{0};
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace headrace
