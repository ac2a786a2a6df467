// SPDX-License-Identifier: Apache-2.0
// Replica: the handle that a host callback receives. A logical device has one too, with a group of its own
// (device_team.hpp).
//
// Invariant: a handle is valid only on the thread that runs its function. Every call checks this with one
// load of `here_`, which holds that thread's id. The word lies in memory that the kernel wipes in a forked
// child, so the same load also rejects calls there.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/async/work.hpp"
#include "core/base/arena.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/fork.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/replicas.hpp"
#include "core/base/status.hpp"
#include "core/collective/collectives.hpp"
#include "core/comm/group.hpp"
#include "core/run/current.hpp"
#include "core/trace/recorder.hpp"
#include "core/value/value.hpp"

namespace dist {

class ReplicaPool;
class Version;
class Versions;

class Replica {
 public:
  struct Loops {
    int threads;         // this replica's share of the CPUs
    const CpuSet* cpus;  // NULL: any
    Bounds bounds;
    Executor executor;
  };

  // Identifies a replica.
  struct Place {
    int rank;  // index among the members of its pool
    // index of its components of values and its copies of variables; a device uses its replica's
    LocalReplica local;
    MemberName name;
    bool alone = false;  // an instance, which has no peers
  };

  // `loops`: how many threads the replica's own loops use, and on which CPUs. `here`: the word with the id of
  // its thread, which forked children find wiped; may be NULL. `communicator`: the communicator with other workers;
  // may be NULL.
  Replica(Memory& memory, ReplicaPool& pool, Group& group, Recorder& recorder, const Place& place,
          const Loops& loops, std::size_t cache_bytes, WipedWords::Word* here,
          WorkerCommunicator* communicator) noexcept
      : here_(here != nullptr ? here : &nowhere_),
        pool_(pool),
        as_member_{group, place.rank, nullptr, 0, cache_bytes, &recorder, &checked_, communicator},
        arena_(memory, loops.threads, loops.cpus, loops.bounds, loops.executor),
        place_(place) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  int rank() const noexcept { return place_.rank; }
  LocalReplica local() const noexcept { return place_.local; }
  const MemberName& name() const noexcept { return place_.name; }
  bool is_device() const noexcept { return place_.name.logical_device >= 0; }
  ReplicaCount replicas() const noexcept;
  ReplicaPool& pool() const noexcept { return pool_; }
  Group& group() const noexcept { return as_member_.group; }
  Recorder& recorder() const noexcept { return *as_member_.recorder; }
  Arena& arena() noexcept { return arena_; }

  // Why the handle cannot be used for now even on its own thread.
  enum class Away : uint8_t { kNo, kMerging, kOnDevices };

  // Returns OK on the thread that runs its function, unless that thread is in a merge function or a device
  // run.
  Status check(const char* call) const noexcept { return is_here() ? kOk : not_here(call); }
  bool is_here() const noexcept {
    // relaxed: no other thread ever writes this thread's id.
    return here_->load(std::memory_order_relaxed) == this_thread();
  }
  // Like check(), for calls that need no peer and are therefore allowed in requests.
  Status check_own(const char* call) const noexcept {
    return is_here() || is_instance_here() ? kOk : not_here(call);
  }
  // Whether the function may continue; see dist_replica_check().
  Status check_going_on() noexcept;
  // The version of a series that this run sees.
  Status see(Versions& series, Version** out) const noexcept;
  bool is_instance() const noexcept { return place_.alone; }
  // Host data that belongs to an instance.
  void* host_state() const noexcept { return host_state_; }
  void set_host_state(void* state) noexcept { host_state_ = state; }
  // The function is stuck and another thread has taken over the replica. Calls with this handle fail from now
  // on.
  void give_up() noexcept { given_up_.store(true, std::memory_order_relaxed); }
  // Then, on the abandoned thread: records into `recorder`, because the replica's own now belongs to its
  // successor.
  void record_in(Recorder& recorder) noexcept { as_member_.recorder = &recorder; }
  // Like check(), and also rejects logical devices, which have no variable copies and cannot speak for the
  // replica.
  Status check_whole(const char* call) const noexcept {
    DIST_TRY(check(call));
    return is_device() ? is_a_part(call) : kOk;
  }
  // This replica as a member of the group of all replicas.
  Member member(const char* tag, int64_t timeout_ns) const noexcept {
    Member named = as_member_;
    named.tag = tag;
    named.timeout_ns = timeout_ns;
    return named;
  }
  const Member& member() const noexcept { return as_member_; }
  // This replica as a member of a subgroup. `communicator`: the communicator with the members of other workers; may
  // be NULL.
  Member member(Group& group, int rank, const char* tag, int64_t timeout_ns,
                WorkerCommunicator* communicator) noexcept {
    return {group,     rank,        tag, timeout_ns, as_member_.cache_bytes, as_member_.recorder,
            &checked_, communicator};
  }

