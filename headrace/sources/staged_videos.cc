// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/staged_videos.h"

namespace headrace {
namespace {

thread_local std::span<const StagedVideo> staged;

}  // namespace

StagedVideos::StagedVideos(std::span<const StagedVideo> videos) : outer_(staged) {
  staged = videos;
}

StagedVideos::~StagedVideos() { staged = outer_; }

const StagedVideo* StagedVideos::find(std::string_view path) {
  for (const StagedVideo& each : staged) {
    if (each.path == path) return &each;
  }
  return nullptr;
}

}  // namespace headrace
