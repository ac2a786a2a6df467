// SPDX-License-Identifier: Apache-2.0
// Area "input": what each replica receives from
// strategy.experimental_distribute_dataset(range(...).batch(...)).
#include "input_program.hpp"

namespace golden {

void replay_input(Replay& replay) {
  constexpr std::string_view kDataset = "range(base, base + size).batch(global_batch, drop_remainder)";
  if (replay.text("dataset") != kDataset) replay.unknown("dataset");
  const int64_t base = replay.input("base").GetInt64();
  const int64_t size = replay.input("size").GetInt64();
  const dist_dataset_options options =
      batched(replay.input("global_batch").GetInt64(), replay.input("drop_remainder").GetBool());
  const Dataset dataset = range_dataset(replay.strategy(), base, base + size, options);
  const Steps steps = take_steps(dataset);
  replay.record("steps", integers_of_steps(replay, replay.strategy(), steps.batches));
  replay.record("end", end_of(replay, steps));
}

}  // namespace golden
