// SPDX-License-Identifier: Apache-2.0
#include "core/ps/remote_variables.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/tensor.hpp"
#include "core/layout/partitioner.hpp"
#include "core/ps/numbers.hpp"

namespace dist {
namespace {

// The maximum size of an answer, unless a single part is larger, so that other calls get their turn.
constexpr std::size_t kMostAnswerBytes = std::size_t{64} << 20;

}  // namespace

// Concurrent calls to several servers.
class RemoteVariables::Calls {
 public:
  Calls(const RemoteVariables& owner, RemoteWait* wait)
      : owner_(owner),
        wait_(wait),
        begin_ns_(steady_now_ns()),
        until_ns_(wait->timeout_ns > INT64_MAX - begin_ns_ ? INT64_MAX : begin_ns_ + wait->timeout_ns),
        calls_(&owner.memory_) {}

  Status begin(std::size_t ps, std::string_view method, Value& message) {
    int64_t left = -1;
    if (wait_->timeout_ns >= 0) left = std::max<int64_t>(until_ns_ - steady_now_ns(), 1);
    Ref<RemoteValue> call;
    DIST_TRY(owner_.servers_[ps]->begin(method, &message, {left, wait_->cancel, nullptr}, &call));
    calls_.push_back({ps, std::move(call)});
    return kOk;
  }
  std::size_t size() const noexcept { return calls_.size(); }
  Status get(std::size_t i, ValueRef* out) {
    const std::size_t ps = calls_[i].ps;
    RemoteValue& call = *calls_[i].call;
    const RpcClient& client = *owner_.servers_[ps];
    // A call that has not been sent would wait for a server that may never start.
    char why_not[sizeof ErrorRecord::message] = "";
    while (!call.ready()) {
      (void)call.get(client.lease_ns(), out);
      if (call.ready()) break;
      client.why_not(why_not, sizeof why_not);
      if (*why_not == '\0' || steady_now_ns() - begin_ns_ < 2 * client.lease_ns()) continue;
      call.cancel(why_not);
      return lost(ps, why_not);
    }
    const Status got = call.get(-1, out);
    if (got.code() != DIST_UNAVAILABLE) return got;
    const ErrorRecord why = last_error();
    return lost(ps, why.message);
  }
  // Waits for all calls whose answers have no content.
  Status get_all() {
    Status all = kOk;
    ErrorRecord why;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      ValueRef ignored;
      const Status got = get(i, &ignored);
      if (got.ok() || !all.ok()) continue;
      all = got;
      why = last_error();
    }
    return all.ok() ? all : fail(why);
  }

 private:
  struct Call {
    std::size_t ps;
    Ref<RemoteValue> call;
  };
  Status lost(std::size_t ps, const char* why) noexcept {
    wait_->lost = static_cast<int32_t>(ps);
    return fail(DIST_ABORTED,
                "parameter server %zu at %s is lost with its variables (%s). Restore from a checkpoint.", ps,
                owner_.servers_[ps]->address(), why);
  }

  const RemoteVariables& owner_;
  RemoteWait* const wait_;
  const int64_t begin_ns_;
  const int64_t until_ns_;
  std::pmr::vector<Call> calls_;
};

Status RemoteVariables::add_server(const Ref<GrpcCalls>& calls, const char* address) {
  return RpcClient::create(memory_, calls, address, -1, &servers_.emplace_back());
}

Status RemoteVariables::call(std::size_t ps, std::string_view method, Value& message, RemoteWait* wait,
                             ValueRef* out) {
  Calls calls(*this, wait);
  DIST_TRY(calls.begin(ps, method, message));
  return calls.get(0, out);
}

Status RemoteVariables::create(const RemoteVariable& variable, Value& initial, RemoteWait* wait) {
  Calls calls(*this, wait);
  for (const RemoteVariable::Part& part : variable.parts) {
    ValueRef value = ValueRef::share(&initial);
    if (variable.parts.size() > 1) DIST_TRY(rows_of(initial, part.begin, part.rows, &value));
    ValueRef message;
    DIST_TRY(make_message(memory_, {epoch_, part.number}, {value.get()}, &message));
    DIST_TRY(calls.begin(static_cast<std::size_t>(part.ps), "dist.ps.create", *message));
  }
  return calls.get_all();
}

