// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader_feed.h"

#include <utility>

namespace headrace {
namespace {

struct Stopped {};

}  // namespace

LoaderFeed::LoaderFeed(std::shared_ptr<Loader> loader) : loader_(std::move(loader)) {
  loader_->prepare();
}

std::optional<HostBatch> LoaderFeed::next(const std::function<bool()>& stopping) {
  std::optional<Batch> batch;
  try {
    batch = loader_->next([&] {
      if (stopping()) throw Stopped{};
    });
  } catch (const Stopped&) {
    return std::nullopt;
  }
  if (!batch) return std::nullopt;
  HostBatch out;
  for (BatchField& field : batch->fields) {
    if (field.is_list) continue;
    out.tensors.push_back({field.view, std::move(field.lease), field.is_pinned});
  }
  out.rest = std::make_shared<FedBatch>(FedBatch{std::move(*batch), loader_->state()});
  return out;
}

}  // namespace headrace
