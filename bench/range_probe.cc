// SPDX-License-Identifier: Apache-2.0
// Reads ranges of a remote object through the engine, and serves one; timed by bench/remote.py.
//
//   range_probe serve BYTES                     prints the port; answers any path until stdin ends
//   range_probe read PATH BYTES COUNT EACH N    COUNT ranges of EACH bytes, N at once: prints
//                                               CPU and wall seconds, and the number received
//   range_probe raw URL BYTES COUNT EACH N      the same by libcurl alone, into one buffer
//                                               per connection: a lower bound for clients
//                                               based on it
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/storage/file.h"
#include "headrace/storage/remote/curl_functions.h"
#include "headrace/storage/remote/remote_options.h"
#include "headrace/storage/storage.h"

namespace {

using namespace headrace;

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void serve_connection(int connection, const std::vector<char>& object) {
  const int on = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::string head;
  char block[8192];
  for (;;) {
    size_t end = 0;
    while ((end = head.find("\r\n\r\n")) == std::string::npos) {
      const ssize_t got = recv(connection, block, sizeof block, 0);
      if (got <= 0) return void(close(connection));
      head.append(block, static_cast<size_t>(got));
    }
    unsigned long long first = 0, last = object.size() - 1;
    std::string request = head.substr(0, end);
    std::transform(request.begin(), request.end(), request.begin(), ::tolower);
    if (const size_t range = request.find("range: bytes="); range != std::string::npos) {
      std::sscanf(request.c_str() + range + 13, "%llu-%llu", &first, &last);
    }
    head.erase(0, end + 4);
    last = std::min<unsigned long long>(last, object.size() - 1);
    char answer[512];
    const int size = std::snprintf(
        answer, sizeof answer,
        "HTTP/1.1 206 Partial Content\r\nETag: \"one\"\r\nContent-Length: %llu\r\n"
        "Last-Modified: Fri, 27 Nov 2026 10:00:00 GMT\r\nContent-Range: bytes %llu-%llu/%zu\r\n\r\n",
        last - first + 1, first, last, object.size());
    iovec parts[] = {{answer, static_cast<size_t>(size)},
                     {const_cast<char*>(object.data()) + first, last - first + 1}};
    for (size_t part = 0; part < 2;) {
      const ssize_t sent = writev(connection, parts + part, static_cast<int>(2 - part));
      if (sent < 0) return void(close(connection));
      auto left = static_cast<size_t>(sent);
      while (part < 2 && left >= parts[part].iov_len) left -= parts[part++].iov_len;
      if (part < 2) {
        parts[part].iov_base = static_cast<char*>(parts[part].iov_base) + left;
        parts[part].iov_len -= left;
      }
    }
  }
}

int serve(size_t bytes) {
  std::vector<char> object(bytes);
  for (size_t i = 0; i < bytes; ++i) object[i] = static_cast<char>(i * 131 + i / 251);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 1024) != 0) {
    return 1;
  }
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  std::thread([&] {
    for (;;) {
      const int connection = accept(listener, nullptr, nullptr);
      if (connection < 0) return;
      std::thread(serve_connection, connection, std::cref(object)).detach();
    }
  }).detach();
  while (std::getchar() != EOF) {
  }
  std::_Exit(0);
}

int read_by_engine(const std::string& path, uint64_t bytes, int count, uint64_t each, int at_once) {
  RemoteOptions options;
  options.connections = at_once;
  set_remote_options(options);
  const Result<FileIdentity> identity = identity_of(path);
  if (!identity || identity->size != bytes) return 1;
  Mutex mutex;
  Condition changed;
  int left = count, right = 0, awaited = 0;
  const double cpu = cpu_seconds(), wall = now();
  uint64_t place = 0;
  std::vector<AsyncRead> reads;
  std::vector<Buffer> spares;  // kept like ReadAhead does: touching a fresh page costs as much as
                               // writing it
  for (int i = 0; i < count; ++i) {
    AsyncRead read;
    read.piece = {.path = path, .offset = place, .bytes = each, .known = *identity};
    place = (place + 7919 * 4096) % (bytes - each);
    if (MutexLock lock(mutex); !spares.empty()) {
      read.bytes = std::move(spares.back());
      spares.pop_back();
    }
    read.done = [&, place = read.piece.offset](AsyncRead done) {
      const bool good = done.result && done.bytes.size() == each &&
                        done.bytes.data()[0] == static_cast<uint8_t>(place * 131 + place / 251);
      MutexLock lock(mutex);
      spares.push_back(std::move(done.bytes));
      right += good;
      if (--left <= awaited) changed.notify_all();
    };
    reads.push_back(std::move(read));
    // Like a reader: its memory is bounded, regardless of the requests.
    if (static_cast<int>(reads.size()) == at_once || i + 1 == count) {
      storage_of(path).submit(std::exchange(reads, {}));
      MutexLock lock(mutex);
      awaited = count - (i + 1) + at_once / 2;
      while (left > awaited) changed.wait(mutex);
    }
  }
  {
    MutexLock lock(mutex);
    while (left > 0) changed.wait(mutex);
  }
  std::printf("%.6f %.6f %d\n", cpu_seconds() - cpu, now() - wall, right);
  return right == count ? 0 : 1;
}

// One thread that owns all transfers, like the engine's client, but without its other work: no
// signatures, header checks or retries.
struct Raw {
  struct Transfer {
    Curl::Handle* handle = nullptr;
    std::vector<char> bytes;
    size_t got = 0;
    curl_slist* headers = nullptr;
  };
  const Curl& curl;
  Curl::Multi* multi = nullptr;
  int epoll = -1;
  std::optional<double> due = {};

