// SPDX-License-Identifier: Apache-2.0
// Area "variables": the owner and the placement of a variable.
#include <dist/tf.h>
#include <utility>

#include "variables.hpp"

namespace golden {
namespace {

// with strategy.extended.colocate_vars_with(variable):
class Colocated {
 public:
  Colocated(dist_strategy* strategy, const Value& with) : strategy_(strategy) {
    check(dist_colocate_enter(strategy, with.get()));
  }
  ~Colocated() { [[maybe_unused]] const dist_status left = dist_colocate_exit(strategy_); }
  Colocated(const Colocated&) = delete;
  Colocated& operator=(const Colocated&) = delete;

 private:
  dist_strategy* strategy_;
};

// A variable of another strategy, or a value that is not a variable, for functions that check the owner.
struct Candidate {
  Candidate(Replay& replay, const std::string& which) {
    dist_strategy* const strategy = replay.strategy();
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    if (which == "tensor") {
      value = replay.scalar("float32", 1);
      return;
    }
    dist_strategy* owner = strategy;
    if (which == "outside") {
      owner = dist_get_strategy();
    } else if (which == "other_strategy") {
      dist_strategy_options two = DIST_STRATEGY_OPTIONS_INIT;
      two.num_replicas = 2;
      check(dist_strategy_create(&two, other.out()));
      owner = other.get();
    } else if (which == "on_read") {
      options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
      options.aggregation = DIST_AGGREGATION_SUM;
    } else if (which != "in_scope" && which != "mirrored" && which != "component") {
      replay.unknown("variable \"" + which + "\"");
    }
    variable = create(owner, replay.scalar("float32", 1), &options);
    value = value_of(variable);
    if (which != "component") return;
    Value copies;
    check(dist_strategy_local_results(strategy, value.get(), copies.out()));
    value = copies.item(copies.size() - 1);
  }

  Strategy other;
  Variable variable;
  Value value;
};

void created_in_scope(Replay& replay) {
  const Candidate candidate(replay, std::string(replay.text("variable")));
  int32_t created = 0;
  check(dist_variable_created_in_scope(replay.strategy(), candidate.value.get(), &created));
  replay.record("result", replay.json(created != 0));
}

void colocated(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  const bool in_run = replay.topics() == "colocate_vars_with/in_replica_context";
  const bool no_scope = replay.topics() == "colocate_vars_with/no_scope";
  if (!in_run && !no_scope && !replay.has("colocate_with")) replay.unknown(replay.topics());
  const Candidate with(replay, in_run || no_scope ? "mirrored" : std::string(replay.text("colocate_with")));
  if (in_run) {
    const Value one = replay.integer(1);
    return replay.record("result", run(strategy, [&](dist_replica*, dist_value*, dist_value*) {
                           const Colocated next(strategy, with.value);
                           return one;
                         }));
  }
  Variable variable;
  if (no_scope) {
    const Colocated next(strategy, with.value);
    variable = create(dist_get_strategy(), replay.scalar("float32", 2));
    return replay.record("variable", replay.encode(variable.get()));
  }
  {
    const InScope scope(strategy);
    const Colocated next(strategy, with.value);
    variable = create(strategy, replay.scalar("float32", 2));
  }
  replay.record("variable", replay.encode(variable.get()));
  std::vector<Json> devices;
  for (int32_t copy = 0; copy < dist_variable_num_copies(variable.get()); ++copy) {
    const char* full = nullptr;
    check(dist_variable_device(strategy, variable.get(), copy, &full));
    const std::string_view name = full;
    devices.push_back(replay.json(name.substr(name.rfind('/') + 1)));
  }
  replay.record("devices", replay.array(std::move(devices)));
}

void used_in_another_run(Replay& replay) {
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = DIST_AGGREGATION_SUM;
  const Variable variable = create(replay.strategy(), replay.scalar("float32", 1), &options);
  dist_strategy_options one = DIST_STRATEGY_OPTIONS_INIT;
  one.kind = DIST_STRATEGY_ONE_DEVICE;
  Strategy other;
  check(dist_strategy_create(&one, other.out()));
  const Value number = replay.number(1);
  replay.record(
      "result", run(other.get(), [&](dist_replica* replica, dist_value*, dist_value*) {
        check(dist_replica_assign_value(replica, variable.get(), DIST_ASSIGN_ADD, number.get(), nullptr));
        return value_of(variable);
      }));
}

}  // namespace

bool replay_variable_owners(Replay& replay) {
  if (replay.topic(0) == "variable_created_in_scope") {
    created_in_scope(replay);
  } else if (replay.topic(0) == "colocate_vars_with") {
    colocated(replay);
  } else if (replay.has("fn") && replay.fn() == "OneDeviceStrategy.run(lambda: v.assign_add(1.0))") {
    used_in_another_run(replay);
  } else {
    return false;
  }
  return true;
}

}  // namespace golden
