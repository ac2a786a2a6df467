// SPDX-License-Identifier: Apache-2.0
// Coordinator: its variables, where their parts are placed, and how host threads access them.
#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/layout/partitioner.hpp"
#include "core/ps/coordinator_parts.hpp"
#include "core/ps/parameter_store.hpp"

namespace dist {
namespace {

// The coordinator whose partitioner this thread is in.
thread_local const Coordinator* dividing = nullptr;

// The number of parts of the first dimension, as in TensorFlow's
// ParameterServerStrategyV2Extended._create_variable().
Status count_parts(const RemoteVariable& variable, std::span<const int64_t> partitions,
                   int64_t* out) noexcept {
  char list[200] = "";
  std::size_t used = 0;
  bool good = partitions.size() == variable.shape.size() && !partitions.empty();
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    good = good && (i == 0 ? partitions[0] >= 1 : partitions[i] == 1);
    const int more = std::snprintf(list + used, sizeof list - used, "%s%lld", i == 0 ? "" : ", ",
                                   static_cast<long long>(partitions[i]));
    used = std::min(used + static_cast<std::size_t>(std::max(more, 0)), sizeof list - 1);
  }
  if (!good) {
    return invalid_argument(
        "variable \"%s\": partitions are [%s], but must be one number for each dimension, the first at least "
        "1 and all others 1",
        variable.name.c_str(), list);
  }
  if (partitions[0] > std::max<int64_t>(variable.shape[0], 1)) {
    return invalid_argument("variable \"%s\" has %lld rows, which cannot be divided into %lld parts",
                            variable.name.c_str(), static_cast<long long>(variable.shape[0]),
                            static_cast<long long>(partitions[0]));
  }
  *out = partitions[0];
  return kOk;
}

// Finds the variable to colocate with. If the name is that of a part, like "w/part_1", *part is the number of
// the part, and otherwise -1.
Status find_neighbor(const Directory& directory, const char* name, const RemoteVariable** out,
                     int64_t* part) {
  constexpr std::string_view kPart = "/part_";
  *part = -1;
  const Status found = directory.find(name, out);
  const std::string_view text(name);
  const std::size_t at = text.rfind(kPart);
  if (found.ok() || at == std::string_view::npos) return found;
  const std::string_view digits = text.substr(at + kPart.size());
  int64_t number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool good = error == std::errc() && end == digits.data() + digits.size() && number >= 0 &&
                    directory.find(text.substr(0, at), out).ok() &&
                    number < static_cast<int64_t>((*out)->parts.size());
  if (!good) return directory.find(name, out);  // the message has the name as it was given
  *part = number;
  return kOk;
}

}  // namespace

// Assigns parts to the servers round robin, variable by variable, in TensorFlow's order.
Status Coordinator::place(RemoteVariable* variable, const RemoteVariableOptions& options) {
  if (options.colocate_with != nullptr) {
    if (!options.partitions.empty()) {
      return invalid_argument(
          "variable \"%s\" is colocated with \"%s\" and divided like it, so `partitions` must not be set",
          variable->name.c_str(), Shown(options.colocate_with).c_str());
    }
    const RemoteVariable* other = nullptr;
    int64_t neighbor = -1;
    DIST_TRY(find_neighbor(directory_, options.colocate_with, &other, &neighbor));
    const int64_t rows = variable->shape.empty() ? 1 : variable->shape[0];
    const int64_t others = other->shape.empty() ? 1 : other->shape[0];
    if (neighbor < 0 && other->parts.size() > 1 && (variable->shape.empty() || rows != others)) {
      return invalid_argument(
          "variable \"%s\" has %lld rows, but \"%s\", which is divided, has %lld, so they cannot be "
          "colocated",
          variable->name.c_str(), static_cast<long long>(rows), other->name.c_str(),
          static_cast<long long>(others));
    }
    if (neighbor >= 0) {
      variable->parts.push_back({other->parts[static_cast<std::size_t>(neighbor)].ps, 0, 0, rows});
    } else {
      variable->parts.assign(other->parts.begin(), other->parts.end());
      if (other->parts.size() == 1) variable->parts[0].rows = rows;
    }
  } else {
    int64_t num_parts = 1;
    std::pmr::vector<int64_t> asked(options.partitions.begin(), options.partitions.end(), &memory());
    // The partitioner is not called for scalars.
    if (asked.empty() && partitioner_.function != nullptr && !variable->shape.empty()) {
      asked.resize(variable->shape.size());
      const dist_tensor spec = variable->spec();
      const uint64_t before = failures_on_this_thread();
      const Coordinator* const outer = std::exchange(dividing, this);
      const dist_status status = partitioner_.function(&spec, asked.data(), partitioner_.host);
      dividing = outer;
      if (status != DIST_OK) {
        if (failures_on_this_thread() != before) return Status(status);
        return fail(status, "variable \"%s\": the partitioner failed with %s", variable->name.c_str(),
                    status_name(status));
      }
    }
    if (!asked.empty()) DIST_TRY(count_parts(*variable, asked, &num_parts));
    const int64_t rows = variable->shape.empty() ? 1 : variable->shape[0];
    for (int64_t i = 0; i < num_parts; ++i) {
      RemoteVariable::Part part{};
      part.ps = static_cast<int32_t>((next_ps_ + i) % num_ps_);
      DIST_TRY(rows_of_part(rows, num_parts, i, &part.begin, &part.rows));
      variable->parts.push_back(part);
    }
  }
  std::pmr::vector<int64_t> numbers(num_parts_, &memory());
  for (RemoteVariable::Part& part : variable->parts) {
    part.number = numbers[static_cast<std::size_t>(part.ps)]++;
    if (part.number < static_cast<int64_t>(ParameterStore::kMostVariables)) continue;
    return fail(DIST_RESOURCE_EXHAUSTED, "parameter server %d has %zu variables, which is the limit", part.ps,
                ParameterStore::kMostVariables);
  }
  return kOk;
}

