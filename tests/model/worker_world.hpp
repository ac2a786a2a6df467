// SPDX-License-Identifier: Apache-2.0
// Two workers with one member each. The explorer chooses the order of message deliveries and the moment at
// which a worker dies or is cancelled. Defines the workers' programs and the final checks. The granularity is
// the message: the code between two polls of the transport is one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <new>
#include <string>
#include <vector>

#include "core/collective/worker_collective.hpp"
#include "tests/model/fiber.hpp"
#include "tests/model/machine.hpp"

namespace dist::model {

inline constexpr int kWorkers = 2;
inline constexpr std::size_t kMostElements =
    24;  // three units, in two pieces if a piece takes a unit of each lane

enum class Act { kSum, kMaximum, kBroadcast, kSwap, kFail };

struct Plan {
  std::vector<Act> programs[kWorkers];
  std::size_t elements = 1;
  std::size_t most_bytes = std::size_t{1} << 20;  // 1 = by owners, one unit at a time
  bool dies = false;                              // either worker, at any moment
  bool cancels = false;                           // either worker's group, at any moment
  dist_status report = DIST_OK;                   // expected without a disturbance, with its culprit
  int culprit = -1;
};

inline uint64_t hash_of(const MessageKey& key) {
  return mixed(mixed(key.number, static_cast<uint64_t>(key.series) << 32 | key.part), key.run);
}

class World;

// The transport of one worker. A message is copied when it is sent. It is in flight until the explorer
// delivers it, and then stored until it is received.
class Wire final : public Transport {
 public:
  Wire(World& world, int me) : world_(world), me_(me) {}
  int num_workers() const noexcept override { return kWorkers; }
  int me() const noexcept override { return me_; }
  std::size_t credit() const noexcept override { return std::size_t{1} << 20; }
  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override;
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override;
  void cancel(Transfer& transfer) noexcept override;
  void forget(uint32_t, uint32_t) noexcept override {}
  void progress() noexcept override;
  bool lost(int worker) const noexcept override;
  int num_connections() const noexcept override { return 1; }
  void listen(TransportListener* listener) noexcept override { listener_ = listener; }
  void close() noexcept override {}

 private:
  friend class World;
  World& world_;
  const int me_;
  TransportListener* listener_ = nullptr;
};

class World {
 public:
  explicit World(const Plan& plan) : plan_(plan), place_(new std::byte[kPlace]) {
    for (int w = 0; w < kWorkers; ++w) wires_.emplace_back(*this, w);
  }
  ~World() { delete[] place_; }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  struct Action {
    enum Kind { kResume, kDeliver, kDie, kCancel } kind;
    std::size_t which;
  };
  struct Outcome {
    dist_status code;
    ErrorRecord record;
  };

  // Starts over. Objects of the previous run are not destroyed, only their memory is reused.
  void reset() {
    used_ = 0;
    flying_.clear();
    there_.clear();
    receives_.clear();
    struck_ = false;
    dist_allocator allocator{};
    allocator.alloc = [](size_t bytes, size_t align, void* self) {
      return static_cast<World*>(self)->take(bytes, align);
    };
    allocator.free = [](void*, size_t, size_t, void*) {};
    allocator.user_data = this;
    Memory& memory = *Memory::create(allocator);
    // Initialize these of all workers first, because creating one asks about the others.
    for (Worker& worker : workers_) worker.news = worker.finished = worker.dead = false;
    const int members[kWorkers] = {1, 1};
    WaitPolicy policy;
    policy.spin_ns = 0;
    for (int w = 0; w < kWorkers; ++w) {
      Worker& worker = workers_[w];
      worker.world = this;
      worker.me = w;
      worker.started = worker.idle = false;
      worker.seen = worker.coming = 0;
      worker.outcomes.clear();
      GroupMembers in_group;
      in_group.naming.first = GlobalReplica{w};
      worker.group = new (take(sizeof(Group), alignof(Group))) Group(memory, 1, policy, {}, 0, in_group);
      worker.communicator = new (take(sizeof(WorkerCommunicator), alignof(WorkerCommunicator)))
          WorkerCommunicator(memory, wires_[static_cast<std::size_t>(w)], *worker.group, {},
                             {.members = members, .most_bytes = plan_.most_bytes});
      worker.group->begin_run({});
      worker.communicator->begin_run();
      worker.fiber.restart(
          [](void* self) { static_cast<Worker*>(self)->world->live(*static_cast<Worker*>(self)); }, &worker);
    }
  }