// A read of several variables: the source of each of their parts.
class RemoteVariables::Reading {
 public:
  Reading(const RemoteVariables& owner, std::span<const RemoteVariable* const> variables, RemoteWait* wait)
      : owner_(owner),
        variables_(variables),
        calls_(owner, wait),
        parts_(&owner.memory_),
        answers_(&owner.memory_) {
    for (const RemoteVariable* const each : variables) {
      for (const RemoteVariable::Part& part : each->parts) parts_.push_back({each, &part, 0, 0});
    }
  }

  // Starts the calls and waits for the answers.
  Status ask() {
    std::pmr::vector<Part*> by_server(&owner_.memory_);
    for (Part& each : parts_) by_server.push_back(&each);
    std::sort(by_server.begin(), by_server.end(),
              [](const Part* a, const Part* b) { return a->part->ps < b->part->ps; });
    std::pmr::vector<int64_t> numbers({owner_.epoch_}, &owner_.memory_);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < by_server.size(); ++i) {
      Part& each = *by_server[i];
      each.call = calls_.size();
      each.item = numbers.size() - 1;
      numbers.push_back(each.part->number);
      bytes += bytes_of(each);
      const Part* const next = i + 1 < by_server.size() ? by_server[i + 1] : nullptr;
      if (next != nullptr && next->part->ps == each.part->ps &&
          bytes_of(*next) <= kMostAnswerBytes - std::min(bytes, kMostAnswerBytes)) {
        continue;
      }
      ValueRef message;
      DIST_TRY(make_message(owner_.memory_, numbers, {}, &message));
      DIST_TRY(calls_.begin(static_cast<std::size_t>(each.part->ps), "dist.ps.read", *message));
      numbers.resize(1);
      bytes = 0;
    }
    answers_.resize(calls_.size());
    for (std::size_t i = 0; i < answers_.size(); ++i) DIST_TRY(calls_.get(i, &answers_[i]));
    return kOk;
  }

  Status give(std::span<ValueRef> out) const {
    const Part* at = parts_.data();
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const RemoteVariable& variable = *variables_[i];
      if (variable.parts.size() == 1) {
        DIST_TRY(take(*at++, &out[i]));
        continue;
      }
      DIST_TRY(Value::copy_tensor(owner_.memory_, variable.spec(), &out[i]));
      for (std::size_t p = 0; p < variable.parts.size(); ++p, ++at) {
        ValueRef rows;
        DIST_TRY(take(*at, &rows));
        if (bytes_of(*at) == 0) continue;
        const std::size_t begin = static_cast<std::size_t>(at->part->begin) * variable.row_bytes();
        std::memcpy(static_cast<std::byte*>(out[i]->tensor().data) + begin, rows->tensor().data,
                    bytes_of(*at));
      }
    }
    return kOk;
  }

 private:
  struct Part {
    const RemoteVariable* variable;
    const RemoteVariable::Part* part;
    std::size_t call;  // the call that delivers it
    std::size_t item;  // its position in that answer
  };
  static std::size_t bytes_of(const Part& each) noexcept {
    return static_cast<std::size_t>(each.part->rows) * each.variable->row_bytes();
  }
  Status take(const Part& each, ValueRef* out) const noexcept {
    const Value& answer = *answers_[each.call];
    const RemoteVariable& variable = *each.variable;
    if (answer.is_sequence() && each.item < answer.items().size()) {
      const ValueRef& item = answer.items()[each.item];
      if (item->kind() == DIST_VALUE_TENSOR && item->tensor().dtype == variable.dtype &&
          elements_of(item->tensor()) * dtype_size(variable.dtype) == bytes_of(each)) {
        *out = item;
        return kOk;
      }
    }
    return fail(DIST_DATA_LOSS, "variable \"%s\": the parameter server has another variable with this number",
                variable.name.c_str());
  }

  const RemoteVariables& owner_;
  const std::span<const RemoteVariable* const> variables_;
  Calls calls_;
  std::pmr::vector<Part> parts_;  // in the order of the variables
  std::pmr::vector<ValueRef> answers_;
};

Status RemoteVariables::read(std::span<const RemoteVariable* const> variables, RemoteWait* wait,
                             std::span<ValueRef> out) {
  Reading reading(*this, variables, wait);
  DIST_TRY(reading.ask());
  return reading.give(out);
}

