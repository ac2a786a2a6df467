// SPDX-License-Identifier: Apache-2.0
#include "core/ps/pushes.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/layout/partitioner.hpp"
#include "core/ps/numbers.hpp"
#include "core/ps/parameter_store.hpp"
#include "core/value/composite.hpp"
#include "core/value/slices.hpp"

namespace dist {
namespace {

using What = Operation::What;

// A contiguous tensor: the value itself or a copy.
Status dense(Value& value, const char* name, ValueRef* out) {
  if (!value.has_tensor()) {
    return invalid_argument("variable \"%s\": %s is not a tensor", name, Value::kind_name(value.kind()));
  }
  Value& tensor = value.kind() == DIST_VALUE_SHARDED ? value.whole() : value;
  TensorSize size;
  DIST_TRY(check_tensor(tensor.tensor(), name, &size));
  if (size.contiguous && tensor.kind() == DIST_VALUE_TENSOR) {
    *out = ValueRef::share(&tensor);
    return kOk;
  }
  return Value::copy_tensor(value.memory(), tensor.tensor(), out);
}

bool lie_alike(const RemoteVariable& a, const RemoteVariable& b) noexcept {
  return std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const auto& x, const auto& y) { return x.ps == y.ps && x.rows == y.rows; });
}

// The `arguments` for one part: tensors with the variable's shape are reduced to the part's rows.
Status part_of(Memory& memory, Value& arguments, const RemoteVariable& variable,
               const RemoteVariable::Part& part, ValueRef* out) {
  if (arguments.is_nest()) {
    std::pmr::vector<ValueRef> items(&memory);
    std::pmr::vector<Value*> plain(&memory);
    for (const ValueRef& each : arguments.items()) {
      DIST_TRY(part_of(memory, *each, variable, part, &items.emplace_back()));
      plain.push_back(items.back().get());
    }
    return Value::create_like(memory, arguments, plain, out);
  }
  if (arguments.has_tensor() && same_shape(arguments.tensor(), variable.spec())) {
    ValueRef whole;
    DIST_TRY(dense(arguments, variable.name.c_str(), &whole));
    return rows_of(*whole, part.begin, part.rows, out);
  }
  *out = ValueRef::share(&arguments);
  return kOk;
}

std::size_t bytes_in(const Value& value) noexcept {
  std::size_t bytes = 0;
  if (value.has_tensor()) {
    const dist_tensor tensor = value.tensor();
    return elements_of(tensor) * dtype_size(tensor.dtype);
  }
  for (const ValueRef& each : value.items()) bytes += bytes_in(*each);
  return bytes;
}

}  // namespace

Status rows_of(Value& tensor, int64_t begin, int64_t rows, ValueRef* out) {
  const dist_tensor whole = tensor.tensor();
  int64_t shape[DIST_MAX_NDIM];
  std::copy_n(whole.shape, whole.ndim, shape);
  std::size_t row = dtype_size(whole.dtype);
  for (int32_t i = 1; i < whole.ndim; ++i) row *= static_cast<std::size_t>(whole.shape[i]);
  shape[0] = rows;
  auto* const data = static_cast<std::byte*>(whole.data) + static_cast<std::size_t>(begin) * row;
  const auto let_go = [](void* held) { static_cast<Value*>(held)->release(); };
  DIST_TRY(Value::wrap_tensor(tensor.memory(), {data, whole.dtype, whole.ndim, shape, nullptr}, let_go,
                              &tensor, out));
  tensor.retain();
  return kOk;
}

Pushes::Pushes(Memory& memory, std::size_t num_ps) : memory_(memory), to_(&memory) {
  to_.reserve(num_ps);
  for (std::size_t i = 0; i < num_ps; ++i) to_.emplace_back(memory);
}

void Pushes::add(const RemoteVariable::Part& part, int32_t what, int32_t how,
                 std::span<const int64_t> numbers, ValueRef value) {
  ToServer& to = to_[static_cast<std::size_t>(part.ps)];
  bytes_ += bytes_in(*value);
  to.values.push_back(std::move(value));
  to.numbers.insert(to.numbers.end(), {what, how, static_cast<int64_t>(numbers.size())});
  to.numbers.insert(to.numbers.end(), numbers.begin(), numbers.end());
}

Status Pushes::assign(const RemoteVariable& variable, int32_t how, Value& value) {
  const char* const name = variable.name.c_str();
  if (how < DIST_ASSIGN || how > DIST_ASSIGN_SUB) {
    return invalid_argument(
        "variable \"%s\": `how` is `%d`; use `DIST_ASSIGN`, `DIST_ASSIGN_ADD` or `DIST_ASSIGN_SUB`", name,
        how);
  }
  if (how != DIST_ASSIGN) DIST_TRY(check_op(DIST_REDUCE_SUM, variable.dtype));
  ValueRef tensor;
  DIST_TRY(dense(value, name, &tensor));
  const dist_tensor given = tensor->tensor();
  if (given.dtype != variable.dtype || !same_shape(given, variable.spec())) {
    char is[160];
    char wanted[160];
    describe(given, is, sizeof is);
    describe(variable.spec(), wanted, sizeof wanted);
    return invalid_argument("variable \"%s\" is %s, so %s cannot be assigned to it", name, wanted, is);
  }
  if (variable.parts.size() == 1) {
    const RemoteVariable::Part& whole = variable.parts[0];
    return add(whole, static_cast<int32_t>(What::kAssign), how, {&whole.number, 1}, std::move(tensor)), kOk;
  }
  for (const RemoteVariable::Part& part : variable.parts) {
    ValueRef rows;
    DIST_TRY(rows_of(*tensor, part.begin, part.rows, &rows));
    add(part, static_cast<int32_t>(What::kAssign), how, {&part.number, 1}, std::move(rows));
  }
  return kOk;
}