  std::vector<Action> actions() const {
    std::vector<Action> all;
    for (std::size_t w = 0; w < kWorkers; ++w) {
      if (gone(w)) continue;
      if (workers_[w].news || !workers_[w].started) all.push_back({Action::kResume, w});
    }
    for (std::size_t i = 0; i < flying_.size(); ++i) all.push_back({Action::kDeliver, i});
    for (std::size_t w = 0; w < kWorkers; ++w) {
      if (struck_ || gone(w)) continue;
      if (plan_.dies) all.push_back({Action::kDie, w});
      if (plan_.cancels && workers_[w].started) all.push_back({Action::kCancel, w});
    }
    return all;
  }
  void act(const Action& action) {
    switch (action.kind) {
      case Action::kResume: return resume(workers_[action.which]);
      case Action::kDeliver: return deliver(action.which);
      case Action::kDie: return die(static_cast<int>(action.which));
      case Action::kCancel:
        struck_ = true;
        workers_[action.which].group->cancel("enough");
        tell(workers_[action.which], 77);
    }
  }
  // Returns equal values only for states that continue equally: a worker's behaviour depends on the events
  // that it has seen.
  uint64_t state() const {
    uint64_t hash = struck_ ? 1 : 0;
    for (const Worker& worker : workers_) {
      hash = mixed(hash, worker.seen);
      hash = mixed(hash, worker.coming);
      hash = mixed(hash, (worker.dead ? 1u : 0u) | (worker.finished ? 2u : 0u) | (worker.started ? 4u : 0u));
    }
    uint64_t messages = 0;
    for (const Message& each : flying_)
      messages += mixed(hash_of(each.key), static_cast<uint64_t>(each.from));
    for (const Message& each : there_)
      messages += mixed(hash_of(each.key), static_cast<uint64_t>(each.from) + 8);
    return mixed(hash, messages);
  }
  // Returns "", or what is wrong at the end.
  std::string fault() const {
    int victim = -1;
    for (int w = 0; w < kWorkers; ++w) {
      if (workers_[w].dead) victim = w;
    }
    const ErrorRecord* report = nullptr;
    for (int w = 0; w < kWorkers; ++w) {
      const Worker& worker = workers_[w];
      if (worker.dead) continue;
      if (!worker.finished) return "worker " + std::to_string(w) + " waits for ever";
      if (!worker.right) return "worker " + std::to_string(w) + " has wrong data";
      if (worker.outcomes.size() < plan_.programs[w].size() && worker.outcomes.back().code == DIST_OK)
        return "worker " + std::to_string(w) + " stopped without a reason";
      const Outcome* const failed = !worker.outcomes.empty() && worker.outcomes.back().code != DIST_OK
                                        ? &worker.outcomes.back()
                                        : nullptr;
      const bool fails_itself = !plan_.programs[w].empty() && plan_.programs[w].back() == Act::kFail;
      if (failed == nullptr) {
        if (plan_.report != DIST_OK && !struck_ && w != plan_.culprit) return "nobody said what was wrong";
        continue;
      }
      if (failed->record.message[0] == '\0') return "a report without words";
      if (plan_.report == DIST_OK && !struck_)
        return std::string("a failure for no reason: ") + failed->record.message;
      if (victim >= 0 && plan_.report == DIST_OK &&
          (failed->code != DIST_UNAVAILABLE || failed->record.culprit.worker != victim))
        return std::string("another is blamed than who died: ") + failed->record.message;
      if (struck_ || (fails_itself && failed->code != plan_.report)) continue;
      if (failed->code != plan_.report || failed->record.culprit.worker != plan_.culprit)
        return std::string("another report than expected: ") + failed->record.message;
      if (report != nullptr && std::strcmp(report->message, failed->record.message) != 0)
        return std::string("two reports: ") + report->message + " / " + failed->record.message;
      report = &failed->record;
    }
    return "";
  }

