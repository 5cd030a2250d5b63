// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/bucket_files.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/storage/remote/known_objects.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

constexpr size_t kListingsAtOnce = 256;
// Known folders: with fewer, their subfolders are searched first, so that there are enough to list
// concurrently.
constexpr size_t kEnoughFolders = 16;

// What earlier existence checks and reads of its beginning revealed about a folder.
std::optional<ListPage> known_page(const ListQuery& query) {
  if (query.flat || !query.next.empty()) return {};
  if (const auto all = known_objects().listing(query.folder)) {
    return ListPage{.entries = *all, .has_keys = true, .next = {}};
  }
  return known_objects().first_page(query.folder);
}

}  // namespace

// Pages of many folders are requested concurrently. Few folders are listed one level at a time;
// once there are enough, each with everything below it.
Result<PathStatus> BucketFiles::list_below(const std::string& given, const EachEntry& each) const {
  const std::string root = without_slash(given);
  struct Arrivals {
    Mutex mutex;
    Condition changed;
    std::deque<std::pair<ListQuery, FetchResult>> pages GUARDED_BY(mutex);
  };
  const auto arrivals = std::make_shared<Arrivals>();  // shared: with requests under way
  std::deque<ListQuery> waiting = {{.folder = root}};
  size_t under_way = 0, folders_known = 0;
  bool is_there = false, goes_on = true;
  const auto take = [&](const ListQuery& query, Result<ListPage> page) -> Result<void> {
    if (!page) return std::move(page.error());
    is_there |= page->has_keys;
    std::erase_if(page->entries, [&](const RemoteEntry& entry) {
      return entry.is_folder && entry.name == query.last_folder;
    });
    if (!page->next.empty()) {
      ListQuery more = query;
      more.next = std::move(page->next);
      const auto folder = std::ranges::find_if(page->entries.rbegin(), page->entries.rend(),
                                               &RemoteEntry::is_folder);
      if (folder != page->entries.rend()) more.last_folder = folder->name;
      waiting.push_front(std::move(more));
    }
    folders_known += static_cast<size_t>(std::ranges::count_if(
        page->entries, [&](const RemoteEntry& entry) { return entry.is_folder && !query.flat; }));
    const bool flat = folders_known >= kEnoughFolders;
    for (RemoteEntry& entry : page->entries) {
      std::string path = query.folder + "/" + entry.name;
      if (entry.is_folder && !query.flat) waiting.push_back({.folder = path, .flat = flat});
      const auto kind = entry.is_folder ? PathKind::kFolder : PathKind::kFile;
      goes_on = goes_on && each(std::string_view(path).substr(root.size() + 1), kind);
    }
    return {};
  };
  while (goes_on && (!waiting.empty() || under_way > 0)) {
    while (!waiting.empty() && under_way < kListingsAtOnce) {
      const ListQuery query = std::move(waiting.front());
      waiting.pop_front();
      if (std::optional<ListPage> known = known_page(query)) {
        if (Result<void> taken = take(query, std::move(*known)); !taken) {
          return std::move(taken.error());
        }
        continue;
      }
      cloud().prepare(/*looks=*/false);
      Fetch fetch = new_listing(query);
      fetch.done = [arrivals, query](FetchResult got) {
        MutexLock lock(arrivals->mutex);
        arrivals->pages.emplace_back(query, std::move(got));
        arrivals->changed.notify_all();
      };
      ++under_way;
      RangeClient::of_process().submit(std::move(fetch));
    }
    if (under_way == 0) continue;
    std::deque<std::pair<ListQuery, FetchResult>> pages;
    {
      MutexLock lock(arrivals->mutex);
      while (arrivals->pages.empty()) arrivals->changed.wait(arrivals->mutex);
      pages.swap(arrivals->pages);
    }
    for (auto& [query, got] : pages) {
      --under_way;
      Result<void> taken = take(query, page_from(query, std::move(got)));
      if (!taken) return std::move(taken.error());
    }
  }
  if (!is_there) return storage_error(ENOENT, "list", given);
  return folder_status(root);
}

Result<bool> BucketFiles::store(const std::string& path, std::string content) const {
  if (!cloud().stores()) return stores_nothing_error(path);
  cloud().prepare(/*looks=*/true);
  Fetch fetch = new_fetch(path);
  fetch.redirected = {};
  fetch.upload = std::make_shared<const std::string>(std::move(content));  // shared: with tries
  FetchResult got = RangeClient::of_process().fetch(std::move(fetch));
  known_objects().added(path);
  if (!got.result) return std::move(got.result.error());
  if (!got.found) return request_error(path, "the server answered 404", "check the bucket's name");
  return !got.changed;
}

}  // namespace headrace
