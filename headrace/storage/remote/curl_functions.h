// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded by dlopen at the first remote path instead of linked, so that the engine loads
// without it. Any thread may call opened(); libcurl's own rules apply to the functions.
#pragma once

#include <cstddef>

#include "headrace/base/error.h"

namespace headrace {

struct curl_slist;

// The used part of <curl/curl.h>. The numbers are libcurl's binary interface, which has been kept
// since 2006 (SONAME 4), so libcurl's headers are not needed to build.
struct Curl {
  using Handle = void;
  using Multi = void;

  enum Option : int {
    kWriteData = 10001,
    kUrl = 10002,
    kUserPassword = 10005,
    kReadData = 10009,
    kErrorBuffer = 10010,
    kUserAgent = 10018,
    kHttpHeader = 10023,
    kHeaderData = 10029,
    kCaInfo = 10065,
    kPrivate = 10103,
    kSeekData = 10168,
    kWriteFunction = 20011,
    kReadFunction = 20012,
    kHeaderFunction = 20079,
    kSeekFunction = 20167,
    kBodyBytes = 30115,
    kUpload = 46,
    kFreshConnect = 74,
    kGet = 80,
    kHttpVersion = 84,
    kDnsCacheTimeout = 92,
    kBufferSize = 98,
    kNoSignal = 99,
    kTcpNoDelay = 121,
    kConnectTimeoutMs = 156,
    kProtocols = 181,
    kTcpKeepAlive = 213,
    kPathAsIs = 234,
    kDnsShuffleAddresses = 275,
  };
  enum MultiOption : int {
    kPipelining = 3,
    kMaxConnects = 6,
    kSocketData = 10002,
    kTimerData = 10005,
    kSocketFunction = 20001,
    kTimerFunction = 20004,
  };
  enum Info : int { kInfoPrivate = 0x100000 + 21 };
  // The results of a transfer (CURLcode) that we distinguish.
  enum Code : int {
    kOk = 0,
    kBadUrl = 3,
    kNoHost = 6,
    kNoConnection = 7,
    kPartial = 18,
    kWriteError = 23,
    kTimedOut = 28,
    kBadCertificate = 60,
    kBadCaFile = 77,
  };
  static constexpr long kHttp11 = 2, kHttpAndHttps = 3;
  static constexpr int kSocketTimeout = -1;
  static constexpr int kPollIn = 1, kPollOut = 2, kPollInOut = 3, kPollRemove = 4;
  static constexpr int kSelectIn = 1, kSelectOut = 2, kSelectError = 4;
  static constexpr int kMessageDone = 1;
  static constexpr long kAllProtocols = 3;  // curl_global_init: SSL and, on Windows, sockets

  struct Message {
    int kind;
    Handle* handle;
    union {
      void* unused;
      int result;
    } data;
  };

  int (*global_init)(long flags);
  Handle* (*easy_init)();
  void (*easy_cleanup)(Handle*);
  int (*easy_setopt)(Handle*, int option, ...);
  int (*easy_getinfo)(Handle*, int info, ...);
  const char* (*easy_strerror)(int code);
  Multi* (*multi_init)();
  int (*multi_cleanup)(Multi*);
  int (*multi_setopt)(Multi*, int option, ...);
  int (*multi_add_handle)(Multi*, Handle*);
  int (*multi_remove_handle)(Multi*, Handle*);
  int (*multi_socket_action)(Multi*, int socket, int events, int* running);
  int (*multi_assign)(Multi*, int socket, void*);
  Message* (*multi_info_read)(Multi*, int* left);
  curl_slist* (*slist_append)(curl_slist*, const char*);
  void (*slist_free_all)(curl_slist*);

  // The library, which is never unloaded. HR0220 if it is missing or lacks a function.
  static Result<const Curl*> opened();
};

}  // namespace headrace