 private:
  friend class Wire;
  static constexpr std::size_t kPlace = std::size_t{1} << 20;
  struct Message {
    int from;
    MessageKey key;
    int to;
    std::vector<std::byte> bytes;
  };
  struct Worker {
    World* world;
    int me;
    Fiber fiber;
    Group* group;
    WorkerCommunicator* communicator;
    bool started, news, idle, finished, dead;
    bool right;
    uint64_t seen;    // all events up to its latest step
    uint64_t coming;  // events since then
    std::vector<Outcome> outcomes;
  };

  void* take(std::size_t bytes, std::size_t align) {
    auto at = reinterpret_cast<uintptr_t>(place_) + used_;
    at = (at + align - 1) / align * align;
    used_ = at - reinterpret_cast<uintptr_t>(place_) + bytes;
    if (used_ > kPlace) std::abort();
    return reinterpret_cast<void*>(at);
  }
  bool gone(std::size_t w) const { return workers_[w].finished || workers_[w].dead; }
  void tell(Worker& worker, uint64_t what) {
    worker.coming += mixed(what, 5);
    worker.news = true;
    if (wires_[static_cast<std::size_t>(worker.me)].listener_ != nullptr)
      wires_[static_cast<std::size_t>(worker.me)].listener_->happened();
  }
  void finish(Worker& worker, Transfer& transfer, Transfer::End end) {
    const uint64_t what = mixed(hash_of(transfer.message().key), transfer.sends ? 100 : 200);
    transfer.finish(end);
    tell(worker, mixed(what, static_cast<uint64_t>(end)));
  }
  void resume(Worker& worker) {
    worker.started = true;
    worker.seen = mixed(worker.seen, worker.coming);
    worker.coming = 0;
    main_.switch_to(worker.fiber);
  }
  // Continues in the explorer, which switches back when there is something new.
  void pause(Worker& worker) { worker.fiber.switch_to(main_); }

  void deliver(std::size_t i) {
    Message message = std::move(flying_[i]);
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(i));
    for (std::size_t r = 0; r < receives_.size(); ++r) {
      Transfer& receive = *receives_[r];
      if (receive.owner != message.to || receive.message().worker != message.from ||
          !(receive.message().key == message.key))
        continue;
      receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(r));
      return complete(receive, message);
    }
    there_.push_back(std::move(message));
  }
  void complete(Transfer& receive, const Message& message) {
    const bool fits = receive.message().bytes == message.bytes.size();
    if (fits) std::memcpy(receive.message().data, message.bytes.data(), message.bytes.size());
    finish(workers_[receive.owner], receive, fits ? Transfer::End::kDone : Transfer::End::kMisfit);
  }
  void die(int victim) {
    struck_ = true;
    workers_[victim].dead = true;
    Worker& other = workers_[1 - victim];
    // Messages of the victim that have not arrived are lost, and messages to it are never received.
    flying_.clear();
    std::vector<Transfer*> receives;
    receives.swap(receives_);
    for (Transfer* each : receives) {
      if (each->owner != victim) finish(other, *each, Transfer::End::kLost);
    }
    tell(other, 99);
  }

  // The function that a worker's fiber runs.
  void live(Worker& worker) {
    worker.right = true;
    Status status;
    const auto& program = plan_.programs[worker.me];
    for (std::size_t i = 0; i < program.size() && status.ok(); ++i) {
      status = play(worker, program[i], i);
      worker.outcomes.push_back({status.code(), status.ok() ? ErrorRecord{} : last_error()});
    }
    ErrorRecord why = status.ok() ? ErrorRecord{} : worker.outcomes.back().record;
    if (why.culprit.replica == kNoReplica && !why.of_all) why.culprit = worker.group->name(0);
    worker.group->leave(0, status, why);
    worker.communicator->leave(status, why);
    worker.finished = true;
    for (;;) pause(worker);
  }
  Status play(Worker& worker, Act act, std::size_t step) {
    if (act == Act::kFail) return invalid_argument("no more data");
    double in[2 * kMostElements];
    double out[2 * kMostElements] = {};
    const auto swaps = act == Act::kSwap ? 2u : 1u;
    const int64_t shape[] = {static_cast<int64_t>(swaps * plan_.elements)};
    for (std::size_t i = 0; i < swaps * plan_.elements; ++i)
      in[i] = static_cast<double>(worker.me + 1) * 100 + static_cast<double>(i + step);
    const dist_tensor from{in, DIST_F64, 1, shape, nullptr};
    const dist_tensor to{out, DIST_F64, 1, shape, nullptr};
    Call call;
    call.in = &from;
    call.out = &to;
    call.n = 1;
    if (act == Act::kBroadcast) {
      call.collective = Collective::kBroadcast;
      call.root = 1;
    } else if (act == Act::kSwap) {
      call.collective = Collective::kAllToAll;
    } else {
      call.collective = Collective::kAllReduce;
      call.op = act == Act::kSum ? DIST_REDUCE_SUM : DIST_REDUCE_MAX;
    }
    DIST_TRY(worker_collective({*worker.group, 0, nullptr, 0, 1 << 20}, *worker.communicator, call));
    for (std::size_t i = 0; i < swaps * plan_.elements; ++i) {
      const auto at = static_cast<double>(i + step);
      const std::size_t half = i % plan_.elements + static_cast<std::size_t>(worker.me) * plan_.elements;
      const std::size_t row = i / plan_.elements;
      const double expected = act == Act::kSum         ? 300 + 2 * at
                              : act == Act::kMaximum   ? 200 + at
                              : act == Act::kBroadcast ? 200 + at
                                                       : static_cast<double>((row + 1) * 100 + half + step);
      worker.right = worker.right && out[i] == expected;
    }
    return kOk;
  }

  const Plan& plan_;
  std::byte* const place_;
  std::size_t used_ = 0;
  Fiber main_;
  Worker workers_[kWorkers] = {};
  std::deque<Wire> wires_;
  std::vector<Message> flying_;
  std::vector<Message> there_;
  std::vector<Transfer*> receives_;
  bool struck_ = false;  // a worker has died or was cancelled
};

