// SPDX-License-Identifier: Apache-2.0
// The outcome of a replay: converts libdist's values to the recorded form.
#include <dist/tf.h>
#include "elements.hpp"
#include "replay.hpp"
#include "state.hpp"

namespace golden {
namespace {

// Returns row `row` of a tensor's first dimension as nested arrays.
Json row_of(const std::vector<double>& numbers, const std::vector<int64_t>& shape, std::size_t dimension,
            std::size_t& next, JsonMemory& memory) {
  if (dimension == shape.size()) return number_to_json(numbers[next++]);
  Json row(rapidjson::kArrayType);
  for (int64_t i = 0; i < shape[dimension]; ++i) {
    row.PushBack(row_of(numbers, shape, dimension + 1, next, memory), memory);
  }
  return row;
}

// Returns the rows of a ragged value: its innermost values, divided by each list of row splits, beginning
// with the innermost list.
Json ragged_rows(dist_value* value, JsonMemory& memory) {
  dist_tensor view;
  check(dist_value_tensor(dist_value_item(value, 0), &view));
  const Elements elements = elements_of(view);
  const std::vector<double> numbers = numbers_of(elements);
  std::size_t next = 0;
  Json rows = row_of(numbers, elements.shape, 0, next, memory);
  for (std::size_t part = dist_value_size(value) - 1; part > 0; --part) {
    const std::vector<double> splits = Replay::numbers(dist_value_item(value, part));
    Json outer(rapidjson::kArrayType);
    for (std::size_t k = 1; k < splits.size(); ++k) {
      Json row(rapidjson::kArrayType);
      for (auto i = static_cast<rapidjson::SizeType>(splits[k - 1]); i < splits[k]; ++i) {
        row.PushBack(rows[i], memory);
      }
      outer.PushBack(row, memory);
    }
    rows = outer;
  }
  return rows;
}

}  // namespace

Json Replay::encode(const dist_tensor& tensor) { return to_json(elements_of(tensor), memory()); }

Json Replay::encode(dist_variable* variable) {
  Json values(rapidjson::kArrayType);
  for (int32_t r = 0; r < dist_variable_num_copies(variable); ++r) {
    dist_tensor copy;
    check(dist_variable_component(variable, r, &copy));
    values.PushBack(encode(copy), memory());
  }
  Json json(rapidjson::kObjectType);
  json.AddMember("kind", "variable", memory());
  json.AddMember("class", rapidjson::StringRef(dist_variable_class(variable)), memory());
  json.AddMember("values", values, memory());
  return json;
}

Json Replay::encode_items(const char* kind, const char* key, dist_value* value) {
  Json items(rapidjson::kArrayType);
  for (std::size_t i = 0; i < dist_value_size(value); ++i) {
    items.PushBack(encode(dist_value_item(value, i)), memory());
  }
  Json json(rapidjson::kObjectType);
  json.AddMember("kind", rapidjson::StringRef(kind), memory());
  json.AddMember(rapidjson::StringRef(key), items, memory());
  return json;
}

// Encodes parts by name. A part that is NONE becomes null.
Json Replay::encode_parts(const char* kind, const std::vector<const char*>& names, dist_value* value) {
  Json json(rapidjson::kObjectType);
  json.AddMember("kind", rapidjson::StringRef(kind), memory());
  for (std::size_t i = 0; i < names.size(); ++i) {
    dist_value* const part = dist_value_item(value, i);
    Json encoded = dist_value_kind_of(part) == DIST_VALUE_NONE ? null() : encode(part);
    json.AddMember(rapidjson::StringRef(names[i]), encoded, memory());
  }
  return json;
}

Json Replay::encode(dist_value* value) {
  Json json(rapidjson::kObjectType);
  switch (value == nullptr ? DIST_VALUE_NONE : dist_value_kind_of(value)) {
    case DIST_VALUE_NONE: json.AddMember("kind", "none", memory()); break;
    case DIST_VALUE_TENSOR: {
      dist_tensor view;
      check(dist_value_tensor(value, &view));
      dist_strategy* const maker = state_->memory_of(*this);  // create it before Looking, because its
                                                              // creation belongs to transcripts
      const Looking looking;
      int32_t ours = 0;
      if (dist_variable_created_in_scope(maker, value, &ours) != DIST_OK) return encode(view);
      // The value shows a copy of a variable. In Python, this is a variable with one copy.
      Json copies(rapidjson::kArrayType);
      copies.PushBack(encode(view), memory());
      json.AddMember("kind", "variable", memory());
      json.AddMember("values", copies, memory());
      break;
    }
    case DIST_VALUE_TEXT:
      json.AddMember("kind", "py_string", memory());
      json.AddMember("value", this->json(dist_value_text(value)), memory());
      break;
    case DIST_VALUE_PER_REPLICA: return encode_items("per_replica", "values", value);
    case DIST_VALUE_MIRRORED: return encode_items("mirrored", "values", value);
    case DIST_VALUE_LIST: return encode_items("list", "items", value);
    case DIST_VALUE_TUPLE: return encode_items("tuple", "items", value);
    case DIST_VALUE_DICT: {
      json = encode_items("dict", "items", value);
      Json keys(rapidjson::kArrayType);
      for (std::size_t i = 0; i < dist_value_size(value); ++i) {
        keys.PushBack(this->json(dist_value_key(value, i)), memory());
      }
      json.AddMember("keys", keys, memory());
      break;
    }
    case DIST_VALUE_VARIABLE: return encode(dist_value_variable(value));
    case DIST_VALUE_OBJECT: json.AddMember("kind", "object", memory()); break;
    case DIST_VALUE_INDEXED_SLICES:
      return encode_parts("indexed_slices", {"values", "indices", "dense_shape"}, value);
    case DIST_VALUE_SPARSE: return encode_parts("sparse", {"indices", "values", "dense_shape"}, value);
    case DIST_VALUE_RAGGED: {
      json.AddMember("kind", "ragged", memory());
      Json rows = ragged_rows(value, memory());
      json.AddMember("rows", rows, memory());
      break;
    }
    default: throw Unknown{"a value of kind " + std::to_string(dist_value_kind_of(value))};
  }
  return json;
}

}  // namespace golden
