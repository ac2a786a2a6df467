// SPDX-License-Identifier: Apache-2.0
// collective.h: collectives, groups of some replicas, and communication options.
#include "capi/collective.hpp"
#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "core/collective/reduce_apply.hpp"
#include "core/run/exchange_values.hpp"
#include "core/run/works.hpp"
#include "core/strategy/create_group.hpp"

using namespace dist;
using namespace dist::capi;

Status dist::capi::make_member(dist_replica* replica, const dist_collective_options& options,
                               const char* name, std::optional<Member>* out) {
  DIST_TRY(require_flag(options.planned, "dist_collective_options.planned"));
  DIST_TRY(require_timeout(options.timeout_ns, "dist_collective_options.timeout_ns"));
  DIST_TRY(check_numerics(numerics_of(options.numerics, DIST_NUMERICS_ORDERED)));
  Replica& self = unwrap(replica);
  if (options.group == nullptr) {
    out->emplace(self.member(options.tag, options.timeout_ns));
    return kOk;
  }
  auto& subgroup = const_cast<Subgroup&>(*unwrap(options.group));
  return member_of(subgroup, self, options.tag, options.timeout_ns, name, out);
}

Status dist::capi::require_used(const dist_collective_options& options, Collective collective,
                                dist_reduce_op op, const char* name) noexcept {
  const CollectiveTraits& traits = traits_of(collective);
  const auto unused = [&](const char* option) {
    return invalid_argument("`%s()` does not use `options->%s`. Leave it unset.", name, option);
  };
  if (options.axis != 0 && !traits.cuts && !traits.joins) return unused("axis");
  if (options.splits != nullptr && !traits.swaps()) return unused("splits");
  if (options.contributions > 1 && !traits.reduces) return unused("contributions");
  if (options.weights != nullptr && !traits.reduces) return unused("weights");
  const char* const of_user = options.reduce_fn != nullptr        ? "reduce_fn"
                              : options.reduce_element_bytes != 0 ? "reduce_element_bytes"
                                                                  : nullptr;
  if (of_user == nullptr) return kOk;
  if (!traits.reduces) return unused(of_user);
  if (op == DIST_REDUCE_USER) return kOk;
  return invalid_argument("`%s()` uses `options->%s` only if `op` is `DIST_REDUCE_USER`. Leave it unset.",
                          name, of_user);
}

Status dist::capi::require_blocking(const dist_collective_options& options, Collective collective,
                                    dist_reduce_op op, const char* name) noexcept {
  if (options.planned == 0) return require_used(options, collective, op, name);
  return invalid_argument(
      "`%s()` blocks and cannot be planned, but `options->planned` is set. Leave it unset.", name);
}

Status dist::capi::require_plain(const dist_collective_options& options, const char* name) noexcept {
  if (options.group != nullptr) {
    return invalid_argument("`%s()` runs on all replicas, but `options->group` is set. Leave it unset.",
                            name);
  }
  return require_blocking(options, Collective::kMergeCall, {}, name);
}

namespace {

// Starts or plans the call instead of waiting for its end.
Status begin(Replica& replica, const Member& member, Call& call, const dist_collective_options& options,
             dist_work** out_work) {
  int64_t bytes_per_pack = 0;
  DIST_TRY(read_size(options.bytes_per_pack, "dist_collective_options.bytes_per_pack", &bytes_per_pack));
  Ref<Work> work;
  DIST_TRY(dist::begin(replica, member, call,
                       {unwrap(options.group), unwrap(options.cancel), options.planned != 0, bytes_per_pack},
                       &work));
  *out_work = wrap(work.take());
  return kOk;
}

struct Tensors {
  const dist_tensor* in;
  const dist_tensor* out;
  std::size_t n;
};

Call call_of(Replica& replica, Collective collective, const Tensors& tensors,
             const dist_collective_options& options) noexcept {
  Call call;
  call.collective = collective;
  call.numerics =
      numerics_of(options.numerics, call.reduces() ? replica.pool().numerics() : DIST_NUMERICS_ORDERED);
  call.axis = options.axis;
  call.user_op = options.reduce_fn;
  call.user_data = options.reduce_user_data;
  call.element_bytes = options.reduce_element_bytes;
  call.in = tensors.in;
  call.out = tensors.out;
  call.n = tensors.n;
  call.contributions = options.contributions;
  call.weights = options.weights;
  call.splits = options.splits;
  return call;
}

// A collective on tensors; `set` adds what is specific to it.
template <class Set>
dist_status exchange_tensors(dist_replica* replica, const dist_collective_options* options, const char* name,
                             Collective collective, const Tensors& tensors, dist_work** out_work, Set&& set) {
  return with_member(
      replica, options, name, [&](const Member& member, const dist_collective_options& given) -> Status {
        Replica& self = unwrap(replica);
        Call call = call_of(self, collective, tensors, given);
        set(call);
        if (call.op == DIST_REDUCE_USER) call.group = &member.group;
        if (options != nullptr) DIST_TRY(require_used(given, collective, call.op, name));
        if (out_work != nullptr) return begin(self, member, call, given, out_work);
        if (given.planned == 1) {
          return invalid_argument(
              "`%s()`: `options->planned` is set, but `out_work` is `NULL`. Pass `out_work` to get the plan.",
              name);
        }
        return collective_of(self, member, call);
      });
}

constexpr auto kNothingElse = [](Call&) {};

// Out of line, with the arguments of dist_all_reduce(), so that neither that nor one_all_reduce() needs stack
// for it.
[[gnu::noinline]] dist_status any_all_reduce(dist_replica* replica, dist_reduce_op op, const dist_tensor* in,
                                             const dist_tensor* out, std::size_t n,
                                             const dist_collective_options* options, dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_all_reduce", Collective::kAllReduce, {in, out, n}, out_work,
                          [&](Call& call) { call.op = op; });
}

