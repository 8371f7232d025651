#include "lab/workload/pipeline.h"

#include <vector>

#include "net/error.h"

namespace heddle::lab {
namespace {

// One pipeline under construction. `brought[m]` is the message that carried microbatch m to the stage at hand.
struct Stages {
  WorkloadBuilder& builder;
  const Ranks& ranks;
  const Pipeline& pipeline;
  std::vector<MessageId> brought;

  uint32_t last() const { return static_cast<uint32_t>(ranks.hosts.size()) - 1; }

  // A stage's work on one microbatch: a barrier that completes when the work is done. It begins when everything in
  // `begin` has happened: the input is there, and the stage is through with the work before.
  MessageId work(uint32_t stage, const std::vector<MessageId>& begin, Duration length) {
    const MessageId done = builder.add_barrier(ranks.hosts[stage]);
    for (const MessageId cause : begin) builder.add_trigger({cause, TriggerOn::kReceived}, done, length);
    return done;
  }

  MessageId pass_on(uint32_t stage, uint32_t to, MessageId worked) {
    const MessageId message = builder.add_message(ranks.hosts[stage], ranks.hosts[to], pipeline.bytes);
    builder.add_trigger({worked, TriggerOn::kReceived}, message);
    return message;
  }
};

// Stage 0 has its input from the start. Returns the last stage's last work.
MessageId run_forward(Stages& stages) {
  const Pipeline& pipeline = stages.pipeline;
  const Ranks& ranks = stages.ranks;
  for (uint32_t m = 0; m < pipeline.microbatches; ++m) {
    const Time worked = ranks.start + (m + Duration{1}) * pipeline.forward;
    stages.brought.push_back(stages.builder.add_message(ranks.hosts[0], ranks.hosts[1], pipeline.bytes, worked));
  }
  MessageId worked = 0;
  for (uint32_t stage = 1; stage <= stages.last(); ++stage) {
    for (uint32_t m = 0; m < pipeline.microbatches; ++m) {
      std::vector<MessageId> begin{stages.brought[m]};
      if (m > 0) begin.push_back(worked);
      worked = stages.work(stage, begin, pipeline.forward);
      if (stage != stages.last()) stages.brought[m] = stages.pass_on(stage, stage + 1, worked);
    }
  }
  return worked;
}

void run_backward(Stages& stages, MessageId turn) {
  const Pipeline& pipeline = stages.pipeline;
  MessageId worked = turn;
  for (uint32_t stage = stages.last(); stage >= 1; --stage) {
    for (uint32_t m = 0; m < pipeline.microbatches; ++m) {
      std::vector<MessageId> begin;
      if (stage != stages.last()) begin.push_back(stages.brought[m]);
      if (stage == stages.last() || m > 0) begin.push_back(worked);
      worked = stages.work(stage, begin, pipeline.backward_work);
      stages.brought[m] = stages.pass_on(stage, stage - 1, worked);
    }
  }
}

}  // namespace

void add_pipeline(WorkloadBuilder& builder, const Ranks& ranks, const Pipeline& pipeline) {
  check_ranks(ranks, builder.host_count(), 2);
  if (pipeline.microbatches == 0) throw_bad_input("a pipeline needs at least 1 microbatch");
  if (pipeline.forward > kMaxDelay / (pipeline.microbatches + uint64_t{1}) || pipeline.backward_work > kMaxDelay) {
    throw_bad_input("a pipeline's work lasts longer than {} s", to_seconds(kMaxDelay));
  }
  builder.expect(pipeline_messages(static_cast<uint32_t>(ranks.hosts.size()), pipeline));
  Stages stages{builder, ranks, pipeline, {}};
  const MessageId turn = run_forward(stages);
  if (pipeline.backward) run_backward(stages, turn);
}

uint64_t pipeline_messages(uint32_t ranks, const Pipeline& pipeline) {
  // Forward: a message from all stages but the last and work on all but the first; backward: both on all but the first.
  return uint64_t{pipeline.microbatches} * (ranks - 1) * (pipeline.backward ? 4 : 2);
}

}  // namespace heddle::lab
