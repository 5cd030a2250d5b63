// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/curl_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>

#include "headrace/base/clock.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {

CurlLoop::CurlLoop() {
  Result<const Curl*> opened = Curl::opened();
  if (!opened) {
    missing_ = std::move(opened.error());
    return;
  }
  curl_ = *opened;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event wanted{.events = EPOLLIN, .data = {.fd = event_}};
  if (epoll_ < 0 || event_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &wanted) != 0) {
    missing_ = storage_error(errno, "read", "");
  }
}

CurlLoop::~CurlLoop() {
  if (event_ >= 0) close(event_);
  if (epoll_ >= 0) close(epoll_);
}

void CurlLoop::wake() const {
  const uint64_t one = 1;
  (void)!write(event_, &one, sizeof one);
}

void CurlLoop::begin(int max_idle) {
  multi_ = curl_->multi_init();
  (void)curl_->multi_setopt(multi_, Curl::kSocketFunction, &CurlLoop::on_socket);
  (void)curl_->multi_setopt(multi_, Curl::kSocketData, static_cast<void*>(this));
  (void)curl_->multi_setopt(multi_, Curl::kTimerFunction, &CurlLoop::on_timer);
  (void)curl_->multi_setopt(multi_, Curl::kTimerData, static_cast<void*>(this));
  (void)curl_->multi_setopt(multi_, Curl::kPipelining, 0L);
  (void)curl_->multi_setopt(multi_, Curl::kMaxConnects, static_cast<long>(max_idle));
}

void CurlLoop::end() { (void)curl_->multi_cleanup(multi_); }

void CurlLoop::add(Curl::Handle* handle) { (void)curl_->multi_add_handle(multi_, handle); }

void CurlLoop::remove(Curl::Handle* handle) { (void)curl_->multi_remove_handle(multi_, handle); }

int CurlLoop::on_socket(Curl::Handle*, int socket, int what, void* loop, void* known) {
  const auto& self = *static_cast<CurlLoop*>(loop);
  if (what == Curl::kPollRemove) {
    (void)epoll_ctl(self.epoll_, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event wanted{.events = 0, .data = {.fd = socket}};
  if (what & Curl::kPollIn) wanted.events |= EPOLLIN;
  if (what & Curl::kPollOut) wanted.events |= EPOLLOUT;
  (void)epoll_ctl(self.epoll_, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &wanted);
  if (!known) (void)self.curl_->multi_assign(self.multi_, socket, loop);
  return 0;
}

int CurlLoop::on_timer(Curl::Multi*, long milliseconds, void* loop) {
  auto& self = *static_cast<CurlLoop*>(loop);
  if (milliseconds < 0) {
    self.due_.reset();
  } else {
    self.due_ = now() + static_cast<double>(milliseconds) * 1e-3;
  }
  return 0;
}

void CurlLoop::wait(double until) {
  if (due_) until = std::min(until, *due_);
  const double left = std::max(0.0, until - now());
  std::array<epoll_event, 256> events;
  const int count =
      epoll_wait(epoll_, events.data(), events.size(), static_cast<int>(std::ceil(left * 1e3)));
  int running = 0;
  for (int i = 0; i < count; ++i) {
    const int socket = events[i].data.fd;
    if (socket == event_) {
      uint64_t ignored = 0;
      (void)!read(event_, &ignored, sizeof ignored);
      continue;
    }
    const uint32_t what = events[i].events;
    const int bits = ((what & EPOLLIN) ? Curl::kSelectIn : 0) |
                     ((what & EPOLLOUT) ? Curl::kSelectOut : 0) |
                     ((what & (EPOLLERR | EPOLLHUP)) ? Curl::kSelectError : 0);
    (void)curl_->multi_socket_action(multi_, socket, bits, &running);
  }
  if (due_ && *due_ <= now()) {
    due_.reset();
    (void)curl_->multi_socket_action(multi_, Curl::kSocketTimeout, 0, &running);
  }
}

std::optional<CurlLoop::Done> CurlLoop::next_done() {
  int left = 0;
  while (const Curl::Message* message = curl_->multi_info_read(multi_, &left)) {
    if (message->kind != Curl::kMessageDone) continue;
    Done done{.transfer = nullptr, .code = message->data.result};
    (void)curl_->easy_getinfo(message->handle, Curl::kInfoPrivate, &done.transfer);
    return done;
  }
  return std::nullopt;
}

}  // namespace headrace
