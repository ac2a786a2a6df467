// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/collective.hpp: groups, work and collectives (collective.h, work.h). Blocking, asynchronous and planned
// collectives have the same names.
//
//     dist::collective_options options;
//     options.tag = "gradients";                                                      // appears in error reports
//     replica.all_reduce(dist::reduce_op::mean, gradient, options);                   // returns when it is complete
//
//     dist::work work = replica.begin().all_reduce(dist::reduce_op::mean, gradient, options);
//     work.wait();
//
//     dist::plan plan = replica.plan().all_reduce(dist::reduce_op::mean, gradient, options);
//     for (int step = 0; step < steps; ++step) {
//       plan.start();
//       plan.wait();
//     }
#ifndef DIST_HPP_COLLECTIVE_HPP
#define DIST_HPP_COLLECTIVE_HPP

#include "strategy.hpp"

namespace dist {

// ---- Groups ----------------------------------------------------------------------------------------------

// Some replicas of a strategy, or some logical devices of a replica. A non-owning handle.
class group_ref {
 public:
  group_ref() noexcept = default;
  explicit group_ref(const dist_group *handle) noexcept : handle_(handle) {}

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  int32_t size() const noexcept { return dist_group_size(handle_); }
  int32_t rank(int32_t replica_id) const noexcept {
    return dist_group_rank(handle_, replica_id);
  }  // -1 = not a member
  [[nodiscard]] const dist_group *get() const noexcept { return handle_; }

 protected:
  const dist_group *handle_ = nullptr;
};

// Owns a group. Destroy it before its strategy, and not during a run.
class group : public group_ref {
 public:
  group(const strategy_ref &owner, const std::vector<int32_t> &replica_ids) {
    dist_group *made = nullptr;
    check(dist_group_create(owner.get(), replica_ids.data(), replica_ids.size(), &made));
    handle_ = made;
  }
  ~group() { (void)!dist_group_destroy(const_cast<dist_group *>(handle_)); }  // created by this object
  group(group &&other) noexcept { std::swap(handle_, other.handle_); }
  group &operator=(group &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  group(const group &) = delete;
  group &operator=(const group &) = delete;
};

// ---- Options ---------------------------------------------------------------------------------------------

// dist_collective_options without the fields that the methods set: the operator, and planned.
struct collective_options {
  const char *tag = nullptr;  // name for reports, equal on all members
  int64_t timeout_ns = 0;  // longest wait for a peer, in ns; 0 = the strategy's; DIST_NO_TIMEOUT = no limit
  group_ref group = {};    // participating group; default: all replicas
  dist_numerics numerics = DIST_NUMERICS_DEFAULT;
  int32_t axis = 0;
  const double *weights = nullptr;  // MEAN: one weight per contribution, on all members or on none
  std::size_t contributions = 0;    // tensors that this replica adds to each sum; `in` has as many lists
  const int64_t *splits = nullptr;  // all_to_all: one size per member
  std::size_t bytes_per_pack = 0;   // pack size of a planned list
  dist_cancel *cancel = nullptr;    // from cancel::get(): cancels the group's collectives in this run