// Without options, for one tensor. Out of line, because it keeps fewer arguments than dist_all_reduce() has.
[[gnu::noinline]] dist_status one_all_reduce(dist_replica* replica, dist_reduce_op op, const dist_tensor* in,
                                             const dist_tensor* out) {
  if (replica != nullptr && in != nullptr && out != nullptr) {
    Replica& self = unwrap(replica);
    if (self.is_here() && self.works().empty() && host_call_here == nullptr) [[likely]] {
      if (const auto status = all_reduce_again(self.member(), op, self.pool().numerics(), *in, *out))
        return named(*status, "dist_all_reduce");
    }
  }
  return any_all_reduce(replica, op, in, out, 1, nullptr, nullptr);
}

}  // namespace

void dist_collective_options_init(dist_collective_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_COLLECTIVE_OPTIONS_INIT);
}

dist_status dist_all_reduce(dist_replica* replica, dist_reduce_op op, const dist_tensor* in,
                            const dist_tensor* out, size_t n, const dist_collective_options* options,
                            dist_work** out_work) {
  if (options == nullptr && out_work == nullptr && n == 1) return one_all_reduce(replica, op, in, out);
  return any_all_reduce(replica, op, in, out, n, options, out_work);
}

dist_status dist_reduce_to_root(dist_replica* replica, dist_reduce_op op, int32_t root, const dist_tensor* in,
                                const dist_tensor* out, size_t n, const dist_collective_options* options,
                                dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_reduce_to_root", Collective::kReduce, {in, out, n},
                          out_work, [&](Call& call) {
                            call.op = op;
                            call.root = root;
                          });
}

dist_status dist_reduce_scatter(dist_replica* replica, dist_reduce_op op, const dist_tensor* in,
                                const dist_tensor* out, size_t n, const dist_collective_options* options,
                                dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_reduce_scatter", Collective::kReduceScatter, {in, out, n},
                          out_work, [&](Call& call) { call.op = op; });
}

dist_status dist_all_gather(dist_replica* replica, const dist_tensor* in, const dist_tensor* out, size_t n,
                            const dist_collective_options* options, dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_all_gather", Collective::kAllGather, {in, out, n}, out_work,
                          kNothingElse);
}

dist_status dist_gather_to_root(dist_replica* replica, int32_t root, const dist_tensor* in,
                                const dist_tensor* out, size_t n, const dist_collective_options* options,
                                dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_gather_to_root", Collective::kGather, {in, out, n},
                          out_work, [&](Call& call) { call.root = root; });
}

dist_status dist_broadcast(dist_replica* replica, int32_t root, const dist_tensor* in, const dist_tensor* out,
                           size_t n, const dist_collective_options* options, dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_broadcast", Collective::kBroadcast, {in, out, n}, out_work,
                          [&](Call& call) { call.root = root; });
}

dist_status dist_scatter_from_root(dist_replica* replica, int32_t root, const dist_tensor* in,
                                   const dist_tensor* out, size_t n, const dist_collective_options* options,
                                   dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_scatter_from_root", Collective::kScatter, {in, out, n},
                          out_work, [&](Call& call) { call.root = root; });
}

dist_status dist_all_to_all(dist_replica* replica, const dist_tensor* in, const dist_tensor* out, size_t n,
                            const dist_collective_options* options, dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_all_to_all", Collective::kAllToAll, {in, out, n}, out_work,
                          kNothingElse);
}

dist_status dist_scan(dist_replica* replica, dist_reduce_op op, dist_scan_kind kind, const dist_tensor* in,
                      const dist_tensor* out, size_t n, const dist_collective_options* options,
                      dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_scan", Collective::kScan, {in, out, n}, out_work,
                          [&](Call& call) {
                            call.op = op;
                            call.kind = kind;
                          });
}

dist_status dist_permute(dist_replica* replica, int32_t destination, int32_t source, const dist_tensor* in,
                         const dist_tensor* out, size_t n, const dist_collective_options* options,
                         dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_permute", Collective::kPermute, {in, out, n}, out_work,
                          [&](Call& call) {
                            call.destination = destination;
                            call.source = source;
                          });
}

dist_status dist_barrier(dist_replica* replica, const dist_collective_options* options,
                         dist_work** out_work) {
  return exchange_tensors(replica, options, "dist_barrier", Collective::kBarrier, {nullptr, nullptr, 0},
                          out_work, kNothingElse);
}

