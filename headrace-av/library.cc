// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <algorithm>
#include <cstdarg>
#include <utility>

extern "C" {
#include <libavutil/log.h>
}

namespace headrace::media {
namespace {

bool complained = false;  // this program has one thread

void on_log_message(void*, int level, const char*, va_list) { complained |= level <= AV_LOG_ERROR; }

}  // namespace

void record_library_errors() { av_log_set_callback(on_log_message); }
bool library_reported_error() { return std::exchange(complained, false); }

Context new_context(const AVCodec* codec, std::span<const uint8_t> parameters) {
  Context context(avcodec_alloc_context3(codec));
  if (!context) return nullptr;
  context->thread_count = 1;
  context->err_recognition = AV_EF_EXPLODE;
  if (parameters.empty()) return context;
  context->extradata =
      static_cast<uint8_t*>(av_mallocz(parameters.size() + AV_INPUT_BUFFER_PADDING_SIZE));
  if (!context->extradata) return nullptr;
  std::ranges::copy(parameters, context->extradata);
  context->extradata_size = static_cast<int>(parameters.size());
  return context;
}

}  // namespace headrace::media
