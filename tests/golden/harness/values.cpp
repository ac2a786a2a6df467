// SPDX-License-Identifier: Apache-2.0
// The values of a replay: recorded values, and values that a user's program creates.
#include <cstring>
#include <optional>

#include "elements.hpp"
#include "replay.hpp"
#include "state.hpp"

namespace golden {
namespace {

std::vector<dist_value*> pointers_to(const std::vector<Value>& values) {
  std::vector<dist_value*> pointers;
  for (const Value& value : values) pointers.push_back(value.get());
  return pointers;
}

using CreateSequence = dist_status (*)(dist_strategy*, dist_value* const*, std::size_t, dist_value**);

Value sequence(CreateSequence create, dist_strategy* strategy, const std::vector<Value>& items) {
  std::vector<dist_value*> pointers = pointers_to(items);
  pointers.push_back(nullptr);  // not empty, so that the array is never NULL
  Value value;
  check(create(strategy, pointers.data(), items.size(), value.out()));
  return value;
}

Value create_tensor(dist_strategy* strategy, Elements elements) {
  const dist_tensor view = elements.view();
  Value value;
  check(dist_value_create_tensor(strategy, &view, value.out()));
  return value;
}

Value create_text(dist_strategy* strategy, std::string_view text) {
  Value value;
  check(dist_value_create_text(strategy, std::string(text).c_str(), value.out()));
  return value;
}

constexpr int64_t kFirstInterned = -5;  // Python has one object for each of these integers
constexpr int64_t kLastInterned = 256;

}  // namespace

Value Replay::decode(const Json& json) { return decode(json, DIST_F32); }

Value Replay::decode(const Json& json, dist_dtype py_float) {
  const std::string_view kind = text_of(member(json, "kind"));
  if (kind == "tensor") return decode_tensor(json);
  if (kind == "none") return none();
  if (kind == "py_bool") return boolean(member(json, "value").GetBool());
  if (kind == "py_int") return integer(member(json, "value").GetInt64());
  if (kind == "py_float") return tensor(py_float, {}, {golden::number_of(member(json, "value"))});
  if (kind == "py_string") return string(text_of(member(json, "value")));
  if (kind == "list") return list(decode_all(member(json, "items"), py_float));
  if (kind == "tuple") return tuple(decode_all(member(json, "items"), py_float));
  if (kind == "per_replica") return per_replica(member(json, "values"));
  if (kind == "dict") {
    const std::vector<Value> items = decode_all(member(json, "items"), py_float);
    const Json& keys = member(json, "keys");
    std::vector<std::pair<std::string, Value>> pairs;
    for (rapidjson::SizeType i = 0; i < items.size(); ++i) pairs.emplace_back(text_of(keys[i]), items[i]);
    return dict(pairs);
  }
  if (kind == "mirrored") {
    return sequence(dist_value_create_mirrored, strategy(), decode_all(member(json, "values")));
  }
  if (kind == "indexed_slices" || kind == "sparse") return decode_composite(json);
  throw Malformed{"a value of kind \"" + std::string(kind) + "\""};
}

// libdist has texts, but no tensors of them: a tensor of strings with any shape other than [] becomes a list.
Value Replay::decode_tensor(const Json& json) {
  dist_strategy* const from = state_->memory_of(*this);
  if (text_of(member(json, "dtype")) != "string") return create_tensor(from, elements_of(json));
  std::vector<Value> texts;
  for (const Json& text : member(json, "data").GetArray()) texts.push_back(create_text(from, text_of(text)));
  if (!member(json, "shape").Empty()) return list(texts);
  return texts.size() == 1 ? texts[0] : throw Malformed{"a scalar has one text"};
}

// The dense shape of indexed slices may be missing, or be plain numbers next to the value.
Value Replay::decode_composite(const Json& json) {
  const bool slices = text_of(member(json, "kind")) == "indexed_slices";
  const Value values = decode(member(json, "values"));
  const Value indices = decode(member(json, "indices"));
  const Json* const shape = find(json, "dense_shape");
  const Value dense = shape == nullptr || shape->IsNull() ? none() : decode(*shape);
  const std::vector<Value> parts =
      slices ? std::vector{values, indices, dense} : std::vector{indices, values, dense};
  return composite(slices ? DIST_VALUE_INDEXED_SLICES : DIST_VALUE_SPARSE, parts);
}

Value Replay::composite(dist_value_kind kind, const std::vector<Value>& parts) {
  Value value;
  check(dist_value_create_composite(state_->memory_of(*this), kind, pointers_to(parts).data(), parts.size(),
                                    value.out()));
  return value;
}

std::vector<Value> Replay::decode_all(const Json& array) { return decode_all(array, DIST_F32); }

std::vector<Value> Replay::decode_all(const Json& array, dist_dtype py_float) {
  std::vector<Value> values;
  for (const Json& item : array.GetArray()) values.push_back(decode(item, py_float));
  return values;
}

Value Replay::per_replica(const Json& array) { return distributed(decode_all(array, DIST_F64)); }

Value Replay::distributed(const std::vector<Value>& components) {
  if (components.size() != static_cast<std::size_t>(num_replicas())) {
    throw Malformed{std::to_string(components.size()) + " components for " + std::to_string(num_replicas()) +
                    " replicas"};
  }
  const auto component = [](dist_strategy*, const dist_value_context* context, dist_value** out_value,
                            void* user_data) {
    const auto& all = *static_cast<const std::vector<Value>*>(user_data);
    *out_value = Value(all[static_cast<std::size_t>(context->replica_id_in_sync_group)]).release();
    return dist_status{DIST_OK};
  };
  Value value;
  check(dist_values_from_function(strategy(), component, const_cast<std::vector<Value>*>(&components),
                                  value.out()));
  return value;
}

Value Replay::interned(const std::string& key, const std::function<Value()>& make) {
  const std::lock_guard lock(state_->mutex);
  Value& value = state_->interned[key];
  if (!value) value = make();
  return value;
}

Value Replay::none() {
  return interned("none", [&] {
    Value value;
    check(dist_value_create_none(state_->memory_of(*this), value.out()));
    return value;
  });
}

Value Replay::boolean(bool value) {
  return interned(value ? "true" : "false", [&] { return scalar("bool", value ? 1 : 0); });
}

Value Replay::integer(int64_t value) {
  const auto make = [&] {
    const bool wide = value != static_cast<int32_t>(value);
    Elements elements{wide ? DIST_I64 : DIST_I32, {}, {}};
    elements.bytes.resize(wide ? sizeof(int64_t) : sizeof(int32_t));
    const auto narrow = static_cast<int32_t>(value);
    std::memcpy(elements.bytes.data(), wide ? static_cast<const void*>(&value) : &narrow,
                elements.bytes.size());
    return create_tensor(state_->memory_of(*this), elements);
  };
  if (value < kFirstInterned || value > kLastInterned) return make();
  return interned("int " + std::to_string(value), make);
}

Value Replay::number(double value) { return scalar("float32", value); }

Value Replay::string(std::string_view text) {
  return interned("text " + std::string(text), [&] { return create_text(state_->memory_of(*this), text); });
}

Value Replay::list(const std::vector<Value>& items) {
  return sequence(dist_value_create_list, state_->memory_of(*this), items);
}

Value Replay::tuple(const std::vector<Value>& items) {
  return sequence(dist_value_create_tuple, state_->memory_of(*this), items);
}

Value Replay::dict(const std::vector<std::pair<std::string, Value>>& items) {
  std::vector<const char*> keys{nullptr};
  std::vector<dist_value*> values{nullptr};
  for (const auto& [key, value] : items) {
    keys.push_back(key.c_str());
    values.push_back(value.get());
  }
  Value dict;
  check(dist_value_create_dict(state_->memory_of(*this), keys.data() + 1, values.data() + 1, items.size(),
                               dict.out()));
  return dict;
}

Value Replay::tensor(dist_dtype dtype, const std::vector<int64_t>& shape,
                     const std::vector<double>& numbers) {
  return create_tensor(state_->memory_of(*this), elements_of(dtype, shape, numbers));
}

Value Replay::tensor(std::string_view dtype, const std::vector<int64_t>& shape,
                     const std::vector<double>& numbers) {
  const std::optional<dist_dtype> known = dtype_of(dtype);
  if (!known) throw Malformed{"dtype \"" + std::string(dtype) + "\""};
  return tensor(*known, shape, numbers);
}

Value Replay::map(dist_value* tensor, const std::function<double(double)>& fn) {
  dist_tensor view;
  check(dist_value_tensor(tensor, &view));
  const Elements from = elements_of(view);
  std::vector<double> numbers = numbers_of(from);
  for (double& number : numbers) number = fn(number);
  return create_tensor(state_->memory_of(*this), elements_of(from.dtype, from.shape, numbers));
}

std::vector<double> Replay::numbers(dist_value* tensor) {
  dist_tensor view;
  check(dist_value_tensor(tensor, &view));
  return numbers_of(elements_of(view));
}

}  // namespace golden
