// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/replica.hpp: run.h, collective.h and mesh.h for C++: the operations of a replica, or of one of its logical
// devices, inside its function. All except short methods are defined in the header of their subject.
//
//     strategy.run([](dist::replica replica) {
//       std::vector<float> gradient = gradient_of(replica.id());
//       dist::work sum = replica.begin().all_reduce(dist::reduce_op::sum, gradient);  // asynchronous
//       prepare_next_batch();
//       sum.wait();
//     });
#ifndef DIST_HPP_REPLICA_HPP
#define DIST_HPP_REPLICA_HPP

#include <atomic>

#include "collective.hpp"
#include "value.hpp"

namespace dist {

class apply;
class halo;
template <class Content>
class versions;
template <class Content>
struct seen_version;

// The position of a logical device along an axis of its replica's devices, and the size of the axis.
struct axis_place {
  int32_t index;
  int32_t size;
};

// One replica, inside its function. The handle can be copied freely, but must not outlive the function.
class replica : public collectives<void> {
 public:
  explicit replica(dist_replica *handle) noexcept : collectives(handle) {}

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  int32_t id() const noexcept { return dist_replica_id(handle_); }
  int32_t num_replicas() const noexcept { return dist_replica_num_replicas(handle_); }
  strategy_ref strategy() const noexcept { return strategy_ref(dist_replica_strategy(handle_)); }
  [[nodiscard]] dist_replica *get() const noexcept { return handle_; }

  // The same collectives: begin().all_reduce(...) is asynchronous, plan().all_reduce(...) is planned.
  collectives<work> begin() const noexcept { return collectives<work>(handle_); }
  collectives<dist::plan> plan() const noexcept { return collectives<dist::plan>(handle_); }

  // Lets the function continue on another thread: this thread detaches, the other one attaches; and back again.
  void detach() const;
  void attach() const;

  // ---- Requests (serve.hpp)
  // The state that a C function created for the instance; NULL if there is none. With dist::instances, use
  // instance_state<type>().
  void *instance_state() const noexcept;
  // Throws if the function that this replica runs should stop.
  void check() const;
  // The version of a series that this run sees, the same until it ends.
  template <class Content>
  seen_version<Content> version(const versions<Content> &of) const;

  // Calls body(begin, end) on this replica's share of the cores. An exception ends the loop and is rethrown here.
  template <class Body>
  void parallel_for(int64_t begin, int64_t end, int64_t grain, Body &&body) const;

  // ---- Nests: the result has the value's structure
  value all_reduce_value(reduce_op op, const value &given, const collective_options &options = {}) const {
    const auto c = options.get();
    return value::made([&](dist_value **out) {
      return dist_all_reduce_value(handle_, static_cast<dist_reduce_op>(op), given.get(), &c, out);
    });
  }
  value all_gather_value(const value &given, const collective_options &options = {}) const {
    const auto c = options.get();
    return value::made(
        [&](dist_value **out) { return dist_all_gather_value(handle_, given.get(), &c, out); });
  }

  // Reduces gradients and updates parameters with them; returns the norm before clipping, if `how` clips
  // (collective.hpp).
  double reduce_apply(const reduction &op, const tensors &gradients, const tensors &parameters,
                      const apply &how, const collective_options &options = {}) const;
  // Runs fn(strategy_ref, args) or fn(strategy_ref, args, kwargs) once for all replicas; it returns a value or nothing
  // (run.hpp).
  template <class Fn>
  value merge_call(Fn &&fn, const value &args = {}, const value &kwargs = {},
                   const collective_options &options = {}) const;

  // ---- Variables (variable.hpp)
  // The strategy's variable with this name, created by the first run that asks for it.
  variable_ref variable(const char *name, const const_tensor &initial) const;
  variable_ref variable(const char *name, const const_tensor &initial,
                        const dist_variable_options &options) const;
  value read(const variable_ref &variable) const;
  void assign(const variable_ref &variable, const const_tensor &given, dist_assign_op how = DIST_ASSIGN,
              const collective_options &options = {}) const;
  void assign_value(const variable_ref &variable, const value &given, dist_assign_op how = DIST_ASSIGN,
                    const collective_options &options = {}) const;
  void scatter(const variable_ref &variable, dist_scatter_op how, const value &slices,
               const collective_options &options = {}) const;
  // Like strategy_ref::update(), inside replicas (cross_replica.hpp).
  template <class Fn>
  value update(const variable_ref &variable, Fn &&fn, const value &args, const value &kwargs = {},
               bool ungrouped = false) const;

  // ---- Logical devices (mesh.hpp)
  value split_to_logical_devices(const value &given, std::initializer_list<int64_t> partition_dimensions,
                                 bool uneven = false) const;
  value assign_to_logical_device(const value &given, int32_t logical_device) const;
  value replicate_to_logical_devices(const value &given) const;
  // Calls body(device, args) or body(device, args, kwargs) once on every logical device, at the same time.
  template <class Body>
  value run_on_devices(Body &&body, const value &args, const value &kwargs,
                       const dist_devices_options &options) const;
  template <class Body>
  value run_on_devices(Body &&body, const value &args = {}, const value &kwargs = {}) const;
  // The replica of a logical device; -1 if this is a replica.
  int32_t device_replica() const noexcept;
  std::array<int32_t, 4> device_coordinates() const;
  axis_place device_axis(const char *name) const;
  group_ref device_axis_group(const char *name) const;
  void halo_exchange(const const_tensor &in, const halo &around, const tensor &out,
                     const collective_options &options = {}) const;
  void reshard(const partition &from, const partition &to, const const_tensors &in, const tensors &out,
               const collective_options &options = {}) const;
};

template <class Body>
void replica::parallel_for(int64_t begin, int64_t end, int64_t grain, Body &&body) const {
  using plain = std::remove_reference_t<Body>;
  if constexpr (std::is_nothrow_invocable_v<plain &, int64_t, int64_t>) {
    dist::check(dist_replica_parallel_for(
        handle_, begin, end, grain,
        [](int64_t first, int64_t last, void *user_data) { (*static_cast<plain *>(user_data))(first, last); },
        detail::address_of(body)));
  } else {
    struct loop {
      plain *body;
      std::atomic<bool> over{false};
      std::exception_ptr thrown{};  // by the part that set `over`
    } all{std::addressof(body)};
    dist::check(dist_replica_parallel_for(
        handle_, begin, end, grain,
        [](int64_t first, int64_t last, void *user_data) {
          auto &self = *static_cast<loop *>(user_data);
          if (self.over.load(std::memory_order_relaxed)) return;
          try {
            (*self.body)(first, last);
#if defined(__GLIBCXX__)
          } catch (const abi::__forced_unwind &) {
            throw;
#endif
          } catch (...) {
            if (!self.over.exchange(true)) self.thrown = std::current_exception();
          }
        },
        &all));
    if (all.thrown) std::rethrow_exception(all.thrown);
  }
}

inline void replica::detach() const { dist::check(dist_replica_detach(handle_)); }

inline void replica::attach() const { dist::check(dist_replica_attach(handle_)); }

inline int32_t replica::device_replica() const noexcept { return dist_device_replica(handle_); }

}  // namespace dist

#endif  // DIST_HPP_REPLICA_HPP
