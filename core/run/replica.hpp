// SPDX-License-Identifier: Apache-2.0
// Replica: the only object that the host's function sees. A logical device is one too, of a group of its own:
// part of a replica (device_team.hpp).
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
    int threads;         // its share of the cores
    const CpuSet* cpus;  // NULL: any
    Bounds bounds;
    Executor executor;
  };

  // Which one it is.
  struct Place {
    int rank;            // among the members of its pool
    LocalReplica local;  // whose components of values and copies of variables it sees: a device its replica's
    MemberName name;
    bool alone = false;  // its peers do something else: it is an instance
  };

  // `loops`: where and on how many threads its own loops run. `here`: a word for it that forked children find
  // zero, or NULL. `meeting`: with the other workers, or NULL.
  Replica(Memory& memory, ReplicaPool& pool, Group& group, Recorder& recorder, const Place& place,
          const Loops& loops, std::size_t cache_bytes, WipedWords::Word* here,
          WorkerMeeting* meeting) noexcept
      : here_(here != nullptr ? here : &nowhere_),
        pool_(pool),
        as_member_{group, place.rank, nullptr, 0, cache_bytes, &recorder, &checked_, meeting},
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

  // Where the thread of its function is instead, so that its handle is not to be used.
  enum class Away : uint8_t { kNo, kMerging, kOnDevices };

  // OK on the thread that its function runs on, while neither a merge function nor one on its devices does.
  Status check(const char* call) const noexcept { return is_here() ? kOk : not_here(call); }
  bool is_here() const noexcept {
    // relaxed: what another thread writes is never this one's number.
    return here_->load(std::memory_order_relaxed) == this_thread();
  }
  // The same for what needs no peer, so that instances may do it too.
  Status check_own(const char* call) const noexcept {
    return is_here() || is_instance_here() ? kOk : not_here(call);
  }
  // Whether its function may go on: dist_replica_check().
  Status check_going_on() noexcept;
  // The version of a series that its run sees.
  Status see(Versions& series, Version** out) const noexcept;
  bool is_instance() const noexcept { return place_.alone; }
  // What the host keeps with an instance.
  void* host_state() const noexcept { return host_state_; }
  void set_host_state(void* state) noexcept { host_state_ = state; }
  // Its function is stuck, and another instance has taken its place: its handle is refused from now on.
  void give_up() noexcept { given_up_.store(true, std::memory_order_relaxed); }
  // On its thread, then: the records are the other one's.
  void record_in(Recorder& recorder) noexcept { as_member_.recorder = &recorder; }
  // And it is no logical device, which has no copies of its own, nor says what is common to all replicas.
  Status check_whole(const char* call) const noexcept {
    DIST_TRY(check(call));
    return is_device() ? is_a_part(call) : kOk;
  }
  // As one of all replicas.
  Member member(const char* tag, int64_t timeout_ns) const noexcept {
    Member named = as_member_;
    named.tag = tag;
    named.timeout_ns = timeout_ns;
    return named;
  }
  const Member& member() const noexcept { return as_member_; }
  // As a member of a group of some replicas. `meeting`: with members of other workers, or NULL.
  Member member(Group& group, int rank, const char* tag, int64_t timeout_ns,
                WorkerMeeting* meeting) noexcept {
    return {group, rank, tag, timeout_ns, as_member_.cache_bytes, as_member_.recorder, &checked_, meeting};
  }

  // Calls body(first, last) for parts of [begin, end) of `grain` indices or more, on the threads of its
  // loops: dist_parallel_for(), which names it in messages.
  template <class Body>
  Status parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
    DIST_TRY(check_range(begin, end, grain));
    DIST_TRY(check_own("dist_parallel_for"));
    return arena_.parallel_for(begin, end, grain, body);
  }

  // What it has under way.
  WorkList& works() noexcept { return works_; }

  // Its function begins, and ends, on the calling thread.
  void begin() noexcept {
    stay(this_thread());
    recorder().begin_run();
  }
  void end() noexcept { stay(kNobody); }
  void set_away(Away away) noexcept;

  // Lets go of the thread that its function runs on, and goes on with the calling one (attachment.cpp).
  Status detach() noexcept;
  Status attach() noexcept;
  bool attached() const noexcept { return attached_; }
  // A host's thread is no longer this replica: it is in what it was in before.
  void leave_thread() noexcept;
  // Where the function was begun: waits until no other thread is attached.
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

  // The thread that its function runs on, where its handle may be used; else kNobody. All that the steady
  // path asks for.
  WipedWords::Word* const here_;
  ReplicaPool& pool_;
  Member as_member_;  // of all replicas
  Arena arena_;
  WorkList works_;
  CheckedCalls checked_;
  const Place place_;
  Away away_ = Away::kNo;
  void* host_state_ = nullptr;
  std::atomic<bool> given_up_{false};
  bool attached_ = false;                         // by attach()
  std::atomic<std::uintptr_t> thread_{kNobody};   // that its function runs on, or kDetached
  std::atomic<std::uintptr_t> nowhere_{kNobody};  // stays so: instead of a word that the system wipes
  Word detached_;                                 // how often
  Current function_;                              // what the thread is in there, while it is detached
  Current outside_;                               // what the attached thread was in before
};

}  // namespace dist