Status RemoteVariables::rows(const RemoteVariable& variable, Value& indices, RemoteWait* wait,
                             ValueRef* out) {
  const char* const name = variable.name.c_str();
  TensorSize size;
  if (!indices.has_tensor()) return invalid_argument("variable \"%s\": `indices` must be a tensor", name);
  const dist_tensor given = indices.tensor();
  DIST_TRY(check_tensor(given, "indices", &size));
  if (variable.shape.empty() || given.ndim != 1 || (given.dtype != DIST_I32 && given.dtype != DIST_I64) ||
      !size.contiguous) {
    char is[160];
    describe(given, is, sizeof is);
    return invalid_argument(
        "variable \"%s\": rows must be requested by i32[k] or i64[k] without gaps, not %s, from a variable "
        "with at least one dimension",
        name, is);
  }
  const auto index_at = [&](int64_t i) noexcept {
    return given.dtype == DIST_I32 ? int64_t{static_cast<const int32_t*>(given.data)[i]}
                                   : static_cast<const int64_t*>(given.data)[i];
  };
  const std::size_t num_parts = variable.parts.size();
  std::pmr::vector<std::pmr::vector<int64_t>> wanted(num_parts, &memory_);  // rows of each part
  std::pmr::vector<std::pmr::vector<int64_t>> places(num_parts, &memory_);  // their destinations
  for (int64_t i = 0; i < given.shape[0]; ++i) {
    if (index_at(i) < 0 || index_at(i) >= variable.shape[0]) {
      return invalid_argument("variable \"%s\": row %lld was requested, but there are %lld rows", name,
                              static_cast<long long>(index_at(i)), static_cast<long long>(variable.shape[0]));
    }
    int64_t part = 0;
    int64_t offset = 0;
    DIST_TRY(part_of_row(variable.shape[0], static_cast<int64_t>(num_parts), index_at(i), &part, &offset));
    wanted[static_cast<std::size_t>(part)].push_back(offset);
    places[static_cast<std::size_t>(part)].push_back(i);
  }
  Calls calls(*this, wait);
  for (std::size_t p = 0; p < num_parts; ++p) {
    if (wanted[p].empty()) continue;
    ValueRef which;
    ValueRef message;
    DIST_TRY(make_numbers(memory_, wanted[p], &which));
    DIST_TRY(make_message(memory_, {epoch_, variable.parts[p].number}, {which.get()}, &message));
    DIST_TRY(calls.begin(static_cast<std::size_t>(variable.parts[p].ps), "dist.ps.rows", *message));
  }
  std::pmr::vector<int64_t> shape(variable.shape, &memory_);
  shape[0] = given.shape[0];
  ValueRef made;
  DIST_TRY(Value::copy_tensor(
      memory_, {nullptr, variable.dtype, static_cast<int32_t>(shape.size()), shape.data(), nullptr}, &made));
  const std::size_t row = variable.row_bytes();
  for (std::size_t p = 0, call = 0; p < num_parts; ++p) {
    if (wanted[p].empty()) continue;
    ValueRef rows;
    DIST_TRY(calls.get(call++, &rows));
    if (rows->kind() != DIST_VALUE_TENSOR || rows->tensor().dtype != variable.dtype ||
        elements_of(rows->tensor()) * dtype_size(variable.dtype) != wanted[p].size() * row) {
      return fail(DIST_DATA_LOSS,
                  "variable \"%s\": the parameter server has another variable with this number", name);
    }
    for (std::size_t k = 0; row != 0 && k < places[p].size(); ++k) {
      std::memcpy(static_cast<std::byte*>(made->tensor().data) + static_cast<std::size_t>(places[p][k]) * row,
                  static_cast<const std::byte*>(rows->tensor().data) + k * row, row);
    }
  }
  *out = std::move(made);
  return kOk;
}

Status RemoteVariables::commit(const Pushes& pushes, int64_t id, int64_t watermark, RemoteWait* wait) {
  // First the servers whose functions may fail, so that in this case nothing has changed on the others.
  for (const bool functions : {true, false}) {
    Calls calls(*this, wait);
    for (std::size_t ps = 0; ps < servers_.size(); ++ps) {
      if (pushes.empty(ps) || pushes.has_functions(ps) != functions) continue;
      ValueRef message;
      DIST_TRY(pushes.write(ps, epoch_, id, watermark, &message));
      DIST_TRY(calls.begin(ps, "dist.ps.commit", *message));
    }
    DIST_TRY(calls.get_all());
  }
  return kOk;
}

}  // namespace dist
