// SPDX-License-Identifier: Apache-2.0
#include "core/collective/reduce_apply.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/host_call.hpp"
#include "core/base/on_stack.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/share.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/sgd.hpp"

namespace dist {
namespace {

// The size of the pieces in which a thread works. A piece's gradients, parameters and states stay in the
// nearest cache.
constexpr std::size_t kPieceBytes = std::size_t{8} << 10;
// The unit of the sum of squares: one thread sums the squares of a cell, and every member then adds the sums
// of all cells in order.
constexpr std::size_t kCellBytes = std::size_t{64} << 10;
// Elements of a host operator may be large, but they have no weights, and their results are not wider.
static_assert(unit_bytes_for(kMostElementBytes) <= Scratch::kBytes - sizeof(void*) * 1024);
static_assert(unit_bytes_for(kMostElementBytes) <= Scratch::kElementBytes);
static_assert(unit_bytes_for(kMostElementBytes) <= kPieceBytes);
constexpr int kMaxStates = 16;

// Data that rank 0 provides to all members in a round.
struct Shared {
  const Update& update;
  double* sums;  // of squares, by cell; NULL: no clip
};

// One member's work in a round: it processes cells of the list of parameters, piece by piece.
class Pass {
 public:
  // `update` belongs to rank 0: a callback is that of rank 0, and gets rank 0's user data.
  Pass(const Member& member, const Call& call, const Update& update, const Exchange& exchange,
       const CallDescriptor* const* descriptors) noexcept
      : member_(member), call_(call), update_(update), exchange_(exchange), descriptors_(descriptors) {}

  std::size_t cells() const noexcept { return cells_of(exchange_.units(), exchange_.tasks().unit_bytes()); }
  static std::size_t cells_of(std::size_t units, std::size_t unit_bytes) noexcept {
    const std::size_t cell = kCellBytes / unit_bytes;
    return (units + cell - 1) / cell;
  }

  // Calls piece(t, first, count) for the pieces of some cells.
  template <class Piece>
  void for_cells(Range cells, std::size_t piece_bytes, Piece&& piece) noexcept {
    const std::size_t unit = exchange_.tasks().unit_bytes();
    const std::size_t cell = kCellBytes / unit;
    exchange_.tasks().for_pieces({cells.begin * cell, std::min(exchange_.units(), cells.end * cell)}, cursor_,
                                 piece_bytes / unit,
                                 [&](const TaskList::Cursor& at, std::size_t first, std::size_t count) {
                                   piece(at.task, first, count);
                                   return true;
                                 });
  }

  // Reduces gradients and updates parameters, piece by piece.
  void step(Range cells) noexcept {
    const std::size_t bytes = Scratch::bytes_for(exchange_.fold_bytes());
    Scratch scratch(DIST_ON_STACK(Scratch::Line, Scratch::lines(bytes)), bytes);
    const std::size_t most = std::min(kPieceBytes, scratch.left() - exchange_.fold_bytes());
    auto* const gradient = scratch.take<std::byte>(most);
    for_cells(cells, most / widening(), [&](std::size_t t, std::size_t first, std::size_t count) {
      exchange_.reduce(t, first, count, gradient, scratch);
      apply(t, first, count, gradient, 1);
    });
  }

  // Reduces into rank 0's gradients and writes the sum of squares of each cell to `sums`.
  void reduce(Range cells, double* sums) noexcept {
    const std::size_t bytes = Scratch::bytes_for(exchange_.fold_bytes());
    Scratch scratch(DIST_ON_STACK(Scratch::Line, Scratch::lines(bytes)), bytes);
    for (std::size_t cell = cells.begin; cell < cells.end; ++cell) {
      double sum = 0;
      for_cells({cell, cell + 1}, kPieceBytes, [&](std::size_t t, std::size_t first, std::size_t count) {
        std::byte* to = gradient_of_first(t, first);
        exchange_.reduce(t, first, count, to, scratch);
        sum += sum_of_squares(call_.out[t].dtype, to, count);
      });
      sums[cell] = sum;
    }
  }

