// SPDX-License-Identifier: Apache-2.0
// Area "run", topics "context" and "set_strategy": the strategy and replica of a thread in each context.
#include <dist/tf.h>
#include <memory>
#include <utility>

#include "programs.hpp"

namespace golden {
namespace {

Value in_run(Replay& replay, const std::function<Value(dist_replica* replica)>& body) {
  return run(replay.strategy(),
             [&](dist_replica* replica, dist_value*, dist_value*) { return body(replica); });
}

// where() of replica 0 in a run.
Json where_in_run(Replay& replay) {
  Json seen;
  in_run(replay, [&](dist_replica* replica) {
    if (dist_replica_id(replica) == 0) seen = where(replay, replica);
    return Value();
  });
  return seen;
}

// The context of a finished run.
dist_replica* stale_replica(Replay& replay) {
  dist_replica* held = nullptr;
  in_run(replay, [&](dist_replica* replica) {
    if (dist_replica_id(replica) == 0) held = replica;
    return Value();
  });
  return held;
}

// merge_call(lambda strategy: 1)
Value merge_to_one(Replay& replay, dist_replica* replica) {
  return merge_call(replica, [&](dist_strategy*, dist_value*) { return replay.integer(1); });
}

void outside(Replay& replay) { record_members(replay, where(replay, nullptr)); }

void in_scope(Replay& replay) {
  const InScope scope(replay.strategy());
  outside(replay);
}

void in_run_replica_0(Replay& replay) { record_members(replay, where_in_run(replay)); }

void in_merge_call(Replay& replay) {
  Json seen;
  in_run(replay, [&](dist_replica* replica) {
    return merge_call(replica, [&](dist_strategy*, dist_value*) {
      seen = where(replay, replica);
      return Value();
    });
  });
  record_members(replay, seen);
}

void in_update(Replay& replay) {
  const InScope scope(replay.strategy());
  const Variable variable = float_variable(replay.strategy(), 1);
  std::vector<Json> calls;
  update(replay.strategy(), variable.get(),
         [&](dist_tensor*, dist_value*) { calls.push_back(where(replay, nullptr)); });
  replay.record("calls", replay.array(std::move(calls)));
}

void run_in_scope(Replay& replay) {
  const InScope scope(replay.strategy());
  record_members(replay, where_in_run(replay));
  replay.record("after_run", where(replay, nullptr));
}

void scope_inside_run(Replay& replay) {
  replay.record("result", in_run(replay, [&](dist_replica*) {
                  const InScope scope(replay.strategy());
                  return replay.boolean(dist_in_cross_replica_context() != 0);
                }));
}

void same_scope_nested(Replay& replay) {
  const InScope outer(replay.strategy());
  in_scope(replay);
}

// Determines here what "with s.scope() as x" returns.
void scope_value(Replay& replay) {
  const InScope scope(replay.strategy());
  const dist_strategy* const x = dist_get_strategy();
  replay.record("scope_value_is_s", replay.json(x == replay.strategy()));
  replay.record("scope_value_is_none", replay.json(x == nullptr));
}

void same_scope_object_twice(Replay& replay) {
  {
    const InScope outer(replay.strategy());
    const InScope inner(replay.strategy());
  }
  replay.record("ok", replay.json(true));
}

void nested_scope_of_another_strategy(Replay& replay) {
  const Strategy other = one_device();
  const InScope outer(replay.strategy());
  const InScope inner(other.get());
  outside(replay);
}

void nested_get_strategy_scope(Replay& replay) {
  const InScope outer(replay.strategy());
  const InScope inner(dist_get_strategy());
  outside(replay);
}

void run_of_another_strategy_inside_run(Replay& replay) {
  const Strategy other = one_device();
  replay.record("result", in_run(replay, [&](dist_replica*) {
                  return run(other.get(),
                             [&](dist_replica*, dist_value*, dist_value*) { return replay.integer(1); });
                }));
}

void run_of_another_strategy_inside_scope(Replay& replay) {
  const Strategy other = one_device();
  const InScope scope(replay.strategy());
  replay.record("result", run(other.get(), [&](dist_replica*, dist_value*, dist_value*) {
                  return replay.boolean(dist_get_strategy() == other.get());
                }));
}

void merge_call_in_cross_replica_context(Replay& replay) {
  const InScope scope(replay.strategy());
  merge_to_one(replay, dist_get_replica());
  replay.record_whole(replay.null());
}

void merge_call_on_stale_context(Replay& replay) {
  replay.record("result", merge_to_one(replay, stale_replica(replay)));
}

void all_reduce_on_stale_context(Replay& replay) {
  dist_replica* const stale = stale_replica(replay);
  replay.record("result", all_reduce(stale, DIST_REDUCE_SUM, replay.scalar("float32", 1)));
}

// "with replica_context:" makes the thread a replica.
void enter_stale_context(Replay& replay) {
  dist_replica* const stale = stale_replica(replay);
  dist_replica* entered = nullptr;
  check(dist_replica_enter(dist_replica_strategy(stale), dist_replica_id(stale), &entered));
  outside(replay);
  check(dist_replica_leave(entered, DIST_OK));
}

using Program = void (*)(Replay& replay);
constexpr std::pair<std::string_view, Program> kContexts[] = {
    {"outside", outside},
    {"in_scope", in_scope},
    {"in_run_replica_0", in_run_replica_0},
    {"in_merge_call", in_merge_call},
    {"in_update", in_update},
    {"run_in_scope", run_in_scope},
    {"scope_inside_run", scope_inside_run},
    {"same_scope_nested", same_scope_nested},
    {"scope_value", scope_value},
    {"same_scope_object_twice", same_scope_object_twice},
    {"nested_scope_of_another_strategy", nested_scope_of_another_strategy},
    {"nested_get_strategy_scope", nested_get_strategy_scope},
    {"run_of_another_strategy_inside_run", run_of_another_strategy_inside_run},
    {"run_of_another_strategy_inside_scope", run_of_another_strategy_inside_scope},
    {"merge_call_in_cross_replica_context", merge_call_in_cross_replica_context},
    {"merge_call_on_stale_context", merge_call_on_stale_context},
    {"all_reduce_on_stale_context", all_reduce_on_stale_context},
    {"enter_stale_context", enter_stale_context},
};

// Returns where(), or its error.
Json attempt(Replay& replay, const std::function<void()>& before) {
  try {
    before();
    return where(replay, nullptr);
  } catch (const Failed& failed) {
    return replay.encode_error(failed.status);
  }
}

void set_and_clear(Replay& replay) {
  const Strategy other = one_device();
  const Strategy third = one_device();
  check(dist_set_strategy(replay.strategy()));
  replay.record("after_set", where(replay, nullptr));
  replay.record("variable", replay.encode(float_variable(dist_get_strategy(), 1).get()));
  {
    const InScope scope(replay.strategy());
    replay.record("scope_of_same", where(replay, nullptr));
  }
  std::unique_ptr<InScope> scope;
  replay.record("scope_of_other", attempt(replay, [&] { scope = std::make_unique<InScope>(other.get()); }));
  scope.reset();
  replay.record("set_other", attempt(replay, [&] { check(dist_set_strategy(third.get())); }));
  replay.record("after_clear", attempt(replay, [] { check(dist_set_strategy(nullptr)); }));
}

}  // namespace

void replay_context(Replay& replay) {
  for (const auto& [name, program] : kContexts) {
    if (name == replay.topic(1)) return program(replay);
  }
  replay.unknown("topic");
}

void replay_set_strategy(Replay& replay) {
  const std::string_view topic = replay.topic(1);
  if (topic == "set_and_clear") return set_and_clear(replay);
  if (topic == "state_after") return outside(replay);
  if (topic == "in_scope" || topic == "in_scope_none") {
    const InScope scope(replay.strategy());
    check(dist_set_strategy(topic == "in_scope" ? replay.strategy() : nullptr));
    return replay.record_whole(replay.null());
  }
  if (topic == "in_run") {
    return replay.record("result", in_run(replay, [&](dist_replica*) {
                           check(dist_set_strategy(replay.strategy()));
                           return Value();
                         }));
  }
  if (topic != "not_a_strategy") replay.unknown("topic");
  replay.record_whole(replay.null());  // a C program that passes a number does not compile
}

}  // namespace golden
