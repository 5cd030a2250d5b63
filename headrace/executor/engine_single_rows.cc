// SPDX-License-Identifier: Apache-2.0
// Records made one by one, from begin to end on the calling thread: substitutes for bad ones, and
// batches that somebody asks for by number.
#include "headrace/executor/engine.h"

namespace headrace {

Batch Engine::make(int64_t epoch, int64_t batch) {
  OpenBatch open{
      .builder = BatchBuilder(*options_.task.plan, *options_.task.source, epoch, batch,
                              options_.task.layout.range(batch), options_.task.layout.positions(),
                              [](size_t, size_t bytes) { return make_pages(bytes); }, {})};
  Renderer renderer;
  renderer.allow_values(shares_.largest_record);
  renderer.allow_pictures(std::max(shares_.largest_record, record_bytes_.largest_image()));
  for (int row = 0; row < open.builder.rows(); ++row) {
    int64_t blamed = -1;
    Result<void> made = make_row(open, row, 0, renderer, blamed);
    if (made) continue;
    RowFailure failure{.row = row, .record = blamed, .error = std::move(made.error())};
    if (!is_bad_record(failure.error) || options_.task.on_error == OnError::kRaise) {
      failure.fatal = true;
    } else if (options_.task.on_error == OnError::kSkip) {
      open.builder.drop(row);
    } else {
      failure.fatal = !substitute(open, row, failure, renderer);
    }
    if (!failure.fatal) continue;
    add_place(failure.error, *options_.task.source, failure.record);
    throw Exception(std::move(failure.error));
  }
  if (!options_.task.plan->batch_steps().empty()) {
    Result<void> done = open.builder.run_batch_steps(0, open.builder.rows(), options_.task.seed);
    if (!done) throw Exception(std::move(done.error()));
  }
  return open.builder.finish(shares_.assembled);
}

// The record that stands there, or that substitute for it; on an error `blamed` is the one that is
// bad.
Result<void> Engine::make_row(OpenBatch& batch, int row, int attempt, Renderer& renderer,
                              int64_t& blamed) {
  const Plan& plan = *options_.task.plan;
  const uint64_t epoch = static_cast<uint64_t>(batch.builder.epoch());
  RecordData data;
  Record record;
  record.position = batch.builder.range().begin + row;
  record.index = blamed = order_.record_at(batch.builder.epoch(), record.position, attempt);
  record.attempt = attempt;
  read_ahead_.read_alone(record.index, data);
  if (!data.result) return std::move(data.result.error());
  if (Result<void> begun = plan.begin(data, record, renderer); !begun) return begun;
  for (FieldValue& value : record.fields) {
    value.video.decoding.stop = value.sound.decoding.stop = &stopping_;
  }
  std::vector<PartnerRead> reads(static_cast<size_t>(order_.partners()));
  order_.place_partners(batch.builder.epoch(), record);
  for (int i = 0; i < order_.partners(); ++i)
    read_ahead_.read_alone(record.partners[i].index, reads[i].data);
  if (Result<void> begun = begin_partners(reads, record, renderer, blamed); !begun) return begun;
  // At once for all that follows, and before a Python step is asked.
  const size_t bytes = record_bytes_.asks_early() ? record_bytes_.until_written(record) : 0;
  if (gate_.refuses(bytes)) return gate_.refusal(bytes);
  std::optional<GateHold> hold = gate_.acquire(batch.first_sequence + row, bytes);
  int step = 0;
  if (order_.is_near()) {
    Result<int> prepared = prepare(record, renderer, epoch, false);
    if (!prepared) return std::move(prepared.error());
    step = *prepared;
  }
  Result<void> ready = advance_partners(reads, record, renderer, epoch, false, blamed);
  if (!ready) return ready;
  for (;;) {
    Result<int> stopped = apply_steps(step, record, renderer, epoch);
    if (!stopped) return std::move(stopped.error());
    step = *stopped;
    if (step == static_cast<int>(plan.steps().size())) break;
    if (Result<void> called = call_python_inline(step, record, epoch, renderer); !called)
      return called;
    ++step;
  }
  if (!record_bytes_.asks_early()) {
    const size_t to_write = working_bytes(record) + encoded_bytes(data);
    if (gate_.refuses(to_write)) return gate_.refusal(to_write);
    hold = gate_.acquire(batch.first_sequence + row, to_write);
  }
  RowSource source{.row = row, .record = &record, .result = {}};
  batch.builder.write({&source, 1}, renderer, shares_.largest_listed);
  return std::move(source.result);
}

Result<void> Engine::call_python_inline(int step, Record& record, uint64_t epoch,
                                        Renderer& renderer) {
  Result<PythonCall> call =
      options_.task.plan->python_call(step, record, renderer, options_.task.seed, epoch);
  if (!call) return std::move(call.error());
  PythonCall* pointer = &*call;
  call_python(step, {&pointer, 1});
  if (!call->result) return std::move(call->result.error());
  return options_.task.plan->python_return(step, *call, record);
}

}  // namespace headrace
