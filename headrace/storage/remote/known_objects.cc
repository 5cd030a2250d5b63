// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/known_objects.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/base/per_process.h"
#include "headrace/base/random.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/remote/object_list.h"

namespace headrace {
namespace {

constexpr uint64_t kRemote =
    2;  // device number of remote files; different from those of disks and MemoryFiles

KnownObjects::Look look_of(const RemoteEntry& entry) {
  if (entry.is_folder) return {.status = {.kind = PathKind::kFolder}};
  HttpResponse head;
  head.etag = entry.etag;
  return {.status = {.kind = PathKind::kFile,
                     .identity = identity_of_version(head.version(), entry.size)},
          .etag = entry.etag};
}

}  // namespace

KnownObjects& known_objects() { return of_this_process<KnownObjects>(); }

std::string without_slash(std::string path) {
  while (path.ends_with('/') && !path.ends_with("://")) path.pop_back();
  return path;
}

PathStatus folder_status(const std::string& path) {
  return {.kind = PathKind::kFolder,
          .identity = {.device = kRemote, .inode = hash_name(path), .modified_ns = now_ns()}};
}

FileIdentity identity_of_version(std::string_view version, uint64_t size) {
  return {.device = kRemote, .inode = version.empty() ? 0 : hash_name(version), .size = size};
}

std::optional<KnownObjects::Look> KnownObjects::look(const std::string& path, double time) {
  MutexLock lock(mutex_);
  drop_if_configured();
  if (const auto seen = looks_.find(path);
      seen != looks_.end() && seen->second.time > time - kSeconds) {
    return seen->second.look;
  }
  // A path is known to be missing if the listing of its folder lacks it, or if a parent is not a
  // folder.
  for (size_t end = path.size(), slash = path.rfind('/'); slash != std::string::npos;
       end = slash, slash = slash > 0 ? path.rfind('/', slash - 1) : std::string::npos) {
    const auto folder = listings_.find(path.substr(0, slash));
    if (folder == listings_.end() || folder->second.until <= time) continue;
    const auto found =
        folder->second.by_name.find(std::string_view(path).substr(slash + 1, end - slash - 1));
    if (found == folder->second.by_name.end()) {
      if (folder->second.ended > time - kSeconds) return Look{};
      return {};  // it may have been created in the meantime
    }
    if (end == path.size()) {
      Look out = look_of((*folder->second.entries)[found->second]);
      keep_etag(out.status.identity, out.etag);  // only for files that are inspected
      return out;
    }
    return {};
  }
  return {};
}

bool KnownObjects::is_current(const Generation& asked) const {
  drop_if_configured();
  return asked == options_;
}

void KnownObjects::saw(const std::string& path, Look look, const Generation& asked) {
  const double time = now();
  MutexLock lock(mutex_);
  if (!is_current(asked)) return;
  drop_old(time);
  keep_etag(look.status.identity, look.etag);
  if (look.status.kind == PathKind::kFile) keep_version(path, look.status.identity);
  const bool is_large = look.tail || (look.head && look.head->size() > kSmallHead);
  looks_.insert_or_assign(path, Seen{time, std::move(look)});
  if (is_large) drop_ends(time);
}

void KnownObjects::drop_ends(double time) {
  std::vector<Seen*> newest;
  for (auto& [path, seen] : looks_) {
    if (seen.look.head) newest.push_back(&seen);
  }
  std::ranges::sort(newest, std::greater(), &Seen::time);
  uint64_t held = 0;
  for (Seen* seen : newest) {
    held += seen->look.head->size() + (seen->look.tail ? seen->look.tail->size() : 0);
    if (held > kMaxHeld || seen->time <= time - kSeconds) {
      seen->look.head = seen->look.tail = nullptr;
    }
  }
}

void KnownObjects::keep_etag(const FileIdentity& identity, const std::string& etag) {
  if (etag.starts_with('"') && etags_.size() < kMaxEtags) etags_[identity.inode] = etag;
}

void KnownObjects::saw_head(const std::string& path, const FileIdentity& identity,
                            std::shared_ptr<const std::string> head, const Generation& asked) {
  saw(path, {.status = {.kind = PathKind::kFile, .identity = identity}, .head = std::move(head)},
      asked);
}

void KnownObjects::drop_if_configured() const {
  std::shared_ptr<const RemoteOptions> options = remote_options();
  if (options == options_) return;
  looks_.clear();
  listings_.clear();
  first_pages_.clear();
  versions_.clear();
  options_ = std::move(options);
}

// Once per second, since it visits everything that is stored.
void KnownObjects::drop_old(double time) {
  if (looks_.size() >= kMaxLooks) {
    std::erase_if(looks_, [&](const auto& seen) { return seen.second.time <= time - kSeconds; });
    if (looks_.size() >= kMaxLooks) looks_.clear();
  }
  if (time < dropped_at_ + 1) return;
  dropped_at_ = time;
  std::erase_if(listings_, [&](const auto& seen) { return seen.second.until <= time; });
  std::erase_if(first_pages_,
                [&](const auto& seen) { return seen.second.time <= time - kSeconds; });
}

std::shared_ptr<const KnownObjects::Entries> KnownObjects::listing(
    const std::string& folder) const {
  MutexLock lock(mutex_);
  drop_if_configured();
  const auto found = listings_.find(folder);
  if (found == listings_.end() || found->second.until <= now()) return nullptr;
  return found->second.entries;
}

Result<void> KnownObjects::saw_listing(const std::string& folder, Entries entries, double begun,
                                       const Generation& asked) {
  const double time = now();
  Listing listing{.ended = time,
                  .until = time + std::max(kSeconds, time - begun),
                  .entries = std::make_shared<const Entries>(std::move(entries)),
                  .by_name = {}};
  listing.by_name.reserve(listing.entries->size());
  for (size_t i = 0; i < listing.entries->size(); ++i) {
    // A file comes before a folder of the same name.
    const RemoteEntry& entry = (*listing.entries)[i];
    const auto [place, added] = listing.by_name.try_emplace(entry.name, i);
    if (added) continue;
    if (!entry.is_folder && !(*listing.entries)[place->second].is_folder) {
      Error twice = bad_listing("it contains \"" + entry.name + "\" twice");
      twice.where.file = folder;
      return twice;
    }
    if (!entry.is_folder) place->second = i;
  }
  MutexLock lock(mutex_);
  if (!is_current(asked)) return {};
  drop_old(time);
  listings_.insert_or_assign(folder, std::move(listing));
  return {};
}

void KnownObjects::saw_first_page(const std::string& folder, ListPage page,
                                  const Generation& asked) {
  MutexLock lock(mutex_);
  if (!is_current(asked)) return;
  first_pages_.insert_or_assign(folder, FirstPage{now(), std::move(page)});
}

std::optional<ListPage> KnownObjects::first_page(const std::string& folder) const {
  MutexLock lock(mutex_);
  drop_if_configured();
  const auto found = first_pages_.find(folder);
  if (found == first_pages_.end() || found->second.time <= now() - kSeconds) return {};
  return found->second.page;
}

std::string KnownObjects::etag_of(const FileIdentity& identity) const {
  MutexLock lock(mutex_);
  const auto found = etags_.find(identity.inode);
  return found == etags_.end() ? std::string() : found->second;
}

void KnownObjects::keep_version(const std::string& path, const FileIdentity& identity) {
  versions_.set(hash_name(path), {identity.inode, identity.size});
}

void KnownObjects::saw_version(const std::string& path, const FileIdentity& identity,
                               const Generation& asked) {
  MutexLock lock(mutex_);
  if (is_current(asked)) keep_version(path, identity);
}

void KnownObjects::saw_page(const std::string& folder, const Entries& entries,
                            const Generation& asked) {
  MutexLock lock(mutex_);
  if (!is_current(asked)) return;
  std::string path = folder + "/";
  const size_t folder_bytes = path.size();
  for (const RemoteEntry& entry : entries) {
    if (entry.is_folder) continue;
    path.resize(folder_bytes);
    path += entry.name;
    keep_version(path, look_of(entry).status.identity);
  }
}

std::optional<FileIdentity> KnownObjects::version_of(const std::string& path) const {
  MutexLock lock(mutex_);
  drop_if_configured();
  const auto found = versions_.find(hash_name(path));
  if (!found) return {};
  return FileIdentity{.device = kRemote, .inode = found->inode, .size = found->size};
}

void KnownObjects::added(const std::string& path) {
  MutexLock lock(mutex_);
  looks_.erase(path);
  for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string folder = path.substr(0, slash);
    looks_.erase(folder);
    listings_.erase(folder);
    first_pages_.erase(folder);
  }
}

void KnownObjects::forget(const std::string& path) {
  MutexLock lock(mutex_);
  looks_.erase(path);
  versions_.forget(hash_name(path));
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return;
  // Facts about other paths stay valid.
  const std::string folder = path.substr(0, slash);
  const std::string_view name = std::string_view(path).substr(slash + 1);
  const auto listed = listings_.find(folder);
  if (listed != listings_.end() && listed->second.by_name.contains(name)) listings_.erase(listed);
  const auto first = first_pages_.find(folder);
  if (first == first_pages_.end()) return;
  const auto is_it = [&](const RemoteEntry& entry) { return entry.name == name; };
  if (std::ranges::any_of(first->second.page.entries, is_it)) first_pages_.erase(first);
}

}  // namespace headrace