  [[nodiscard]] dist_collective_options get() const noexcept {
    dist_collective_options given = DIST_COLLECTIVE_OPTIONS_INIT;
    given.tag = tag;
    given.timeout_ns = timeout_ns;
    given.group = group.get();
    given.numerics = numerics;
    given.axis = axis;
    given.weights = weights;
    given.contributions = contributions;
    given.splits = splits;
    given.bytes_per_pack = bytes_per_pack;
    given.cancel = cancel;
    return given;
  }
};

namespace detail {

// Returns the number of tensors of a collective. `in` has one list per contribution.
inline std::size_t count(const const_tensors &in, const const_tensors &out, std::size_t contributions) {
  const std::size_t lists = contributions == 0 ? 1 : contributions;
  if (!in.given()) return out.size();
  const std::size_t n = in.size() / lists;
  const bool in_place = in.in() == out.in();
  if (n * lists != in.size() || (out.given() && !in_place && out.size() != n))
    throw error(DIST_INVALID_ARGUMENT, "the two lists of a collective do not fit: `in` has " +
                                           std::to_string(in.size()) + " tensors (" + std::to_string(lists) +
                                           " for each of `out`), `out` has " + std::to_string(out.size()));
  return n;
}

inline dist_collective_options with_operator(const reduction &op, const const_tensors &in,
                                             const collective_options &options) {
  dist_collective_options given = options.get();
  given.reduce_fn = op.fn();
  given.reduce_user_data = op.user_data();
  given.reduce_element_bytes = op.element_bytes();
  for (std::size_t i = 0; op.dtype() != 0 && i < in.size(); ++i) {
    if (in.in()[i].dtype != op.dtype())
      throw error(DIST_INVALID_ARGUMENT,
                  "the operator is for elements of another type than the tensors have");
  }
  return given;
}

}  // namespace detail

// ---- Work ------------------------------------------------------------------------------------------------

// Owns an asynchronous collective. The destructor completes it, so its tensors only have to outlive this object.
class work {
 public:
  explicit work(dist_work *handle) noexcept : handle_(handle) {}
  ~work() { dist_work_destroy(handle_); }
  work(work &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  work &operator=(work &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  work(const work &) = delete;
  work &operator=(const work &) = delete;

  // Returns whether it has completed; throws if it has failed.
  bool test() const {
    int32_t done = 0;
    check(dist_work_test(handle_, &done));
    return done != 0;
  }
  void wait(int64_t timeout_ns = DIST_NO_TIMEOUT) const { check(dist_work_wait(handle_, timeout_ns)); }
  // Cancels it and all collectives of its group in this run, on every member.
  void cancel() const { check(dist_work_cancel(handle_)); }
  [[nodiscard]] dist_work *get() const noexcept { return handle_; }

 protected:
  dist_work *handle_;
};

// A planned collective. Each round is one start(), or one ready() per tensor, and then one wait().
class plan : public work {
 public:
  using work::work;

  void start() const;
  void ready(std::size_t tensor) const;
};

// Waits until one of n works has completed and returns its index. Throws if that one has failed, and then its test()
// throws, too.
inline std::size_t wait_any(dist_work *const *works, std::size_t n, int64_t timeout_ns = DIST_NO_TIMEOUT) {
  std::size_t index = 0;
  check(dist_work_wait_any(works, n, timeout_ns, &index));
  return index;
}
inline std::size_t wait_any(const std::vector<work> &works, int64_t timeout_ns = DIST_NO_TIMEOUT) {
  std::vector<dist_work *> handles;
  handles.reserve(works.size());
  for (const work &each : works) handles.push_back(each.get());
  return wait_any(handles.data(), handles.size(), timeout_ns);
}

// ---- Collectives -----------------------------------------------------------------------------------------

// All collectives on lists of tensors. They block if Result is void, are asynchronous with work, and are planned with
// plan. The forms with one list of tensors are in place. Pass dist::nothing on members that have no tensors to send or
// receive.
template <class Result>
class collectives {
 public:
  explicit collectives(dist_replica *handle) noexcept : handle_(handle) {}

  Result all_reduce(const reduction &op, const tensors &data, const collective_options &options = {}) const {
    return all_reduce(op, data, data, options);
  }
  Result all_reduce(const reduction &op, const const_tensors &in, const tensors &out,
                    const collective_options &options = {}) const {
    return issue(detail::with_operator(op, in, options), in, out,
                 [&](std::size_t n, const auto *c, dist_work **work) {
                   return dist_all_reduce(handle_, op.op(), in.in(), out.out(), n, c, work);
                 });
  }
  Result reduce_to_root(const reduction &op, int32_t root, const tensors &data,
                        const collective_options &options = {}) const {
    return reduce_to_root(op, root, data, data, options);
  }
  Result reduce_to_root(const reduction &op, int32_t root, const const_tensors &in, const tensors &out,
                        const collective_options &options = {}) const {
    return issue(detail::with_operator(op, in, options), in, out,
                 [&](std::size_t n, const auto *c, dist_work **work) {
                   return dist_reduce_to_root(handle_, op.op(), root, in.in(), out.out(), n, c, work);
                 });
  }
  Result reduce_scatter(const reduction &op, const const_tensors &in, const tensors &out,
                        const collective_options &options = {}) const {
    return issue(detail::with_operator(op, in, options), in, out,
                 [&](std::size_t n, const auto *c, dist_work **work) {
                   return dist_reduce_scatter(handle_, op.op(), in.in(), out.out(), n, c, work);
                 });
  }
  Result all_gather(const const_tensors &in, const tensors &out,
                    const collective_options &options = {}) const {
    return issue(options.get(), in, out, [&](std::size_t n, const auto *c, dist_work **work) {
      return dist_all_gather(handle_, in.in(), out.out(), n, c, work);
    });
  }
  Result gather_to_root(int32_t root, const const_tensors &in, const tensors &out,
                        const collective_options &options = {}) const {
    return issue(options.get(), in, out, [&](std::size_t n, const auto *c, dist_work **work) {
      return dist_gather_to_root(handle_, root, in.in(), out.out(), n, c, work);
    });
  }
  Result broadcast(int32_t root, const tensors &data, const collective_options &options = {}) const {
    return broadcast(root, data, data, options);
  }
  Result broadcast(int32_t root, const const_tensors &in, const tensors &out,
                   const collective_options &options = {}) const {
    return issue(options.get(), in, out, [&](std::size_t n, const auto *c, dist_work **work) {
      return dist_broadcast(handle_, root, in.in(), out.out(), n, c, work);
    });
  }
  Result scatter_from_root(int32_t root, const const_tensors &in, const tensors &out,
                           const collective_options &options = {}) const {
    return issue(options.get(), in, out, [&](std::size_t n, const auto *c, dist_work **work) {
      return dist_scatter_from_root(handle_, root, in.in(), out.out(), n, c, work);
    });
  }
  Result all_to_all(const const_tensors &in, const tensors &out,
                    const collective_options &options = {}) const {
    return issue(options.get(), in, out, [&](std::size_t n, const auto *c, dist_work **work) {
      return dist_all_to_all(handle_, in.in(), out.out(), n, c, work);
    });
  }
  // kind: DIST_SCAN_INCLUSIVE or DIST_SCAN_EXCLUSIVE.
  Result scan(const reduction &op, dist_scan_kind kind, const tensors &data,
              const collective_options &options = {}) const {
    return scan(op, kind, data, data, options);
  }
  Result scan(const reduction &op, dist_scan_kind kind, const const_tensors &in, const tensors &out,
              const collective_options &options = {}) const {
    return issue(detail::with_operator(op, in, options), in, out,
                 [&](std::size_t n, const auto *c, dist_work **work) {
                   return dist_scan(handle_, op.op(), kind, in.in(), out.out(), n, c, work);
                 });
  }
  // The ranks that receive this member's tensors, and whose tensors it receives; -1 = none.
  Result permute(int32_t destination, int32_t source, const const_tensors &in, const tensors &out,
                 const collective_options &options = {}) const {
    return issue(options.get(), in, out, [&](std::size_t n, const auto *c, dist_work **work) {
      return dist_permute(handle_, destination, source, in.in(), out.out(), n, c, work);
    });
  }
  Result barrier(const collective_options &options = {}) const {
    return issue(options.get(), nothing, nothing, [&](std::size_t, const auto *c, dist_work **work) {
      return dist_barrier(handle_, c, work);
    });
  }

 protected:
  dist_replica *handle_;

 private:
  template <class Call>
  static Result issue(dist_collective_options given, const const_tensors &in, const tensors &out,
                      Call &&call) {
    const std::size_t n = detail::count(in, out, given.contributions);
    if constexpr (std::is_void_v<Result>) {
      check(call(n, &given, nullptr));
    } else {
      dist_work *made = nullptr;
      given.planned = std::is_same_v<Result, plan>;
      check(call(n, &given, &made));
      return Result(made);
    }
  }
};

// ---- Work ------------------------------------------------------------------------------------------------

inline void plan::start() const { check(dist_work_start(handle_)); }

inline void plan::ready(std::size_t tensor) const { check(dist_work_ready(handle_, tensor)); }

}  // namespace dist

#endif  // DIST_HPP_COLLECTIVE_HPP