  // Updates with the gradients written by reduce().
  void update(Range cells, double scale) noexcept {
    for_cells(cells, kPieceBytes, [&](std::size_t t, std::size_t first, std::size_t count) {
      apply(t, first, count, gradient_of_first(t, first), scale);
    });
  }

 private:
  // How many times larger a reduced gradient is than its input: MEAN of i8 yields f32.
  std::size_t widening() const noexcept {
    std::size_t most = 1;
    for (std::size_t t = 0; t < call_.n; ++t) {
      most = std::max(most, dtype_size(call_.out[t].dtype) / dtype_size(call_.in[t].dtype));
    }
    return most;
  }

  std::byte* gradient_of_first(std::size_t t, std::size_t first) const noexcept {
    const dist_tensor& tensor = descriptors_[0]->in[t];
    return static_cast<std::byte*>(tensor.data) + first * dtype_size(tensor.dtype);
  }

  // The members' copies of a tensor, from element `first` on: rank 0's, and those at other addresses.
  struct Copies {
    std::byte** const at;  // has room for all members' copies
    std::size_t count = 0;
    void add(const dist_tensor& tensor, std::size_t first) noexcept {
      auto* const data = static_cast<std::byte*>(tensor.data) + first * dtype_size(tensor.dtype);
      if (count == 0 || data != at[0]) at[count++] = data;
    }
  };
  Copies parameters(std::size_t t, std::size_t first, std::byte** room) const noexcept {
    Copies copies{room};
    for (int p = 0; p < member_.group.size(); ++p) copies.add(descriptors_[p]->out[t], first);
    return copies;
  }
  // The copies of state s; none if the call has no states.
  Copies states(std::size_t s, std::size_t t, std::size_t first, std::byte** room) const noexcept {
    Copies copies{room};
    for (int p = 0; s < update_.num_states && p < member_.group.size(); ++p)
      copies.add(descriptors_[p]->states[s * call_.n + t], first);
    return copies;
  }

  // Not inlined, so that its lists of copies are not on the stack while a reduction needs the stack.
  [[gnu::noinline]] void apply(std::size_t t, std::size_t first, std::size_t count, std::byte* gradient,
                               double scale) const noexcept {
    if (update_.kind == DIST_APPLY_SGD) {
      apply_sgd(t, first, count, gradient, scale);
    } else {
      apply_callback(t, first, count, gradient, scale);
    }
  }

  void apply_sgd(std::size_t t, std::size_t first, std::size_t count, const std::byte* gradient,
                 double scale) const noexcept {
    const bool momentum = update_.num_states != 0;
    const int size = member_.group.size();
    const Copies parameter = parameters(t, first, DIST_ON_STACK(std::byte*, size));
    const Copies velocity = states(0, t, first, DIST_ON_STACK(std::byte*, size));
    const SgdArguments args{gradient,
                            parameter.at,
                            momentum ? velocity.at : nullptr,
                            parameter.count,
                            count,
                            scale,
                            update_.learning_rate,
                            update_.momentum,
                            stream_};
    // Members may share their parameters but not their velocities.
    if (!momentum || velocity.count == parameter.count) return sgd(call_.out[t].dtype, args);
    SgdArguments first_only = args;
    first_only.copies = 1;
    sgd(call_.out[t].dtype, first_only);
    const std::size_t bytes = count * dtype_size(call_.out[t].dtype);
    copy_to_others(parameter, bytes);
    copy_to_others(velocity, bytes);
  }

