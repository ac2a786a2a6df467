// SPDX-License-Identifier: Apache-2.0
// The interface for the replays of areas. A replay performs the user's program of one case through the C ABI,
// as it ran in TensorFlow. It creates the inputs and does what the program itself did, such as a replica
// function's own arithmetic; libdist computes every answer. A replay cannot see TensorFlow's answer: a Replay
// holds only the case's id, strategy and inputs. (If a case names a topology, load_directory() adds it to the
// inputs.)
//
//     void replay_reduce(Replay& replay) {
//       const Value value = replay.per_replica(replay.input("per_replica"));
//       Value result;
//       check(dist_reduce(replay.strategy(), DIST_REDUCE_SUM, value.get(), nullptr, 0, result.out()));
//       replay.record("result", result);            // a key of `expected`
//     }
//
// A failure throws Failed (check() does); the case's outcome is then an error with that status. If the replay
// does not know a topic or a text of `fn`, it throws Unknown, which no list of differences excuses. A missing
// input causes Malformed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "handles.hpp"
#include "json.hpp"

namespace golden {

// This program does not know what the case asks for.
struct Unknown {
  std::string what;
};

class Replay {
 public:
  // Copies the parts of a case that a replay may see.
  Replay(std::string_view id, const Json& strategy, const Json& inputs);
  ~Replay();

  // ---- The case

  const std::string& id() const noexcept { return id_; }
  // The id's parts after the first (which names strategy and replicas), without the "#2" of a repetition:
  // "MirroredStrategy2/float32/SUM/none/equal#2" has "float32", "SUM", "none" and "equal". Returns "" if
  // index is num_topics() or larger.
  std::string_view topic(std::size_t index) const noexcept;
  std::size_t num_topics() const noexcept { return topics_.size(); }
  // These parts joined again: "float32/SUM/none/equal".
  const std::string& topics() const noexcept { return joined_; }

  const Json& inputs() const noexcept { return *inputs_; }
  bool has(std::string_view key) const { return find(inputs(), key) != nullptr; }
  const Json& input(std::string_view key) const { return member(inputs(), key); }
  std::string_view text(std::string_view key) const { return text_of(input(key)); }
  std::string_view fn() const { return text("fn"); }
  // `axis`, an integer or a list of integers; empty if it is null.
  std::vector<int32_t> axes() const;

  [[noreturn]] void unknown(std::string_view what) const;  // "a method called frobnicate"

  // ---- The strategy

  const Json& strategy_description() const noexcept { return *description_; }
  std::string_view strategy_name() const { return text_of(member(*description_, "name")); }
  bool is_mirrored() const { return strategy_name() == "MirroredStrategy"; }
  bool is_central() const { return strategy_name() == "CentralStorageStrategy"; }
  bool is_one_device() const { return strategy_name() == "OneDeviceStrategy"; }
  bool is_default() const { return strategy_name() == "DefaultStrategy"; }
  int32_t num_replicas() const { return member(*description_, "num_replicas").GetInt(); }
  // The case's strategy, which is created by the first call and destroyed with the case. Cases with several
  // workers have none here, because each worker has its own. Neither have cases with servers, whose addresses
  // the strategy needs. The default strategy is that of the thread. All values of the case take their memory
  // from this strategy.
  dist_strategy* strategy();
  // The options with which it is created, for cases that create strategies themselves.
  static dist_strategy_options options_for(const Json& description);

  // ---- Values. These functions may be called from any replica's thread.

  // Returns a recorded value (an object with "kind"). Each call creates new tensors. Objects that exist only
  // once in Python (None, True, False, integers from -5 to 256, strings) are one dist_value throughout the
  // case, so that "the same object" has the same meaning as in Python. A Python number becomes a scalar
  // tensor: i32 (i64 if it is too large), f32 or bool.
  Value decode(const Json& json);
  // Returns the value that strategy.experimental_distribute_values_from_function makes of a JSON array of
  // recorded values, one per replica: a per-replica value, or a nest of them if the values are nests. The
  // one-device and default strategies return the value itself.
  Value per_replica(const Json& array);
  Value decode_numpy(const Json& json) { return decode(json, DIST_F64); }  // one item of such an array
  // Decodes each item of a JSON array of recorded values.
  std::vector<Value> decode_all(const Json& array);

