// SPDX-License-Identifier: Apache-2.0
#include "core/run/replica_variable.hpp"

#include <cstring>

#include "core/cross_replica/across_workers.hpp"
#include "core/run/merge_call.hpp"

namespace dist {
namespace {

// A replica's request. The replica waits while replica 0 reads the requests of all.
struct Request {
  const VariableOptions& options;
  const InitialValue& initial;
  Variable* found = nullptr;
};

struct Merging {
  const CrossReplica& context;
  const VariableHome& home;
  VariableRegistry& registry;
};

Request& request_of(Value& merged, int32_t replica) noexcept {
  Value& own = merged.distributed() ? *merged.items()[static_cast<std::size_t>(replica)] : merged;
  return *static_cast<Request*>(own.object());
}

// The tag distinguishes names only up to its length; this compares them completely.
Status check_names(Value& merged, int32_t n, const char* name) noexcept {
  for (int32_t r = 1; r < n; ++r) {
    const char* const other = request_of(merged, r).options.name;
    if (std::strcmp(name, other) == 0) continue;
    return invalid_argument(
        "replica 0 requested variable \"%s\", but replica %d requested \"%s\". All replicas must request the "
        "same variable together.",
        name, r, other);
  }
  return kOk;
}

Status check_fits(const Variable& variable, const Request& request, int32_t replica) noexcept {
  if (!variable.made_with(request.options)) {
    return invalid_argument(
        "variable \"%s\" was created with another synchronization or aggregation than replica "
        "%d requests",
        variable.name(), replica);
  }
  if (request.initial.tensor == nullptr) return kOk;
  return variable.check_assign(DIST_ASSIGN, *request.initial.tensor, "initial");
}

Status find_or_create(const Merging& merging, Value& merged) {
  const int32_t n = merging.context.replicas.local();
  const Request& first = request_of(merged, 0);
  DIST_TRY(check_names(merged, n, first.options.name));
  Variable* variable = merging.registry.find(first.options.name);
  Ref<Variable> made;
  if (variable == nullptr) {
    DIST_TRY(create_variable(merging.context, merging.home, first.options, first.initial, &made));
    variable = made.get();
  }
  for (int32_t r = 0; r < n; ++r) DIST_TRY(check_fits(*variable, request_of(merged, r), r));
  if (made) merging.registry.add(std::move(made));
  for (int32_t r = 0; r < n; ++r) request_of(merged, r).found = variable;
  return kOk;
}

dist_status lead(Value& args, Value*, Value**, void* context) {
  return find_or_create(*static_cast<const Merging*>(context), *args.items()[0]).code();
}

// All workers start with the value of the first one.
Status begin_with(const CrossReplica& context, const VariableHome& home, const VariableOptions& options,
                  const dist_tensor& initial, Ref<Variable>* out) {
  DIST_TRY(Variable::create(*context.memory, home, options, initial, out));
  if (context.workers == nullptr) return kOk;
  dist_tensor first = (*out)->first_copy();
  const Variable& made = **out;
  const uint64_t kind =
      mix(static_cast<uint64_t>(made.synchronization()), static_cast<uint64_t>(made.aggregation()));
  DIST_TRY(context.workers->broadcast(first, made.name(), mix_text(kind, made.name())));
  for (int32_t r = 1; r < (*out)->num_copies(); ++r) {
    (*out)->assign(DIST_ASSIGN, LocalReplica{r}, first);
  }
  return kOk;
}

constexpr char kIdentity = 0;

}  // namespace

Status create_variable(const CrossReplica& context, const VariableHome& home, const VariableOptions& options,
                       const InitialValue& initial, Ref<Variable>* out) {
  if (initial.tensor != nullptr) return begin_with(context, home, options, *initial.tensor, out);
  Value* given = nullptr;
  const uint64_t before = failures_on_this_thread();
  const dist_status status = initial.call(initial, &given);
  const ValueRef value = ValueRef::adopt(given);
  if (status != DIST_OK) {
    if (failures_on_this_thread() != before && last_error().code == status) return Status(status);
    return fail(
        status,
        "the function for the initial value returned %s without a reason. Use `dist_fail()` to report one",
        status_name(status));
  }
  if (!value || !value->has_tensor()) {
    return invalid_argument("the function for the initial value returned %s, but must return a tensor",
                            value ? Value::kind_name(value->kind()) : "nothing");
  }
  return begin_with(context, home, options, value->tensor(), out);
}

Status replica_variable(Replica& replica, const CrossReplica& context, const VariableHome& home,
                        VariableRegistry& registry, const Member& member, const VariableOptions& options,
                        const InitialValue& initial, Variable** out) {
  Request request{options, initial};
  Merging merging{context, home, registry};
  const ValueRef object = Value::wrap_object(*context.memory, &request, nullptr);
  Value* const items[] = {object.get()};
  ValueRef args;
  DIST_TRY(Value::create(*context.memory, DIST_VALUE_LIST, items, &args));
  ValueRef nothing;
  const char* const tag = member.tag != nullptr ? member.tag : options.name;
  DIST_TRY(merge_call(replica, *context.memory, {lead, &merging, &kIdentity, MergeFor::kVariable},
                      {args.get()}, tag, member.timeout_ns, &nothing));
  *out = request.found;
  return kOk;
}

}  // namespace dist