  // Calls body(first, last) for subranges of [begin, end) with at least `grain` indices each, on the loop
  // threads of this replica. Errors name dist_replica_parallel_for().
  template <class Body>
  Status parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
    DIST_TRY(check_range(begin, end, grain));
    DIST_TRY(check_own("dist_replica_parallel_for"));
    return arena_.parallel_for(begin, end, grain, body);
  }

  // The collectives in progress.
  WorkList& works() noexcept { return works_; }

  // The function starts or ends on the calling thread.
  void begin() noexcept {
    stay(this_thread());
    recorder().begin_run();
  }
  void end() noexcept { stay(kNobody); }
  // The same for an instance, whose thread no word shows. `now` is the recorder's time.
  void begin_alone(uint64_t now) noexcept {
    // release: as in stay().
    thread_.store(this_thread(), std::memory_order_release);
    recorder().begin_run(now);
  }
  void end_alone() noexcept { thread_.store(kNobody, std::memory_order_release); }
  // Whether the calling thread runs the function, which has not been moved to another one.
  bool is_alone_here() const noexcept { return thread_.load(std::memory_order_acquire) == this_thread(); }
  void set_away(Away away) noexcept;

  // Detach the function from its thread, and attach it to the calling one (attachment.cpp).
  Status detach() noexcept;
  Status attach() noexcept;
  bool attached() const noexcept { return attached_; }
  // A host thread leaves the replica: restores the context that the thread was in before.
  void leave_thread() noexcept;
  // Called on the thread that started the function: waits until no other thread is attached.
  void come_back() noexcept;

 private:
  static constexpr std::uintptr_t kNobody = 0;
  static constexpr std::uintptr_t kDetached = 1;

  void stay(std::uintptr_t thread) noexcept;
  void show(std::uintptr_t thread) noexcept;
  static Status check_range(int64_t begin, int64_t end, int64_t grain) noexcept;
  bool is_instance_here() const noexcept;
  Status not_here(const char* call) const noexcept;
  Status is_a_part(const char* call) const noexcept;
  Status of_another(const char* call) const noexcept;
  Status devices_run(const char* call) const noexcept;
  Status no_peers(const char* call) const noexcept;
  Status replaced(const char* call) const noexcept;
  Status check_attach() const noexcept;

  // The id of the thread that runs the function while the handle can be used, otherwise kNobody. The only
  // state that the fast path reads.
  WipedWords::Word* const here_;
  ReplicaPool& pool_;
  Member as_member_;  // of the group of all replicas
  Arena arena_;
  WorkList works_;
  CheckedCalls checked_;
  const Place place_;
  Away away_ = Away::kNo;
  void* host_state_ = nullptr;
  std::atomic<bool> given_up_{false};
  bool attached_ = false;                        // by attach()
  std::atomic<std::uintptr_t> thread_{kNobody};  // the thread that runs the function, or kDetached
  // always kNobody; replaces `here` if there is no such word
  std::atomic<std::uintptr_t> nowhere_{kNobody};
  Word detached_;     // counts the detach() calls
  Current function_;  // the context of the function, saved while it is detached
  Current outside_;   // the attached thread's context before it attached
};

}  // namespace dist