Status Coordinator::check_not_dividing(const char* what) const noexcept {
  if (dividing != this) return kOk;
  return failed_precondition("%s: this `thread` is in the coordinator's partitioner", what);
}

Status Coordinator::create_variable(const char* name, const dist_tensor& initial,
                                    const RemoteVariableOptions& options) {
  DIST_TRY(check_not_dividing("creating a variable"));
  DIST_TRY(check_name(name, "the name of a variable"));
  if (*name == '\0')
    return invalid_argument("a variable on parameter servers must have a name, which workers use to find it");
  if (options.max_staleness < 0) {
    return invalid_argument(
        "variable \"%s\": `max_staleness` is %d; use the number of closures by which a cached read may be "
        "old, or 0",
        name, options.max_staleness);
  }
  TensorSize size;
  DIST_TRY(check_tensor(initial, "initial", &size));
  RemoteVariable variable(memory());
  variable.name = name;
  variable.dtype = initial.dtype;
  variable.shape.assign(initial.shape, initial.shape + initial.ndim);
  variable.max_staleness = options.max_staleness;
  // The elements are sent directly from the caller's memory.
  ValueRef value;
  if (size.contiguous) {
    DIST_TRY(Value::wrap_tensor(memory(), initial, nullptr, nullptr, &value));
  } else {
    DIST_TRY(Value::copy_tensor(memory(), initial, &value));
  }
  DIST_TRY(await_servers());
  const std::scoped_lock lock(creating_);
  if (const RemoteVariable* other = nullptr; directory_.find(name, &other).ok()) {
    return fail(DIST_ALREADY_EXISTS, "variable \"%s\" already exists", Shown(name).c_str());
  }
  DIST_TRY(place(&variable, options));
  RemoteWait wait = patience();
  DIST_TRY(variables_.create(variable, *value, &wait));
  const auto parts = variable.parts;
  DIST_TRY(directory_.add(std::move(variable)));
  for (const RemoteVariable::Part& part : parts) ++num_parts_[static_cast<std::size_t>(part.ps)];
  if (options.colocate_with == nullptr) next_ps_ += static_cast<int64_t>(parts.size());
  return kOk;
}

// Finds variables by name, after all parameter servers have become available.
Status Coordinator::find_all(std::span<const char* const> names, RemoteVariables::List* out) {
  DIST_TRY(await_servers());
  for (const char* const name : names) {
    const RemoteVariable* variable = nullptr;
    DIST_TRY(directory_.find(name, &variable));
    out->push_back(variable);
  }
  return kOk;
}

Status Coordinator::read(std::span<const char* const> names, std::span<ValueRef> out) {
  RemoteVariables::List variables(&memory());
  DIST_TRY(find_all(names, &variables));
  RemoteWait wait = patience();
  return variables_.read(variables, &wait, out);
}

Status Coordinator::rows(const char* name, Value& indices, ValueRef* out) {
  RemoteVariables::List variables(&memory());
  DIST_TRY(find_all({&name, 1}, &variables));
  RemoteWait wait = patience();
  return variables_.rows(*variables[0], indices, &wait, out);
}

Status Coordinator::commit(const Pushes& pushes) {
  RemoteWait wait = patience();
  return variables_.commit(pushes, Commit::kNoClosure, 0, &wait);
}

// push(pushes, variables) adds the changes.
template <class Push>
Status Coordinator::change(std::span<const char* const> names, const Push& push) {
  RemoteVariables::List variables(&memory());
  DIST_TRY(find_all(names, &variables));
  Pushes pushes(memory(), variables_.num_servers());
  DIST_TRY(push(pushes, variables));
  return commit(pushes);
}

Status Coordinator::assign(const char* name, int32_t how, Value& value) {
  return change({&name, 1}, [&](Pushes& pushes, const RemoteVariables::List& variables) {
    return pushes.assign(*variables[0], how, value);
  });
}

Status Coordinator::scatter(const char* name, int32_t how, Value& slices) {
  return change({&name, 1}, [&](Pushes& pushes, const RemoteVariables::List& variables) {
    return pushes.scatter(*variables[0], how, slices);
  });
}

Status Coordinator::update(const char* function, std::span<const char* const> names, Value* arguments) {
  return change(names, [&](Pushes& pushes, const RemoteVariables::List& variables) {
    return pushes.update(function, variables, arguments);
  });
}

}  // namespace dist
