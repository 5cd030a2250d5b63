// SPDX-License-Identifier: Apache-2.0
// Mixed-in samples (partners) of a row: other records that an operator such as Mosaic or CopyPaste
// mixes into the row's own record (Note [Partners] in ops/op.h). A row's reads have consecutive
// numbers in the read-ahead, its own record first, so partners are read ahead in order and count
// toward the read-ahead's budget. Their working memory is requested together with the row's.
#pragma once

#include <atomic>

#include "headrace/executor/memory/partner_cache.h"
#include "headrace/executor/memory/record_bytes.h"
#include "headrace/executor/record_order.h"
#include "headrace/executor/record_run.h"

namespace headrace {

class Partners {
 public:
  Partners(const RowTask& task, const RecordOrder& order, const RecordBytes& bytes,
           ReadAhead& reads, PartnerCache& kept, const std::atomic<bool>& stop)
      : task_(task), order_(order), bytes_(bytes), reads_(reads), kept_(kept), stop_(stop) {}

  // On an error, each of these stores the record at fault in `blamed`.
  void read(const Rows& rows, InFlight& flight) const;
  Result<void> begin(InFlight& flight, Renderer& renderer) const;
  // Advances the row's partners, and with near partners also its own record, to the step that mixes
  // them.
  Result<void> advance(const Rows& rows, InFlight& flight, Renderer& renderer) const;

 private:
  Result<int> prepare(Record& record, Renderer& renderer, int64_t epoch, bool keeps) const;
  bool take_kept(const CachedPartner* kept, Record& record) const;
  void keep(int64_t epoch, const Record& record, size_t reserved) const;

  const RowTask& task_;
  const RecordOrder& order_;
  const RecordBytes& bytes_;
  ReadAhead& reads_;
  PartnerCache& kept_;
  const std::atomic<bool>& stop_;
};

}  // namespace headrace