  // Changes rank 0's copy and copies the result to the others.
  void apply_callback(std::size_t t, std::size_t first, std::size_t count, std::byte* gradient,
                      double scale) const noexcept {
    const dist_dtype dtype = call_.out[t].dtype;
    const std::size_t bytes = count * dtype_size(dtype);
    if (scale != 1) scale_elements(dtype, gradient, count, scale);
    const auto of_first = [&](const dist_tensor& tensor) {
      return static_cast<std::byte*>(tensor.data) + first * dtype_size(dtype);
    };
    void* states_of_first[kMaxStates];
    for (std::size_t s = 0; s < update_.num_states; ++s) {
      states_of_first[s] = of_first(descriptors_[0]->states[s * call_.n + t]);
    }
    const dist_block block{t,
                           static_cast<int64_t>(first),
                           static_cast<int64_t>(count),
                           dtype,
                           static_cast<int32_t>(update_.num_states),
                           gradient,
                           of_first(descriptors_[0]->out[t]),
                           states_of_first};
    {
      const HostCall inside("a function that applies gradients", HostCall::Refuses::kCalls);
      if (!guarded_void("the function that applies gradients",
                        [&] { update_.function(&block, update_.user_data); }))
        member_.group.condemn(last_error());
    }
    auto* const room = DIST_ON_STACK(std::byte*, member_.group.size());
    copy_to_others(parameters(t, first, room), bytes);
    for (std::size_t s = 0; s < update_.num_states; ++s) copy_to_others(states(s, t, first, room), bytes);
  }

  static void copy_to_others(const Copies& copies, std::size_t bytes) noexcept {
    for (std::size_t c = 1; c < copies.count; ++c) std::memcpy(copies.at[c], copies.at[0], bytes);
  }