  Value none();
  Value boolean(bool value);     // Python's True and False
  Value integer(int64_t value);  // a Python int
  Value number(double value);    // a Python float: a new object at each call
  Value string(std::string_view text);
  Value list(const std::vector<Value>& items);
  Value tuple(const std::vector<Value>& items);
  Value dict(const std::vector<std::pair<std::string, Value>>& items);
  Value distributed(const std::vector<Value>& components);  // like per_replica()
  Value composite(dist_value_kind kind,
                  const std::vector<Value>& parts);  // DIST_VALUE_INDEXED_SLICES, _RAGGED, _SPARSE
  // Returns a tensor of `numbers`, each rounded to the dtype, which has TensorFlow's name ("float32",
  // "bfloat16", "int64", "bool").
  Value tensor(std::string_view dtype, const std::vector<int64_t>& shape, const std::vector<double>& numbers);
  Value scalar(std::string_view dtype, double number) { return tensor(dtype, {}, {number}); }
  // The same for a dist_dtype.
  Value tensor(dist_dtype dtype, const std::vector<int64_t>& shape, const std::vector<double>& numbers);
  // Applies fn to each element in double and rounds once to the tensor's dtype. This is exact for +, -, * and
  // / with one operand.
  Value map(dist_value* tensor, const std::function<double(double)>& fn);
  // Returns the elements of a tensor or variable.
  static std::vector<double> numbers(dist_value* tensor);
  static double number_of(dist_value* scalar) { return numbers(scalar).at(0); }

  // ---- The outcome

  // Records one entry of `expected`.
  void record(std::string_view key, const Value& value) { record(key, encode(value)); }
  void record(std::string_view key, Json json);
  // Records all of `expected` if it is a single value or null instead of an object of parts.
  void record_whole(Json json);
  void record_whole(const Value& value) { record_whole(encode(value)); }
  // Returns a value in the form of the recordings. The following also match: a scalar for a Python number of
  // the same value, a text for a tensor with one string, and no value for None. A variable is encoded as its
  // class and its components.
  Json encode(dist_value* value);
  Json encode(const Value& value) { return encode(value.get()); }
  Json encode(dist_variable* variable);
  Json encode(const dist_tensor& tensor);
  // Returns a value that matches every recorded form of an exception: {"kind": "error", ...}, {"error": ...},
  // an object with "type", or the name of its class ("end": "StopIteration").
  Json encode_error(dist_status status);
  // Runs `body`, which returns JSON. Returns {"value": ...} or {"error": ...}: the result of one of several
  // attempts.
  Json attempt(const std::function<Json()>& body);
  // Plain JSON.
  Json json(std::string_view text);
  Json json(const char* text) { return json(std::string_view(text)); }
  Json json(double number);  // NaN and infinities are texts
  Json json(int64_t number) { return Json(number); }
  Json json(int32_t number) { return Json(number); }
  Json json(bool value) { return Json(value); }
  Json null() { return Json(); }
  Json array(std::vector<Json> items);
  Json object(std::vector<std::pair<std::string, Json>>&& members);
  // Owns the memory of all JSON that is recorded.
  JsonMemory& memory();

 private:
  friend class Player;  // which takes the recorded values when the replay has ended
  struct State;

  Value interned(const std::string& key, const std::function<Value()>& make);
  Value decode(const Json& json, dist_dtype py_float);
  std::vector<Value> decode_all(const Json& array, dist_dtype py_float);
  Value decode_tensor(const Json& json);
  Value decode_composite(const Json& json);
  Json encode_items(const char* kind, const char* key, dist_value* value);
  Json encode_parts(const char* kind, const std::vector<const char*>& names, dist_value* value);

  std::string id_;
  std::vector<std::string> topics_;
  std::string joined_;
  std::unique_ptr<State> state_;
  const Json* description_ = nullptr;
  const Json* inputs_ = nullptr;
};

// One function per area; catalogue.cpp lists them.
void replay_cluster(Replay& replay);
void replay_extended(Replay& replay);
void replay_input(Replay& replay);
void replay_input_misc(Replay& replay);
void replay_input_sharding(Replay& replay);
void replay_multi_worker(Replay& replay);
void replay_options(Replay& replay);
void replay_parameter_server(Replay& replay);
void replay_partitioners(Replay& replay);
void replay_reduce(Replay& replay);
void replay_replica_context(Replay& replay);
void replay_run(Replay& replay);
void replay_tpu_device_assignment(Replay& replay);
void replay_tpu_split(Replay& replay);
void replay_variables(Replay& replay);

}  // namespace golden