namespace {

dist_status exchange_nest(dist_replica* replica, const dist_collective_options* options, const char* name,
                          Collective collective, dist_reduce_op op, dist_value* value,
                          dist_value** out_value) {
  return with_member(
      replica, options, name, [&](const Member& member, const dist_collective_options& given) -> Status {
        DIST_TRY(require(value, name, "value"));
        DIST_TRY(require(out_value, name, "out_value"));
        DIST_TRY(require_blocking(given, collective, op, name));
        if (given.contributions > 1) {
          return invalid_argument(
              "`%s()`: `options->contributions` is %zu, but the call takes one value. Leave it unset.", name,
              given.contributions);
        }
        Call call = call_of(unwrap(replica), collective, {nullptr, nullptr, 0}, given);
        call.op = op;
        ValueRef result;
        DIST_TRY(exchange_values(unwrap(replica), member, call, *unwrap(value), &result));
        *out_value = wrap(result.take());
        return kOk;
      });
}

}  // namespace

dist_status dist_all_reduce_value(dist_replica* replica, dist_reduce_op op, dist_value* value,
                                  const dist_collective_options* options, dist_value** out_value) {
  return exchange_nest(replica, options, "dist_all_reduce_value", Collective::kAllReduce, op, value,
                       out_value);
}

dist_status dist_all_gather_value(dist_replica* replica, dist_value* value,
                                  const dist_collective_options* options, dist_value** out_value) {
  return exchange_nest(replica, options, "dist_all_gather_value", Collective::kAllGather, {}, value,
                       out_value);
}

void dist_apply_options_init(dist_apply_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_APPLY_OPTIONS_INIT);
}

dist_status dist_reduce_apply(dist_replica* replica, dist_reduce_op op, const dist_tensor* gradients,
                              const dist_tensor* parameters, size_t n, const dist_apply_options* apply,
                              const dist_collective_options* options, double* out_norm) {
  return with_member(
      replica, options, "dist_reduce_apply",
      [&](const Member& member, const dist_collective_options& given) -> Status {
        DIST_TRY(require(apply, "dist_reduce_apply", "apply"));
        DIST_TRY(require_blocking(given, Collective::kReduceApply, op, "dist_reduce_apply"));
        dist_apply_options how;
        DIST_TRY(read_options(apply, &how, "dist_apply_options"));
        Call call = call_of(unwrap(replica), Collective::kReduceApply, {gradients, parameters, n}, given);
        call.op = op;
        if (op == DIST_REDUCE_USER) call.group = &member.group;
        call.states = how.num_states == 0 ? nullptr : how.states;
        const Update update{or_default(how.kind, DIST_APPLY_SGD),
                            how.learning_rate,
                            how.momentum,
                            how.clip_norm,
                            how.num_states,
                            how.fn,
                            how.user_data};
        return reduce_apply(unwrap(replica).pool().memory(), member, call, update, out_norm);
      });
}

dist_status dist_group_create(dist_strategy* strategy, const int32_t* replica_ids, size_t n,
                              dist_group** out_group) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_group_create", "strategy"));
    DIST_TRY(require(replica_ids, "dist_group_create", "replica_ids"));
    DIST_TRY(require(out_group, "dist_group_create", "out_group"));
    Strategy& owner = unwrap(strategy);
    DIST_TRY(owner.check_cross_replica("dist_group_create"));
    Subgroup* group = nullptr;
    DIST_TRY(create_group(owner, {replica_ids, n}, &group));
    *out_group = wrap(group);
    return kOk;
  });
}

dist_status dist_group_destroy(dist_group* group) {
  if (group == nullptr) return DIST_OK;
  return named(unwrap(group)->pool.destroy_group(unwrap(group)), "dist_group_destroy");
}

int32_t dist_group_size(const dist_group* group) { return group == nullptr ? 0 : unwrap(group)->size(); }

int32_t dist_group_rank(const dist_group* group, int32_t replica_id) {
  return group == nullptr ? -1 : unwrap(group)->rank(replica_id);
}

void dist_communication_options_init(dist_communication_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_COMMUNICATION_OPTIONS_INIT);
}

dist_status dist_communication_options_merge(const dist_communication_options* base,
                                             const dist_communication_options* over,
                                             dist_communication_options* out_options) {
  return guard([&]() -> Status {
    DIST_TRY(require(base, "dist_communication_options_merge", "base"));
    DIST_TRY(require(out_options, "dist_communication_options_merge", "out_options"));
    Communication given;
    Communication overriding;
    DIST_TRY(read_communication(base, &given));
    DIST_TRY(read_communication(over, &overriding));
    const Communication result = merged(given, overriding);
    dist_communication_options all = DIST_COMMUNICATION_OPTIONS_INIT;
    all.bytes_per_pack = static_cast<size_t>(result.bytes_per_pack);
    all.timeout_ns = result.timeout_ns;
    return write_struct(all, out_options, "dist_communication_options");
  });
}