  const Member& member_;
  const Call& call_;
  const Update& update_;
  const Exchange& exchange_;
  TaskList::Cursor cursor_;
  const CallDescriptor* const* descriptors_;
  // The other members' copies are written without being read. They bypass the caches if they are much larger
  // than these.
  const bool stream_ = exchange_.bytes() >
                       Exchange::stream_bytes(static_cast<std::size_t>(member_.group.size()),
                                              member_.cache_bytes);
};

Status check(const Call& call, const Update& update) noexcept {
  if (call.strided) return invalid_argument("`dist_reduce_apply()`: tensors must be row-major without gaps");
  if (!(update.clip_norm >= 0) || std::isinf(update.clip_norm)) {
    return invalid_argument("`dist_reduce_apply()`: `clip_norm` is %g, but must be 0 (no clip), or positive",
                            update.clip_norm);
  }
  if (update.num_states > kMaxStates) {
    return invalid_argument("`dist_reduce_apply()`: `num_states` is %zu, but must be at most %d",
                            update.num_states, kMaxStates);
  }
  if (update.num_states != 0 && call.n != 0 && call.states == nullptr) {
    return invalid_argument("`dist_reduce_apply()`: `states` is `NULL`, but `num_states` is %zu",
                            update.num_states);
  }
  for (std::size_t i = 0; i < update.num_states * call.n; ++i) {
    const dist_tensor& state = call.states[i];
    const dist_tensor& parameter = call.out[i % call.n];
    TensorSize size;
    DIST_TRY(check_output(state, "a state", &size));
    if (state.dtype == parameter.dtype && same_shape(state, parameter) && size.contiguous) continue;
    return invalid_argument(
        "`dist_reduce_apply()`: states[%zu] must be row-major, with the dtype and shape of parameter %zu", i,
        i % call.n);
  }
  for (std::size_t t = 0; t < call.n; ++t) {
    const dist_dtype dtype = call.out[t].dtype;
    const bool wide = dtype == DIST_F32 || dtype == DIST_F64;
    if (call.in[t].data == call.out[t].data && elements_of(call.in[t]) != 0) {
      return invalid_argument(
          "`dist_reduce_apply()`: gradient and parameter %zu are the same buffer. Use separate buffers.", t);
    }
    if (wide || (update.kind == DIST_APPLY_CALLBACK && update.clip_norm == 0)) continue;
    return fail(DIST_UNIMPLEMENTED, "`dist_reduce_apply()`: parameter %zu is %s, but %s f32 and f64 only", t,
                dtype_name(dtype), update.kind == DIST_APPLY_SGD ? "SGD supports" : "clipping supports");
  }
  if (update.clip_norm > 0) {
    for (std::size_t t = 0; t < call.n; ++t) {
      if (call.in[t].dtype == call.out[t].dtype) continue;
      return fail(DIST_UNIMPLEMENTED,
                  "`dist_reduce_apply()`: clipping needs gradients of the same dtype as the parameters");
    }
  }
  if (update.kind == DIST_APPLY_CALLBACK) {
    return update.function != nullptr
               ? kOk
               : invalid_argument("`dist_reduce_apply()`: kind is CALLBACK, but `fn` is `NULL`");
  }
  if (update.kind != DIST_APPLY_SGD) {
    return invalid_argument(
        "`dist_reduce_apply()`: `kind` is `%d`; use `DIST_APPLY_SGD` or `DIST_APPLY_CALLBACK`", update.kind);
  }
  if (!std::isfinite(update.learning_rate) || !std::isfinite(update.momentum)) {
    return invalid_argument(
        "`dist_reduce_apply()`: `learning_rate` is %g and momentum is %g, but both must be finite",
        update.learning_rate, update.momentum);
  }
  const std::size_t wanted = update.momentum != 0 ? 1 : 0;
  if (update.num_states == wanted) return kOk;
  return invalid_argument(
      "`dist_reduce_apply()`: SGD with momentum %g needs %zu states, but `num_states` is %zu",
      update.momentum, wanted, update.num_states);
}

uint64_t mix_update(uint64_t digest, const Update& update) noexcept {
  digest = mix(digest, static_cast<uint64_t>(update.kind) << 32 | update.num_states);
  for (const double value : {update.learning_rate, update.momentum, update.clip_norm}) {
    digest = mix(digest, std::bit_cast<uint64_t>(value));
  }
  return digest;
}

// Rejects tensors that do not fit together. Not inlined because a report needs stack space.
[[gnu::noinline, gnu::cold]] Status refuse(const Member& member, const Call& call,
                                           const Exchange& exchange) noexcept {
  Group& group = member.group;
  ErrorRecord why;
  exchange.refuses(group, member.me, &why);
  return group.refuse(member.me, refusal(group, call.collective, member.tag, group.sequence(member.me), why));
}

// One round: publishes, meets, and does this member's share. work(pass, sums) returns the work for a range of
// cells. The argument `sums` is this member's; work() receives rank 0's.
template <class Work>
Status meet_unrecorded(const Member& member, Call& call, const Update& update, int phase, double* sums,
                       Work&& work) noexcept {
  Group& group = member.group;
  DIST_TRY(group.open());
  Signature& signature = group.draft(member.me);
  DIST_TRY(call.check(member.me, group.size(), signature));
  DIST_TRY(check(call, update));
  signature.kind = phase;
  signature.function = reinterpret_cast<const void*>(update.function);
  signature.digest = mix_update(signature.digest, update);
  close_digest(signature, member.tag);
  record_arrival(member, signature, call.bytes);
  Slot& slot = group.outgoing(member.me);
  call.describe_in(slot.descriptor);
  const Shared own{update, sums};
  slot.extra = &own;
  group.arm_tickets(member.me);
  DIST_TRY(group.arrive(member.me, member.timeout_ns));
  if (member.recorder != nullptr) member.recorder->arrived();
  if (group.enter(member.me)) {
    auto* const descriptors = DIST_ON_STACK(const CallDescriptor*, group.size());
    collect_descriptors(member, descriptors);
    const Exchange exchange(call, group.size(), descriptors, member.cache_bytes);
    if (exchange.refuses(group, member.me, nullptr)) return refuse(member, call, exchange);
    const FpEnvironment environment;
    const auto& shared = *static_cast<const Shared*>(group.slot(member.me, 0).extra);
    Pass pass(member, call, shared.update, exchange, descriptors);
    share_blocks(member, pass.cells(), 1, work(pass, shared.sums));
  }
  return group.finish(member.me);
}

template <class Work>
Status meet(const Member& member, Call& call, const Update& update, int phase, double* sums,
            Work&& work) noexcept {
  return recorded(member, Collective::kReduceApply, [&] {
    return meet_unrecorded(member, call, update, phase, sums, std::forward<Work>(work));
  });
}

// Validates the call before its tensors' sizes are used.
Status check_first(const Member& member, Call& call, const Update& update) noexcept {
  Signature scratch;
  DIST_TRY(call.check(member.me, member.group.size(), scratch));
  return check(call, update);
}

// An operator for contributions that are all equal: it keeps the first one.
void keep_first(void*, const void*, int64_t, dist_dtype, void*) noexcept {}

// With several workers the gradients are reduced first, and then each worker applies the result on its own:
// all of its replicas bring the same reduced gradients to that step.
Status reduce_and_apply(Memory& memory, const Member& member, const Call& call, const Update& update,
                        double* out_norm) noexcept {
  constexpr std::size_t kAlign = 64;
  std::size_t bytes = call.n * sizeof(dist_tensor) + kAlign;
  const auto size_of = [&](std::size_t t) {
    const std::size_t size = elements_of(call.in[t]) * dtype_size(call.out_dtype(call.in[t].dtype));
    return (size + kAlign - 1) / kAlign * kAlign;
  };
  Signature scratch;
  Call checked = call;
  DIST_TRY(checked.check(member.communicator->first() + member.me, member.num_global(), scratch));
  DIST_TRY(check(call, update));
  for (std::size_t t = 0; t < call.n; ++t) {
    bytes += size_of(t);
  }
  auto* const room = static_cast<std::byte*>(memory.try_allocate(bytes, kAlign));
  if (room == nullptr) return out_of_memory();
  auto* const sums = reinterpret_cast<dist_tensor*>(room);
  std::byte* at = room + (call.n * sizeof(dist_tensor) + kAlign - 1) / kAlign * kAlign;
  for (std::size_t t = 0; t < call.n; ++t) {
    sums[t] = {at, call.out_dtype(call.in[t].dtype), call.in[t].ndim, call.in[t].shape, nullptr};
    at += size_of(t);
  }
  Call sum = call;
  sum.collective = Collective::kAllReduce;
  sum.out = sums;
  sum.states = nullptr;
  Status status = collective(member, sum);
  if (status.ok()) {
    Call step = call;
    step.in = sums;
    step.op = DIST_REDUCE_USER;
    step.user_op = keep_first;
    step.user_data = nullptr;
    step.numerics = DIST_NUMERICS_ORDERED;
    step.contributions = 0;
    step.weights = nullptr;
    step.element_bytes = 0;
    status = reduce_apply(memory, member.local(), step, update, out_norm);
  }
  memory.free(room, bytes, kAlign);
  return status;
}

}  // namespace

Status reduce_apply(Memory& memory, const Member& member, Call& call, const Update& update,
                    double* out_norm) noexcept {
  if (member.communicator != nullptr) return reduce_and_apply(memory, member, call, update, out_norm);
  if (update.clip_norm == 0) {
    return meet(member, call, update, 0, nullptr,
                [](Pass& pass, double*) { return [&pass](Range cells) { pass.step(cells); }; });
  }
  if (const Status first = check_first(member, call, update); !first.ok()) {
    return recorded(member, Collective::kReduceApply, [&] { return first; });
  }
  // The sums of squares by cell, in rank 0's memory.
  const std::size_t unit = unit_bytes_for(call.element_bytes);
  std::size_t units = 0;
  for (std::size_t t = 0; t < call.n; ++t) {
    units += units_of(elements_of(call.in[t]) * dtype_size(call.in[t].dtype), unit);
  }
  const std::size_t bytes = std::max<std::size_t>(1, Pass::cells_of(units, unit)) * sizeof(double);
  auto* sums = static_cast<double*>(memory.try_allocate(bytes, alignof(double)));
  if (sums == nullptr) return out_of_memory();
  Status status = meet(member, call, update, 1, sums, [](Pass& pass, double* all) {
    return [&pass, all](Range cells) { pass.reduce(cells, all); };
  });
  double norm = 0;
  if (status.ok()) {
    // Every member adds the sums of the cells in order.
    status = meet(member, call, update, 2, sums, [&](Pass& pass, const double* all) {
      double sum = 0;
      for (std::size_t cell = 0; cell < pass.cells(); ++cell) sum += all[cell];
      norm = std::sqrt(sum);
      const double scale = norm > update.clip_norm ? update.clip_norm / norm : 1;
      return [&pass, scale](Range cells) { pass.update(cells, scale); };
    });
  }
  memory.free(sums, bytes, alignof(double));
  if (status.ok() && out_norm != nullptr) *out_norm = norm;
  return status;
}

}  // namespace dist
