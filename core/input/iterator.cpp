// SPDX-License-Identifier: Apache-2.0
#include "core/input/iterator.hpp"

#include <oneapi/tbb/tbb_allocator.h>

#include <atomic>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "core/base/host_call.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/os/thread.hpp"
#include "core/input/ahead_arena.hpp"
#include "core/input/deal.hpp"

namespace dist {

// Connects an iterator with its task in oneTBB's queue. There is at most one task. It may start after the
// iterator, and even the host's allocator, have been destroyed. So the ticket is not allocated from Memory,
// and it exists as long as the task.
struct Iterator::Ticket {
  enum State { kNotQueued, kValid, kTakenBack };

  explicit Ticket(Iterator& owner) noexcept : iterator(&owner) {}
  bool change(State from, State to) noexcept { return state.compare_exchange_strong(from, to); }

  Iterator* const iterator;  // exists while the ticket is valid, and until its task has finished
  std::atomic<State> state{kNotQueued};
};

Status check_position(const Position& position) noexcept {
  constexpr int64_t kMost = int64_t{1} << 62;
  const struct {
    const char* name;
    int64_t number;
  } fields[] = {{"pass", position.pass},
                {"elements", position.elements},
                {"examples", position.examples},
                {"batches", position.batches}};
  for (const auto& field : fields) {
    if (field.number >= 0 && field.number <= kMost) continue;
    return invalid_argument(
        "`dist_position.%s` is %lld, but must be 0 to 2^62, as `dist_iterator_position()` or a checkpoint "
        "gave "
        "it",
        field.name, static_cast<long long>(field.number));
  }
  return kOk;
}

Status Iterator::create(Dataset& dataset, Ref<Iterator>* out) {
  DIST_TRY(dataset.check_process());
  Ref<Pass> pass;
  DIST_TRY(dataset.make_pass(&pass));
  Ref<Iterator> iterator =
      make_counted<Iterator>(dataset.memory(), Ref<Dataset>::share(&dataset), std::move(pass));
  // This comes last, so that a failure does not use up a number.
  iterator->begin(dataset.count_pass());
  *out = std::move(iterator);
  return kOk;
}

Status Iterator::create_at(Dataset& dataset, const Position& position, Ref<Iterator>* out) {
  DIST_TRY(dataset.check_process());
  DIST_TRY(check_position(position));
  const auto number = static_cast<uint64_t>(position.pass);
  Ref<Pass> pass;
  DIST_TRY(dataset.make_pass(&pass));
  pass->start(number);
  DIST_TRY(pass->seek(position));
  Ref<Iterator> iterator =
      make_counted<Iterator>(dataset.memory(), Ref<Dataset>::share(&dataset), std::move(pass));
  dataset.continue_after(number);
  iterator->begin(number);
  *out = std::move(iterator);
  return kOk;
}

void Iterator::begin(uint64_t number) {
  pass_->start(number);
  position_ = pass_->position();
  position_.pass = static_cast<int64_t>(number);
  if (dataset_->measures_ahead()) choice_ = dataset_->ahead_choice();
  choice_.begin_pass();
  make_ahead(Lock(mutex_));
}

void Iterator::close(Iterator* iterator) noexcept {
  if (iterator->dataset_->forked()) return;
  iterator->handle_.close();
  iterator->release();
}

Iterator::Iterator(Memory& memory, Ref<Dataset> dataset, Ref<Pass> pass)
    : Counted(memory),
      dataset_(std::move(dataset)),
      ticket_(dataset_->prefetch() > 0 ? std::allocate_shared<Ticket>(tbb::tbb_allocator<Ticket>(), *this)
                                       : nullptr),
      pass_(std::move(pass)),
      ready_(&memory) {}

Iterator::~Iterator() {
  Lock lock(mutex_);
  closing_ = true;
  if (!stop_task(lock)) made_.wait(lock, [&] { return !ahead_; });
  if (dataset_->measures_ahead()) dataset_->keep(choice_);
}

// When this returns OK, a batch is ready or the pass has ended.
Status Iterator::prepare(Lock& lock, const Interrupt& interrupt, const char* call) {
  DIST_TRY(dataset_->check_process());
  DIST_TRY(check_may_wait(call));
  lock.lock();
  if (!ready_.empty() || end_.code != DIST_OK) return kOk;
  if (!stop_task(lock)) return await_batch(lock, interrupt);
  make_batch(lock);
  return kOk;
}

Status Iterator::look(const Interrupt& interrupt, const char* call, bool* there) {
  Lock lock(mutex_, std::defer_lock);
  DIST_TRY(prepare(lock, interrupt, call));
  *there = !ready_.empty();
  // Create the empty batch now, because later there may be no batch to use as a model.
  if (*there && !empty_) DIST_TRY(empty_like(memory(), *ready_.front().batch, &empty_));
  return *there || end_.code == DIST_OUT_OF_RANGE ? kOk : fail(end_);
}

Status Iterator::empty(ValueRef* out) {
  if (!empty_) {
    const Status status = dataset_->make_empty(&empty_);
    if (status.code() == DIST_OUT_OF_RANGE) {
      return failed_precondition(
          "this worker's source has no element, while other workers have batches, so the structure of an "
          "empty batch is unknown");
    }
    DIST_TRY(status);
  }
  *out = empty_;
  return kOk;
}

void Iterator::end_pass() {
  Lock lock(mutex_);
  drop_rest(lock);
  ended_ = true;
}

void Iterator::drop_rest(Lock& lock) {
  if (!stop_task(lock)) made_.wait(lock, [&] { return !ahead_; });
  ready_.clear();
  pass_ = {};
  static_cast<void>(pass_is_over());
  end_ = last_error();
}

Status Iterator::next(const Interrupt& interrupt, const char* call, FilledUp filled_up, ValueRef* out) {
  Lock lock(mutex_, std::defer_lock);
  DIST_TRY(prepare(lock, interrupt, call));
  if (!ready_.empty() && ready_.front().filled_up && filled_up == FilledUp::kEnds) drop_rest(lock);
  if (ready_.empty()) return fail(end_);
  *out = std::move(ready_.front().batch);
  const int64_t pass = position_.pass;
  position_ = ready_.front().after;
  position_.pass = pass;
  ready_.pop_front();
  if (dataset_->measures_ahead() && choice_.gave(steady_now_ns)) dataset_->keep(choice_);
  make_ahead(lock);
  return kOk;
}

Status Iterator::await_batch(Lock& lock, const Interrupt& interrupt) {
  constexpr std::chrono::milliseconds kSlice(10);
  const auto made = [&] { return !ready_.empty() || end_.code != DIST_OK; };
  if (interrupt.check == nullptr) {
    made_.wait(lock, made);
    return kOk;
  }
  while (!made_.wait_for(lock, kSlice, made)) {
    // The check may wait for a report from a peer. The lock must not be held then, because the maker needs
    // it.
    lock.unlock();
    const Status status = interrupt.check(interrupt.context);
    lock.lock();
    DIST_TRY(status);
  }
  return kOk;
}

Status Iterator::position(Position* out) {
  DIST_TRY(dataset_->check_process());
  const Lock lock(mutex_);
  *out = position_;
  return kOk;
}

// Enqueues a task that makes the next batch, if prefetching is wanted. This is only an optimization:
// otherwise next() makes the batch.
void Iterator::make_ahead(const Lock&) noexcept {
  if (ticket_ == nullptr || ahead_ || closing_ || end_.code != DIST_OK) return;
  if (static_cast<int64_t>(ready_.size()) >= dataset_->prefetch() || !choice_.ahead()) return;
  // If a task's ticket was taken back before the task started, the task is still queued, and its ticket
  // becomes valid again.
  ahead_ = ticket_->change(Ticket::kTakenBack, Ticket::kValid);
  if (ahead_) return;
  ticket_->state = Ticket::kValid;
  try {
    dataset_->arena().enqueue([ticket = ticket_] { run_task(*ticket); });
    ahead_ = true;
  } catch (...) {
    ticket_->state = Ticket::kNotQueued;
  }
}

// Returns true if no task is making a batch and none will start. Returns false if one has started.
bool Iterator::stop_task(const Lock&) noexcept {
  if (ahead_ && ticket_->change(Ticket::kValid, Ticket::kTakenBack)) ahead_ = false;
  return !ahead_;
}

void Iterator::run_task(Ticket& ticket) noexcept {
  if (ticket.state.exchange(Ticket::kNotQueued) != Ticket::kValid) return;
  // oneTBB's worker thread has inherited the name and signal mask of the thread for which oneTBB created it.
  name_this_thread("dist-input");
  block_async_signals();
  Iterator& self = *ticket.iterator;
  Lock lock(self.mutex_);
  std::optional<OnCpus> here;
  if (const CpuSet* const cpus = self.dataset_->cpus(); cpus != nullptr) here.emplace(*cpus, Bounds::kExact);
  self.make_batch(lock);
  self.ahead_ = false;
  self.make_ahead(lock);
  // Under the lock, because the iterator may be destroyed as soon as the lock is released.
  self.made_.notify_all();
}

// Makes a batch, and releases the lock meanwhile. The caller must be the only maker.
void Iterator::make_batch(Lock& lock) {
  lock.unlock();
  Made made;
  Status status;
  try {
    status = pass_->next_batch(&made.batch);
    made.after = pass_->position();
    made.filled_up = pass_->filled_up();
  } catch (const std::bad_alloc&) {
    status = out_of_memory();
  }
  // The elements and their order are no longer needed.
  if (!status.ok()) pass_ = {};
  lock.lock();
  if (status.ok()) {
    try {
      ready_.push_back(std::move(made));
      return;
    } catch (const std::bad_alloc&) {
      status = out_of_memory();
    }
  }
  end_ = last_error();
  end_.code = status.code();
}

}  // namespace dist