  static size_t take(char* data, size_t, size_t count, void* to) {
    auto& transfer = *static_cast<Transfer*>(to);
    std::memcpy(transfer.bytes.data() + transfer.got, data, count);
    transfer.got += count;
    return count;
  }
  static int on_socket(Curl::Handle*, int socket, int what, void* to, void* known) {
    auto& self = *static_cast<Raw*>(to);
    if (what == Curl::kPollRemove) return epoll_ctl(self.epoll, EPOLL_CTL_DEL, socket, nullptr), 0;
    epoll_event wanted{.events = 0, .data = {.fd = socket}};
    if (what & Curl::kPollIn) wanted.events |= EPOLLIN;
    if (what & Curl::kPollOut) wanted.events |= EPOLLOUT;
    (void)epoll_ctl(self.epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &wanted);
    if (!known) (void)self.curl.multi_assign(self.multi, socket, to);
    return 0;
  }
  static int on_timer(Curl::Multi*, long milliseconds, void* to) {
    auto& self = *static_cast<Raw*>(to);
    self.due.reset();
    if (milliseconds >= 0) self.due = now() + static_cast<double>(milliseconds) * 1e-3;
    return 0;
  }
  void act() {
    epoll_event events[256];
    const double left = due ? std::max(0.0, *due - now()) : 1;
    const int count = epoll_wait(epoll, events, 256, static_cast<int>(left * 1e3 + 0.999));
    int running = 0;
    for (int i = 0; i < count; ++i) {
      const int bits = ((events[i].events & EPOLLIN) ? Curl::kSelectIn : 0) |
                       ((events[i].events & EPOLLOUT) ? Curl::kSelectOut : 0);
      (void)curl.multi_socket_action(multi, events[i].data.fd, bits, &running);
    }
    if (!due || *due > now()) return;
    due.reset();
    (void)curl.multi_socket_action(multi, Curl::kSocketTimeout, 0, &running);
  }
};

int read_raw(const std::string& url, uint64_t bytes, int count, uint64_t each, int at_once) {
  const Result<const Curl*> opened = Curl::opened();
  if (!opened) return 1;
  const Curl& curl = **opened;
  Raw raw{.curl = curl, .multi = curl.multi_init(), .epoll = epoll_create1(0)};
  const auto set_all = [&](int option, auto value) {
    (void)curl.multi_setopt(raw.multi, option, value);
  };
  set_all(Curl::kSocketFunction, &Raw::on_socket);
  set_all(Curl::kSocketData, static_cast<void*>(&raw));
  set_all(Curl::kTimerFunction, &Raw::on_timer);
  set_all(Curl::kTimerData, static_cast<void*>(&raw));
  set_all(Curl::kPipelining, 0L);
  set_all(Curl::kMaxConnects, static_cast<long>(at_once));
  int begun = 0, right = 0, ended = 0;
  uint64_t place = 0;
  const auto begin = [&](Raw::Transfer& transfer) {
    transfer.got = 0;
    curl.slist_free_all(std::exchange(transfer.headers, nullptr));
    const std::string range =
        "Range: bytes=" + std::to_string(place) + "-" + std::to_string(place + each - 1);
    transfer.headers = curl.slist_append(nullptr, range.c_str());
    (void)curl.easy_setopt(transfer.handle, Curl::kHttpHeader, transfer.headers);
    place = (place + 7919 * 4096) % (bytes - each);
    ++begun;
    (void)curl.multi_add_handle(raw.multi, transfer.handle);
  };
  std::vector<Raw::Transfer> transfers(static_cast<size_t>(at_once));
  for (Raw::Transfer& transfer : transfers) {
    transfer.bytes.resize(each);
    transfer.handle = curl.easy_init();
    const auto set = [&](int option, auto value) {
      (void)curl.easy_setopt(transfer.handle, option, value);
    };
    set(Curl::kUrl, url.c_str());
    set(Curl::kHttpVersion, Curl::kHttp11);
    set(Curl::kNoSignal, 1L);
    set(Curl::kTcpNoDelay, 1L);
    set(Curl::kBufferSize, 128L << 10);
    set(Curl::kPrivate, static_cast<void*>(&transfer));
    set(Curl::kWriteFunction, &Raw::take);
    set(Curl::kWriteData, static_cast<void*>(&transfer));
  }
  const double cpu = cpu_seconds(), wall = now();
  for (Raw::Transfer& transfer : transfers) {
    if (begun < count) begin(transfer);
  }
  while (ended < count) {
    raw.act();
    int left = 0;
    while (const Curl::Message* message = curl.multi_info_read(raw.multi, &left)) {
      void* to = nullptr;
      (void)curl.easy_getinfo(message->handle, Curl::kInfoPrivate, &to);
      auto& transfer = *static_cast<Raw::Transfer*>(to);
      right += message->data.result == Curl::kOk && transfer.got == each;
      ++ended;
      (void)curl.multi_remove_handle(raw.multi, transfer.handle);
      if (begun < count) begin(transfer);
    }
  }
  std::printf("%.6f %.6f %d\n", cpu_seconds() - cpu, now() - wall, right);
  return right == count ? 0 : 1;
}

}  // namespace

int main(int count, char** given) {
  const std::string what = count > 2 ? given[1] : "";
  if (what == "serve") return serve(std::strtoull(given[2], nullptr, 10));
  if ((what != "read" && what != "raw") || count != 7) return 2;
  return (what == "raw" ? read_raw : read_by_engine)(
      given[2], std::strtoull(given[3], nullptr, 10), std::atoi(given[4]),
      std::strtoull(given[5], nullptr, 10), std::atoi(given[6]));
}
