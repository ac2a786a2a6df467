// SPDX-License-Identifier: Apache-2.0
// Internal classes of the coordinator, for its own sources.
#pragma once

#include "core/ps/coordinator.hpp"

namespace dist {

// The pending result of a closure.
class ClosureResult final : public RemoteValue {
 public:
  ClosureResult(Memory& memory, Coordinator& coordinator, int64_t id, const char* function)
      : RemoteValue(memory, kNever),
        coordinator_(Ref<Coordinator>::share(&coordinator)),
        id_(id),
        function_(function, &memory) {}

  using RemoteValue::settle;
  void cancel(const char* reason) noexcept override { coordinator_->cancel(id_, reason); }

 private:
  ~ClosureResult() override = default;
  void describe(char* text, std::size_t size) const noexcept override;
  const char* kind() const noexcept override { return "closure"; }

  const Ref<Coordinator> coordinator_;
  const int64_t id_;
  const std::pmr::string function_;
};

// Receives the answer to a call: the link is in the coordinator's list of events until its thread has handled
// it.
class Coordinator::Link final : public RpcObserver, private ListLink<Coordinator> {
 public:
  enum class What { kHello, kWatch, kPrepared, kClosure };
  Link(Coordinator& owner, What kind, Server* of_server, Flight* of_flight) noexcept
      : what(kind), server(of_server), flight(of_flight), owner_(owner) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void answered() noexcept override;

  const What what;
  Server* const server;
  Flight* const flight;
  Ref<RemoteValue> call;  // the call that it waits for

 private:
  friend class Coordinator;
  friend class IntrusiveList<Link, Coordinator>;
  Coordinator& owner_;
};

// A task that the coordinator communicates with.
struct Coordinator::Server {
  enum class State { kAway, kPreparing, kUp };
  Server(Coordinator& owner, bool is_ps, int number) noexcept
      : ps(is_ps),
        index(number),
        in_flight(&owner.memory()),
        why(&owner.memory()),
        hello(owner, Link::What::kHello, this, nullptr),
        watch(owner, Link::What::kWatch, this, nullptr),
        prepared(owner, Link::What::kPrepared, this, nullptr) {}

  const bool ps;
  const int index;
  Ref<RpcClient> client;
  State state = State::kAway;
  int64_t retry_ns = 0;          // when to send hello again; 0: not
  int64_t ended_since_ns = 0;    // since when it answers that it has ended; 0: it does not
  std::size_t num_prepared = 0;  // number of per-worker values that it has
  std::size_t known = 0;         // number of directory entries that it has
  std::pmr::vector<int64_t> in_flight;
  std::pmr::string why;  // reason why it is away
  Link hello, watch, prepared;
};

// An unfinished closure.
struct Coordinator::Flight {
  Flight(Coordinator& owner, int64_t number, const char* name) noexcept
      : id(number), function(name, &owner.memory()), link(owner, Link::What::kClosure, nullptr, this) {}

  const int64_t id;
  const std::pmr::string function;
  ValueRef arguments;
  Ref<ClosureResult> result;
  Server* server = nullptr;  // the one that has it
  bool cancelled = false;    // its worker was asked to end it
  int64_t scheduled_ns = 0;
  int64_t sent_ns = 0;
  Link link;
};

struct Coordinator::PerWorker {
  PerWorker(Memory& memory, const char* of, const char* from) : name(of, &memory), function(from, &memory) {}
  const std::pmr::string name;
  const std::pmr::string function;
  ValueRef arguments;
  ErrorRecord error;    // the first error of a worker
  bool failed = false;  // it was never created, so its name is free
};

// A worker's answer about a closure or a per-worker value.
struct WorkerAnswer {
  dist_status status;
  int32_t lost_server;
  std::size_t known;
  const char* text;
  Value* value;
};

Status read_answer(const Value& message, WorkerAnswer* out) noexcept;

// Keeps an object that may call the host when released, until it can be released outside of the lock.
inline void put_aside(std::pmr::vector<Ref<Counted>>* trash, Counted* object) noexcept {
  if (object == nullptr) return;
  Ref<Counted> held = Ref<Counted>::adopt(object);
  try {
    trash->push_back(std::move(held));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace dist
