// SPDX-License-Identifier: Apache-2.0
// Common parts of programs of several areas.
#pragma once

#include <functional>

#include "tests/golden/harness/replay.hpp"
#include "variables.hpp"

namespace golden {

// ReduceOp(text.upper())
dist_reduce_op op_of(std::string_view name);

Value gather(dist_strategy* strategy, const Value& value, int32_t axis);

using ValueFn = std::function<Value(const dist_value_context& context)>;
// strategy.experimental_distribute_values_from_function(fn)
Value values_from_function(dist_strategy* strategy, const ValueFn& fn);

// strategy.reduce(op, value, axis=None)
Value reduce(dist_strategy* strategy, dist_reduce_op op, const Value& value);

// replica_context.all_reduce(op, value) and all_gather(value, axis)
Value all_reduce(dist_replica* replica, dist_reduce_op op, const Value& value);
Value all_gather(dist_replica* replica, const Value& value, int32_t axis);

// A variable whose initial value is a float.
Variable float_variable(dist_strategy* strategy, float initial,
                        dist_aggregation aggregation = DIST_AGGREGATION_NONE);

// A strategy of another kind than the case's: "inner" is "OneDeviceStrategy".
Strategy one_device();

// The results of D.get_strategy() and similar functions, as the recorded programs print them. `own` is the
// case's strategy. `replica` is the replica whose function calls this, or NULL outside.
Json where(Replay& replay, const dist_replica* replica);

// The class of the replica context. The context outside of all strategies has its own class, and returns its
// id as a Python number.
std::string_view context_class(const dist_replica* current, const dist_replica* own);

// The topics "context" and "set_strategy" of area "run".
void replay_context(Replay& replay);
void replay_set_strategy(Replay& replay);

// Builds an object member by member. Keys are literals.
class Members {
 public:
  explicit Members(Replay& replay) : replay_(replay) {}
  template <class T>
  Members& add(const char* key, T&& value) {
    Json json = to_json(std::forward<T>(value));
    json_.AddMember(rapidjson::StringRef(key), json, replay_.memory());
    return *this;
  }
  Json take() { return std::move(json_); }

 private:
  Json to_json(Json&& json) { return std::move(json); }
  template <class T>
  Json to_json(const T& value) {
    return replay_.json(value);
  }

  Replay& replay_;
  Json json_{rapidjson::kObjectType};
};

// Records each member of an object.
void record_members(Replay& replay, const Json& object);

}  // namespace golden
