// SPDX-License-Identifier: Apache-2.0
#include "core/run/merge_call.hpp"

#include <new>

#include "core/run/current.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {
namespace {

// Puts replica 0 into cross-replica context. The destructor always notifies the peers, so they do not wait
// forever if the thread ends inside the function.
class Merging {
 public:
  Merging(Replica& replica, MergeOutcome& outcome) noexcept
      : replica_(replica), outcome_(outcome), within_(&replica, true) {
    outcome_.status = DIST_FAILED_PRECONDITION;
    outcome_.error = ErrorRecord{};
    outcome_.error.code = outcome_.status;
    copy_text(outcome_.error.message, "the merge function's thread ended inside it");
    outcome_.round = replica.group().round(replica.rank());
    replica_.set_away(Replica::Away::kMerging);
  }
  ~Merging() {
    replica_.set_away(Replica::Away::kNo);
    replica_.group().finish_without_waiting(replica_.rank());
  }
  Merging(const Merging&) = delete;
  Merging& operator=(const Merging&) = delete;

 private:
  Replica& replica_;
  MergeOutcome& outcome_;
  const Within within_;
};

// One argument of all replicas, merged item by item. Leaves *out unchanged if no replica has passed it.
Status merge_argument(Replica& replica, Memory& memory, Value* MergeArguments::*which, const char* name,
                      ValueRef* out) {
  std::pmr::vector<Value*> given(&memory);
  given.reserve(static_cast<std::size_t>(replica.replicas().local()));
  std::size_t present = 0;
  for (int p = 0; p < replica.replicas().local(); ++p) {
    const void* arguments = replica.group().slot(replica.rank(), p).extra;
    given.push_back(static_cast<const MergeArguments*>(arguments)->*which);
    present += given.back() != nullptr;
  }
  return present == 0 ? kOk : merge(memory, given, name, out);
}

Status call_function(Replica& replica, Memory& memory, const MergeFunction& function, ValueRef* out) {
  const uint64_t before = failures_on_this_thread();
  ValueRef args;
  ValueRef kwargs;
  DIST_TRY(merge_argument(replica, memory, &MergeArguments::args, "args", &args));
  DIST_TRY(merge_argument(replica, memory, &MergeArguments::kwargs, "kwargs", &kwargs));
  if (!args) DIST_TRY(Value::create(memory, DIST_VALUE_LIST, {}, &args));
  Value* result = nullptr;
  const dist_status status = function.call(*args, kwargs.get(), &result, function.context);
  *out = ValueRef::adopt(result);
  if (status == DIST_OK) return kOk;
  *out = ValueRef();
  if (failures_on_this_thread() != before && last_error().code == status) return Status(status);
  return fail(status, "the merge function returned %s without a reason. Use `dist_fail()` to report one",
              status_name(status));
}

// Replica 0 runs the function and stores the result for all.
Status lead(Replica& replica, Memory& memory, const MergeFunction& function, MergeOutcome& outcome) {
  {
    const Merging merging(replica, outcome);
    Status status;
    try {
      status = call_function(replica, memory, function, &outcome.result);
    } catch (const std::bad_alloc&) {
      status = out_of_memory();
    }
    outcome.status = status.code();
    if (!status.ok()) outcome.error = last_error();
  }
  return kOk;
}

Status meet_and_merge(Replica& replica, Memory& memory, const MergeFunction& function,
                      const MergeArguments& arguments, const char* tag, int64_t timeout_ns, ValueRef* out) {
  const auto [args, kwargs] = arguments;
  if (args != nullptr && !args->is_sequence()) {
    return invalid_argument("`args` is %s, but merge_call takes a list or tuple of arguments, or `NULL`",
                            Value::kind_name(args->kind()));
  }
  if (kwargs != nullptr && kwargs->kind() != DIST_VALUE_DICT) {
    return invalid_argument("`kwargs` is %s, but merge_call takes a dictionary of arguments, or `NULL`",
                            Value::kind_name(kwargs->kind()));
  }
  Group& group = replica.group();
  const int me = replica.rank();
  MergeOutcome& outcome = replica.pool().merge_outcome();
  DIST_TRY(group.open());
  Signature& signature = group.draft(me);
  signature.collective = Collective::kMergeCall;
  signature.function = function.identity;
  signature.kind = static_cast<int32_t>(function.what);
  signature.digest = mix(function.detail, (args == nullptr ? 1 : 0) + (kwargs == nullptr ? 0 : 2));
  close_digest(signature, tag);
  record_arrival(replica.member(tag, timeout_ns), signature, 0);
  group.outgoing(me).extra = &arguments;  // which lives until all have left
  DIST_TRY(group.arrive(me, timeout_ns));
  replica.recorder().arrived();

  if (me == 0) {
    if (!group.enter(me)) return group.finish(me);
    DIST_TRY(lead(replica, memory, function, outcome));
    if (memory.forked()) return in_forked_child();
  } else {
    group.await_done(me, 0);
    // Replica 0 did not begin, because a member had given up.
    if (outcome.round != group.round(me)) return group.finish(me);
  }
  Status status = outcome.status == DIST_OK ? kOk : fail(outcome.error);
  try {
    if (status.ok()) status = component_of(memory, outcome.result.get(), replica.local(), out);
  } catch (const std::bad_alloc&) {
    status = out_of_memory();
  }
  if (me != 0) {
    group.finish_without_waiting(me);
    return status;
  }
  // Peers still read the outcome.
  for (int p = 1; p < group.size(); ++p) group.await_done(me, p);
  outcome.result = ValueRef();
  return status;
}

}  // namespace

Status merge_call(Replica& replica, Memory& memory, const MergeFunction& function,
                  const MergeArguments& arguments, const char* tag, int64_t timeout_ns, ValueRef* out) {
  replica.recorder().begin(DIST_COLLECTIVE_MERGE_CALL);
  const Status status = meet_and_merge(replica, memory, function, arguments, tag, timeout_ns, out);
  replica.recorder().close(status.code());
  return status;
}

}  // namespace dist