Status Pushes::scatter(const RemoteVariable& variable, int32_t how, Value& slices) {
  const char* const name = variable.name.c_str();
  DIST_TRY(check_scatter(name, variable.dtype, how));
  if (how == DIST_SCATTER_BATCH_UPDATE) {
    return fail(DIST_UNIMPLEMENTED,
                "variable \"%s\" is on parameter servers, which do not support BATCH_UPDATE. Use UPDATE.",
                name);
  }
  Slices checked;
  DIST_TRY(Slices::of(name, variable.spec(), how, slices, &checked));
  const dist_tensor values = checked.values()->tensor();
  const dist_tensor indices = checked.indices()->tensor();
  const std::size_t row = variable.row_bytes();
  const auto index_at = [&](int64_t i) noexcept {
    return indices.dtype == DIST_I32 ? int64_t{static_cast<const int32_t*>(indices.data)[i]}
                                     : static_cast<const int64_t*>(indices.data)[i];
  };
  const int64_t count = indices.shape[0];
  std::pmr::vector<std::pmr::vector<int64_t>> of_part(variable.parts.size(), &memory_);
  for (int64_t i = 0; i < count; ++i) {
    int64_t part = 0;
    int64_t offset = 0;
    DIST_TRY(part_of_row(variable.shape[0], static_cast<int64_t>(variable.parts.size()), index_at(i), &part,
                         &offset));
    of_part[static_cast<std::size_t>(part)].push_back(i);
  }
  for (std::size_t p = 0; p < variable.parts.size(); ++p) {
    const RemoteVariable::Part& part = variable.parts[p];
    if (of_part[p].empty()) continue;
    const auto n = static_cast<int64_t>(of_part[p].size());
    int64_t shape[DIST_MAX_NDIM];
    std::copy_n(values.shape, values.ndim, shape);
    shape[0] = n;
    ValueRef rows;
    ValueRef places;
    DIST_TRY(Value::copy_tensor(memory_, {nullptr, values.dtype, values.ndim, shape, nullptr}, &rows));
    DIST_TRY(Value::copy_tensor(memory_, {nullptr, DIST_I64, 1, &n, nullptr}, &places));
    auto* const to = static_cast<int64_t*>(places->tensor().data);
    for (std::size_t k = 0; k < of_part[p].size(); ++k) {
      const int64_t from = of_part[p][k];
      to[k] = index_at(from) - part.begin;
      if (row == 0) continue;
      std::memcpy(static_cast<std::byte*>(rows->tensor().data) + k * row,
                  static_cast<const std::byte*>(values.data) + static_cast<std::size_t>(from) * row, row);
    }
    const ValueRef none = Value::create_none(memory_);
    Value* const items[] = {rows.get(), places.get(), none.get()};
    ValueRef composite;
    DIST_TRY(create_composite(memory_, DIST_VALUE_INDEXED_SLICES, items, &composite));
    add(part, static_cast<int32_t>(What::kScatter), how, {&part.number, 1}, std::move(composite));
  }
  return kOk;
}

Status Pushes::update(const char* function, std::span<const RemoteVariable* const> variables,
                      Value* arguments) {
  for (const RemoteVariable* const each : variables) {
    if (lie_alike(*each, *variables[0])) continue;
    return invalid_argument(
        "variables \"%s\" and \"%s\" are not divided over the parameter servers in the same way. Create the "
        "second one with options.`colocate_with` = the first.",
        variables[0]->name.c_str(), each->name.c_str());
  }
  const ValueRef nothing = Value::create_none(memory_);
  const ValueRef name = Value::create_text(memory_, function);
  const RemoteVariable& first = *variables[0];
  std::pmr::vector<int64_t> numbers(&memory_);
  for (std::size_t p = 0; p < first.parts.size(); ++p) {
    numbers.clear();
    for (const RemoteVariable* const each : variables) numbers.push_back(each->parts[p].number);
    ValueRef given = arguments != nullptr ? ValueRef::share(arguments) : nothing;
    if (first.parts.size() > 1) DIST_TRY(part_of(memory_, *given, first, first.parts[p], &given));
    Value* const items[] = {name.get(), given.get()};
    ValueRef both;
    DIST_TRY(Value::create(memory_, DIST_VALUE_TUPLE, items, &both));
    add(first.parts[p], static_cast<int32_t>(What::kUpdate), 0, numbers, std::move(both));
    to_[static_cast<std::size_t>(first.parts[p].ps)].has_functions = true;
  }
  return kOk;
}

Status Pushes::write(std::size_t ps, int64_t epoch, int64_t id, int64_t watermark, ValueRef* out) const {
  const ToServer& to = to_[ps];
  std::pmr::vector<int64_t> numbers({epoch, id, watermark}, &memory_);
  numbers.insert(numbers.end(), to.numbers.begin(), to.numbers.end());
  std::pmr::vector<Value*> plain(&memory_);
  for (const ValueRef& each : to.values) plain.push_back(each.get());
  ValueRef values;
  DIST_TRY(Value::create(memory_, DIST_VALUE_TUPLE, plain, &values));
  Value* const rest[] = {values.get()};
  return make_message(memory_, numbers, rest, out);
}

}  // namespace dist
