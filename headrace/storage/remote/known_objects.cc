// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/known_objects.h"

#include <utility>

#include "headrace/base/clock.h"
#include "headrace/base/random.h"

namespace headrace {
namespace {

constexpr uint64_t kRemote = 2;  // as a device: no disk's, nor files in memory

KnownObjects::Look look_of(const RemoteEntry& entry) {
  if (entry.is_folder) return {.status = {.kind = PathKind::kFolder}};
  HttpResponse head;
  head.etag = entry.etag;
  return {.status = {.kind = PathKind::kFile,
                     .identity = identity_of_version(head.version(), entry.size)},
          .etag = entry.etag};
}

}  // namespace

FileIdentity identity_of_version(std::string_view version, uint64_t size) {
  return {.device = kRemote, .inode = version.empty() ? 0 : hash_name(version), .size = size};
}

std::optional<KnownObjects::Look> KnownObjects::look(const std::string& path) const {
  const double since = now() - kSeconds;
  MutexLock lock(mutex_);
  drop_if_configured();
  if (const auto seen = looks_.find(path); seen != looks_.end() && seen->second.time > since) {
    return seen->second.look;
  }
  // In a folder of which all is known, or below what is no folder there.
  for (size_t end = path.size(), slash = path.rfind('/'); slash != std::string::npos;
       end = slash, slash = slash > 0 ? path.rfind('/', slash - 1) : std::string::npos) {
    const auto folder = listings_.find(path.substr(0, slash));
    if (folder == listings_.end() || folder->second.time <= since) continue;
    const auto found =
        folder->second.by_name.find(std::string_view(path).substr(slash + 1, end - slash - 1));
    if (found == folder->second.by_name.end()) return Look{};
    if (end == path.size()) return look_of((*folder->second.entries)[found->second]);
    return {};
  }
  return {};
}

void KnownObjects::saw(const std::string& path, Look look) {
  const double time = now();
  MutexLock lock(mutex_);
  drop_old(time);
  if (look.etag.starts_with('"') && etags_.size() < kMostEtags) {
    etags_[look.status.identity.inode] = look.etag;
  }
  looks_.insert_or_assign(path, Seen{time, std::move(look)});
}

void KnownObjects::saw_head(const std::string& path, const FileIdentity& identity,
                            std::shared_ptr<const std::string> head) {
  saw(path, {.status = {.kind = PathKind::kFile, .identity = identity}, .head = std::move(head)});
}

void KnownObjects::drop_if_configured() const {
  std::shared_ptr<const RemoteOptions> options = remote_options();
  if (options == options_) return;
  looks_.clear();
  listings_.clear();
  options_ = std::move(options);
}

void KnownObjects::drop_old(double time) {
  if (looks_.size() >= kMostLooks) {
    std::erase_if(looks_, [&](const auto& seen) { return seen.second.time <= time - kSeconds; });
    if (looks_.size() >= kMostLooks) looks_.clear();
  }
  std::erase_if(listings_, [&](const auto& seen) { return seen.second.time <= time - kSeconds; });
}

std::shared_ptr<const KnownObjects::Entries> KnownObjects::listing(
    const std::string& folder) const {
  MutexLock lock(mutex_);
  drop_if_configured();
  const auto found = listings_.find(folder);
  if (found == listings_.end() || found->second.time <= now() - kSeconds) return nullptr;
  return found->second.entries;
}

void KnownObjects::saw_listing(const std::string& folder, std::shared_ptr<const Entries> entries) {
  Listing listing{.time = now(), .entries = std::move(entries), .by_name = {}};
  listing.by_name.reserve(listing.entries->size());
  for (size_t i = 0; i < listing.entries->size(); ++i) {
    // A file comes before a folder of the same name.
    const RemoteEntry& entry = (*listing.entries)[i];
    const auto [place, added] = listing.by_name.try_emplace(entry.name, i);
    if (!added && !entry.is_folder) place->second = i;
  }
  MutexLock lock(mutex_);
  drop_old(listing.time);
  for (const RemoteEntry& entry : *listing.entries) {
    if (entry.is_folder || !entry.etag.starts_with('"') || etags_.size() >= kMostEtags) continue;
    HttpResponse head;
    head.etag = entry.etag;
    etags_[identity_of_version(head.version(), entry.size).inode] = entry.etag;
  }
  listings_.insert_or_assign(folder, std::move(listing));
}

std::string KnownObjects::etag_of(const FileIdentity& identity) const {
  MutexLock lock(mutex_);
  const auto found = etags_.find(identity.inode);
  return found == etags_.end() ? std::string() : found->second;
}

void KnownObjects::forget(const std::string& path) {
  MutexLock lock(mutex_);
  looks_.erase(path);
  if (const size_t slash = path.rfind('/'); slash != std::string::npos) {
    listings_.erase(path.substr(0, slash));
  }
}

}  // namespace headrace
