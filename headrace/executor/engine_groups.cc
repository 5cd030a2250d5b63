// SPDX-License-Identifier: Apache-2.0
// Records of a run that go together: a decoder with lanes takes the pictures of several at once.
//
// Note [Pixels together]: a step that looks at pixels would decode its own record's picture alone.
// So each record of the group goes to the first step that asks for one, and stands before it again;
// what was asked for (PixelRequests) is decoded together, all views of a record at once; then each
// record does that step anew, and its requests are answered. A step draws the same each time, so it
// asks for the same.
#include <algorithm>

#include "headrace/executor/caught_error.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

// Records that are taken together where there is nothing to decode; else their decoder's lanes say
// how many. Their encoded bytes are held together, so large ones go alone.
constexpr int kGroup = 16;
constexpr size_t kGroupBytes = size_t{2} << 20;

// Of pictures that come as tensors, and of what steps have made.
size_t copied_bytes(const Record& record) {
  size_t bytes = made_bytes(record);
  for (const auto& picture : record.pixels) bytes += picture ? picture->pixels.size() : 0;
  return bytes;
}

// How many records like this one gain from company. Pictures that gain nothing are decoded one by
// one, while their bytes are in the cache.
int largest_group(const Record& record, Renderer& renderer) {
  int lanes = 0;
  for (const FieldValue& value : record.fields) {
    const int its = renderer.lanes(value.picture);
    if (its > 0) lanes = lanes > 0 ? std::min(lanes, its) : its;
  }
  return lanes > 0 ? lanes : kGroup;
}

// The first of equal parts: none is small at the end.
int equal_part(int count, int most) {
  const int parts = (count + most - 1) / most;
  return (count + parts - 1) / parts;
}

bool is_begun(const InFlight& flight) { return flight.state == InFlight::State::kBegun; }

}  // namespace

// Returns how many records it took.
int Engine::process_group(RecordRun& run, int first, Renderer& renderer) {
  const int left = run.rows - first;
  RecordRun group{.batch = run.batch,
                  .first_row = run.first_row + first,
                  .rows = left,
                  .own_activity = {},
                  .activity = run.activity,
                  .flight = std::move(run.flight),
                  .sources = std::move(run.sources)};
  const int taken = begin_group(group, renderer);
  advance_group(group, taken, renderer);
  try {
    write_records(group, 0, taken, renderer);
  } catch (const std::exception&) {
    fail_by_exception(group, 0, taken);
  }
  substitute_bad(group, taken, renderer);
  // One that found too little memory beside the others is the first of the next group.
  if (taken < left && std::ssize(group.flight) > taken && is_begun(group.flight[taken])) {
    std::swap(group.flight[0], group.flight[taken]);
  }
  run.flight = std::move(group.flight);
  run.sources = std::move(group.sources);
  return taken;
}

// Only the first one may wait for memory: it holds none itself. Returns how many there are.
int Engine::begin_group(RecordRun& group, Renderer& renderer) {
  int most = order_.partners() > 0 ? 1 : group.rows;
  size_t bytes = 0;
  int taken = 0;
  while (taken < most && (taken == 0 || (bytes < kGroupBytes && !read_ahead_.is_full()))) {
    const int i = taken;
    if (std::ssize(group.flight) <= i) group.flight.resize(i + 1);
    InFlight& flight = group.flight[i];
    try {
      const bool may_wait = record_bytes_.asks_early() ? i == 0 : bytes == 0;
      if (!is_begun(flight)) begin_record(group, i, renderer, may_wait);
      if (record_bytes_.asks_early() && is_begun(flight) && !reserve_early(group, i)) break;
    } catch (const std::exception&) {
      fail_by_exception(group, i, 1);
    }
    ++taken;
    bytes += flight.lent.bytes() + copied_bytes(flight.record);
    most = std::min(most, equal_part(group.rows, largest_group(flight.record, renderer)));
  }
  return taken;
}

// To where the records can be written.
void Engine::advance_group(RecordRun& group, int taken, Renderer& renderer) {
  const bool together = record_bytes_.asks_early() && taken > 1;
  std::vector<Recipe*> asked_for;
  do {
    asked_for.clear();
    for (int i = 0; i < taken; ++i) {
      InFlight& flight = group.flight[i];
      if (!is_begun(flight)) continue;
      try {
        advance_record(group, i, renderer, together);
      } catch (const std::exception&) {
        fail_by_exception(group, i, 1);
      }
      if (!is_begun(flight)) continue;
      for (Recipe& picture : flight.requests.pictures) {
        if (!picture.pixels()) asked_for.push_back(&picture);
      }
    }
    renderer.materialize(asked_for);
  } while (!asked_for.empty());
}

void Engine::substitute_bad(RecordRun& group, int taken, Renderer& renderer) {
  for (int i = 0; i < taken; ++i) {
    if (!group.flight[i].bad()) continue;
    RowFailure& failure = group.flight[i].failure.front();
    try {
      failure.fatal = !substitute(*group.batch, failure.row, failure, renderer);
    } catch (const std::exception&) {
      failure.error = error_from_current_exception();
      failure.fatal = true;
    }
    settle(group, i);
  }
}

}  // namespace headrace
