// SPDX-License-Identifier: Apache-2.0
// Decides where a loader's batches are made: whether the device decodes pictures and applies the
// last transforms, whether records stay in memory, whether rows may be made on other machines.
// Batches are the same in all cases.
#pragma once

#include <memory>
#include <string>

#include "headrace/delivery/residence.h"
#include "headrace/finish/decode_choice.h"
#include "headrace/finish/finish_choice.h"
#include "headrace/loader.h"
#include "headrace/loader/batch_maker.h"

namespace headrace {

class WorkPlacement {
 public:
  // Throws Exception HR0716 or HR0717 if work was requested from the device that it cannot do.
  WorkPlacement(const LoaderOptions& options, const Plan& plan, SourcePtr source);

  // Decides the rest, and creates the batch maker. engine: complete except for where the work is
  // done. Throws Exception HR0702 if the memory is too small, before any thread is started.
  std::unique_ptr<BatchMaker> maker(EngineOptions engine, std::unique_ptr<Residence> residence,
                                    BadRecords& bad_records);

  bool finishes_on_device() const { return finish_.any(); }
  bool decodes_on_device() const { return decode_.on_device; }
  DeviceDecoding::Counts decoded() const { return decoding_->counts(); }
  // The command that makes a row index.
  std::string index_hint() const;

  // As shown to users.
  const std::string& finish_text() const { return finish_.text; }
  const std::string& decode_text() const { return decode_.text; }
  // Images so far that the device did not decode, and why; empty if it decoded all.
  std::string left_to_cpu() const;
  // Why rows are not lent; empty: they are, or were not requested to be.
  const std::string& why_not_lent() const { return not_lent_; }

 private:
  void divide(const EngineOptions& engine, const DeviceWork& left) const;
  bool fits(const EngineOptions& engine, const DeviceWork& left) const;
  void place_decoding(EngineOptions& engine);
  void place_finish(EngineOptions& engine);
  void try_device(RowTask& task);
  void leave_nothing(const std::string& why, RowTask& task);

  const LoaderOptions& options_;
  const Plan& plan_;
  const SourcePtr source_;
  const DecodeInputs question_;
  // shared: with the engine and its batches.
  const std::shared_ptr<DeviceDecoding> decoding_ = std::make_shared<DeviceDecoding>();
  DecodeChoice decode_;
  FinishChoice finish_;
  std::string not_lent_;
};

}  // namespace headrace
