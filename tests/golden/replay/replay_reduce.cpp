// SPDX-License-Identifier: Apache-2.0
// Area "reduce": strategy.reduce(op, value, axis) for all kinds of values.
#include "tests/golden/harness/elements.hpp"
#include "tests/golden/harness/replay.hpp"

namespace golden {
namespace {

// ReduceOp(text.upper()); None is not an operator.
dist_reduce_op op_of(const Replay& replay) {
  const Json& op = replay.input("op");
  dist_reduce_op code{};
  if (!op.IsNull()) read_enum(DIST_ENUM_VALUE_REDUCTION, std::string(text_of(op)).c_str(), &code);
  return code;
}

Value reduce(Replay& replay, dist_strategy* strategy, const Value& value) {
  const std::vector<int32_t> axes = replay.axes();
  Value result;
  check(dist_reduce(strategy, op_of(replay), value.get(), axes.empty() ? nullptr : axes.data(), axes.size(),
                    result.out()));
  return result;
}

// The replica's component of `slices`, with the dense shape that the program specifies once.
Value slices_of(Replay& replay) {
  const Json& dense = replay.input("dense_shape");
  std::vector<double> sizes;
  for (const Json& size : dense.GetArray()) sizes.push_back(size.GetDouble());
  const auto rank = static_cast<int64_t>(sizes.size());
  const Json& per_replica = replay.input("per_replica");
  return run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
    const Json& mine = per_replica[static_cast<rapidjson::SizeType>(dist_replica_id(replica))];
    return replay.composite(DIST_VALUE_INDEXED_SLICES,
                            {replay.decode(member(mine, "values")), replay.decode(member(mine, "indices")),
                             replay.tensor("int64", {rank}, sizes)});
  });
}

Value result_of_fn(Replay& replay) {
  const std::string_view fn = replay.fn();
  if (fn == "replica_id_in_sync_group + 1") {
    return run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
      return replay.integer(dist_replica_id(replica) + 1);
    });
  }
  if (fn == "returns the Python float 7.0") {
    const Value seven = replay.number(7);  // a literal, so all replicas return one object
    return run(replay.strategy(), [&](dist_replica*, dist_value*, dist_value*) { return seven; });
  }
  replay.unknown("fn \"" + std::string(fn) + "\"");
}

void reduce_in_replica_context(Replay& replay) {
  const Value result = run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
    return reduce(replay, dist_replica_strategy(replica), replay.scalar("float32", 1));
  });
  replay.record("result", result);
}

// A variable with the recorded synchronization and aggregation, AUTO and NONE, which are also libdist's
// defaults.
void reduce_variable(Replay& replay) {
  if (replay.text("synchronization") != "AUTO" || replay.text("aggregation") != "NONE") {
    replay.unknown("a variable of another kind");
  }
  Elements initial = elements_of(replay.input("variable_initial"));
  const dist_tensor view = initial.view();
  Variable variable;
  check(dist_variable_create(replay.strategy(), &view, nullptr, variable.out()));
  Value value;
  check(dist_value_create_variable(variable.get(), value.out()));
  replay.record("result", reduce(replay, replay.strategy(), value));
}

}  // namespace

void replay_reduce(Replay& replay) {
  if (replay.has("where")) {
    if (replay.text("where") != "inside run") replay.unknown("where");
    return reduce_in_replica_context(replay);
  }
  if (replay.has("variable_initial")) return reduce_variable(replay);
  Value value;
  if (replay.has("dense_shape")) {
    value = slices_of(replay);
  } else if (replay.has("per_replica")) {
    value = replay.per_replica(replay.input("per_replica"));
  } else if (replay.has("value")) {
    value = replay.decode(replay.input("value"));
  } else if (replay.has("fn")) {
    value = result_of_fn(replay);
  } else {
    replay.unknown("a reduction of nothing");
  }
  replay.record("result", reduce(replay, replay.strategy(), value));
}

}  // namespace golden