inline void Wire::send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
                       Transfer& transfer) noexcept {
  transfer.begin({to, key, const_cast<std::byte*>(data), bytes});
  transfer.owner = me_;
  transfer.sends = true;
  world_.workers_[me_].idle = false;
  if (world_.workers_[to].dead) return world_.finish(world_.workers_[me_], transfer, Transfer::End::kLost);
  world_.flying_.push_back({me_, key, to, {data, data + bytes}});
  transfer.finish(Transfer::End::kDone);
}

inline void Wire::receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
                          Transfer& transfer) noexcept {
  transfer.begin({from, key, data, bytes});
  transfer.owner = me_;
  transfer.sends = false;
  world_.workers_[me_].idle = false;
  for (std::size_t i = 0; i < world_.there_.size(); ++i) {
    if (world_.there_[i].from != from || !(world_.there_[i].key == key)) continue;
    const World::Message message = std::move(world_.there_[i]);
    world_.there_.erase(world_.there_.begin() + static_cast<std::ptrdiff_t>(i));
    return world_.complete(transfer, message);
  }
  if (world_.workers_[from].dead) return world_.finish(world_.workers_[me_], transfer, Transfer::End::kLost);
  world_.receives_.push_back(&transfer);
}

inline void Wire::cancel(Transfer& transfer) noexcept {
  if (transfer.over()) return;
  std::erase(world_.receives_, &transfer);
  world_.finish(world_.workers_[me_], transfer, Transfer::End::kCancelled);
}

// The first call without news returns, because the caller may not have looked at its transfers yet. The
// second waits for news.
inline void Wire::progress() noexcept {
  World::Worker& worker = world_.workers_[me_];
  if (!worker.news && worker.idle) world_.pause(worker);
  worker.idle = !worker.news;
  worker.news = false;
  // No thread sleeps here, so every call counts as an event.
  if (listener_ != nullptr) listener_->happened();
}

inline bool Wire::lost(int worker) const noexcept { return world_.workers_[worker].dead; }

}  // namespace dist::model
