// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/batch.hpp: requests that an instance processes together, step by step (batch.h).
//
//     dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
//     options.continuous = 1;
//     dist::batcher batcher(strategy, [](dist::replica, dist::batch &step) {
//       for (std::size_t i = 0; i < step.size(); ++i) {
//         cache *mine = step.state<cache>(i);
//         if (mine == nullptr) mine = &step.set_state(i, cache(step.user_data(i)));
//         step.emit(i, decode(*mine));
//         if (mine->is_complete()) step.end(i);
//       }
//     }, options);
//
//     dist::item item = batcher.submit(question);
//     while (std::optional<token> next = item.take<token>()) send(*next);
//     item.wait();                                  // rethrows the exception of the step
#ifndef DIST_HPP_BATCH_HPP
#define DIST_HPP_BATCH_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "serve.hpp"

namespace dist {

class batch;

namespace detail {

// A step function and its recent exceptions. A batcher lives long, and each item asks once.
struct batch_functions : std::enable_shared_from_this<batch_functions> {
  std::shared_ptr<batch_functions> self;  // set if they must live forever
  virtual ~batch_functions() = default;
  virtual void step(replica here, batch &members) = 0;

  dist_status failed() noexcept {
    const dist_status status = status_of_exception();
    try {
      std::string text = dist_last_error();
      const std::lock_guard<std::mutex> lock(mutex_);
      if (thrown_.size() == kMost) thrown_.pop_front();
      thrown_.push_back({status, std::move(text), std::current_exception()});
    } catch (const std::bad_alloc &) {  // only the status and the message are kept
    }
    return status;
  }
  void check(dist_status status) {
    if (status == DIST_OK) return;
    const error report(status);
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto each = thrown_.rbegin(); each != thrown_.rend(); ++each) {
      if (each->status == report.code() && each->text == report.what()) std::rethrow_exception(each->thrown);
    }
    throw report;
  }

 private:
  enum : std::size_t { kMost = 64 };
  struct entry {
    dist_status status;
    std::string text;
    std::exception_ptr thrown;
  };
  std::mutex mutex_;
  std::deque<entry> thrown_;
};

template <class Step>
struct functions_of_batches final : batch_functions {
  Step function;

  explicit functions_of_batches(Step given) : function(std::move(given)) {}
  void step(replica here, batch &members) override { function(here, members); }
};

template <class Object>
std::unique_ptr<instance_state> boxed(Object &&object) {
  using plain = std::decay_t<Object>;
  return std::make_unique<held_state<plain>>([&]() -> plain { return std::forward<Object>(object); });
}

// The object in a box; throws if it has another type.
template <class Object>
Object *unboxed(void *box) {
  auto *const held = static_cast<instance_state *>(box);
  if (held == nullptr) return nullptr;
  if (held->type != &state_type<Object>)
    throw error(DIST_INVALID_ARGUMENT, "an item's state, or result, is of another type than is asked for");
  return &static_cast<held_state<Object> *>(held)->state;
}

}  // namespace detail

// A step with items 0 .. size() - 1. Valid only inside the step function.
class batch {
 public:
  explicit batch(dist_batch *handle, detail::batch_functions &functions) noexcept
      : handle_(handle), functions_(&functions) {}
  batch(const batch &) = delete;
  batch &operator=(const batch &) = delete;

  std::size_t size() const noexcept { return dist_batch_size(handle_); }
  // The bucket of the items; no item has a greater length. 0 if there are no buckets.
  int64_t bucket() const noexcept { return dist_batch_bucket(handle_); }
  // The user_data that was passed to batcher::submit() for item i.
  void *user_data(std::size_t i) const noexcept { return dist_batch_user_data(handle_, i); }
  // The state that a step has set for item i; NULL if none has been set. Throws if it has another type.
  template <class State>
  State *state(std::size_t i) const {
    return detail::unboxed<State>(dist_batch_state(handle_, i));
  }
  // Stores a state with item i until the item completes, and destroys the previous state.
  template <class State>
  std::decay_t<State> &set_state(std::size_t i, State &&state) const {
    if (i >= size()) throw error(DIST_INVALID_ARGUMENT, "the step has no such item");
    std::unique_ptr<detail::instance_state> box = detail::boxed(std::forward<State>(state));
    delete static_cast<detail::instance_state *>(dist_batch_state(handle_, i));
    dist_batch_set_state(handle_, i, box.get());
    return *detail::unboxed<std::decay_t<State>>(box.release());
  }
  // Throws if item i is no longer wanted.
  void check(std::size_t i) const { dist::check(dist_batch_check(handle_, i)); }
  // Emits a partial result of item i; item::take() returns it.
  template <class Result>
  void emit(std::size_t i, Result &&result) const {
    std::unique_ptr<detail::instance_state> box = detail::boxed(std::forward<Result>(result));
    dist::check(dist_batch_emit(handle_, i, box.get()));
    (void)box.release();
  }
  // Completes item i after this step, successfully or with an exception that item::wait() throws.
  void end(std::size_t i) const noexcept { dist_batch_end(handle_, i, DIST_OK); }
  void end(std::size_t i, const std::exception_ptr &thrown) const noexcept {
    try {
      std::rethrow_exception(thrown);
    } catch (...) {
      dist_batch_end(handle_, i, functions_->failed());
    }
  }

 private:
  dist_batch *handle_;
  detail::batch_functions *functions_;
};

// A request in a batcher. Destroying this object does not cancel the request.
class item {
 public:
  item() noexcept = default;
  ~item() { dist_request_destroy(handle_); }
  item(item &&other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), functions_(std::move(other.functions_)) {}
  item &operator=(item &&other) noexcept {
    std::swap(handle_, other.handle_);
    functions_.swap(other.functions_);
    return *this;
  }
  item(const item &) = delete;
  item &operator=(const item &) = delete;

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Returns whether it has completed; throws if it has failed. The exception itself is rethrown only by the item that
  // submit() returned; items from item_completions throw dist::error.
  bool test() const {
    int32_t done = 0;
    checked(dist_request_test(handle_, &done));
    return done != 0;
  }
  void wait(int64_t timeout_ns = DIST_NO_TIMEOUT) const { checked(dist_request_wait(handle_, timeout_ns)); }
  // Cancels it: immediately while it waits, otherwise before the next step.
  void cancel() const { check(dist_request_cancel(handle_)); }
  // Returns the next partial result; none if there is none within timeout_ns (0 = do not wait) or the
  // item has completed.
  template <class Result>
  std::optional<Result> take(int64_t timeout_ns = DIST_NO_TIMEOUT) const {
    void *taken = nullptr;
    check(dist_request_take(handle_, timeout_ns, &taken));
    const std::unique_ptr<detail::instance_state> box(static_cast<detail::instance_state *>(taken));
    if (box == nullptr) return std::nullopt;
    return std::move(*detail::unboxed<Result>(box.get()));
  }
  void *user_data() const noexcept { return dist_request_user_data(handle_); }
  [[nodiscard]] dist_request *get() const noexcept { return handle_; }

 private:
  friend class batcher;
  friend class item_completions;
  explicit item(dist_request *handle, std::shared_ptr<detail::batch_functions> functions = nullptr) noexcept
      : handle_(handle), functions_(std::move(functions)) {}
  void checked(dist_status status) const {
    functions_ == nullptr ? check(status) : functions_->check(status);
  }

  dist_request *handle_ = nullptr;
  std::shared_ptr<detail::batch_functions> functions_;
};

// A queue where items arrive whenever they have new results or have completed.
class item_completions {
 public:
  item_completions() { check(dist_completions_create(nullptr, &handle_)); }
  explicit item_completions(const dist_allocator &allocator) {
    check(dist_completions_create(&allocator, &handle_));
  }
  ~item_completions() { dist_completions_destroy(handle_); }
  item_completions(const item_completions &) = delete;
  item_completions &operator=(const item_completions &) = delete;

  // Like completions::next() and completions::descriptor().
  item next(int64_t timeout_ns = DIST_NO_TIMEOUT) const {
    dist_request *arrived = nullptr;
    check(dist_completions_next(handle_, timeout_ns, &arrived));
    return item(arrived);
  }
  int32_t descriptor() const {
    int32_t number = -1;
    check(dist_completions_descriptor(handle_, &number));
    return number;
  }
  [[nodiscard]] dist_completions *get() const noexcept { return handle_; }

 private:
  dist_completions *handle_ = nullptr;
};

// The number of items in a batcher, by where they are.
struct batch_count {
  int64_t waiting;
  int64_t active;  // on instances
};

// A queue of items and the steps that process them. Destroy it after its items complete and before its strategy.
class batcher {
 public:
  // step(replica, batch &) runs on the instances. If it throws, all its items complete with the exception, except those
  // for which batch::end() was called.
  template <class Step>
  batcher(const strategy_ref &of, Step &&step, dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT)
      : functions_(
            std::make_shared<detail::functions_of_batches<std::decay_t<Step>>>(std::forward<Step>(step))) {
    options.free_state =
        options.free_result = [](void *what, void *) { delete static_cast<detail::instance_state *>(what); };
    check(dist_batcher_create(
        of.get(),
        [](dist_replica *here, dist_batch *members, void *user_data) {
          // A stuck step can outlive its batcher.
          const auto kept = static_cast<detail::batch_functions *>(user_data)->shared_from_this();
          detail::batch_functions &self = *kept;
          batch step_of(members, self);
          try {
            self.step(replica(here), step_of);
            return dist_status{DIST_OK};
#if defined(__GLIBCXX__)
          } catch (const abi::__forced_unwind &) {  // the thread is being cancelled; must not be caught
            throw;
#endif
          } catch (...) {
            return self.failed();
          }
        },
        functions_.get(), &options, &handle_));
  }
  ~batcher() {
    if (dist_batcher_destroy(handle_) != DIST_OK)
      functions_->self = functions_;  // the batcher still needs them
  }
  batcher(batcher &&other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), functions_(std::move(other.functions_)) {}
  batcher &operator=(batcher &&other) noexcept {
    std::swap(handle_, other.handle_);
    functions_.swap(other.functions_);
    return *this;
  }
  batcher(const batcher &) = delete;
  batcher &operator=(const batcher &) = delete;

  // Destroys the batcher. Throws, and leaves it unchanged, if items have not completed or are held.
  void destroy() {
    check(dist_batcher_destroy(handle_));
    handle_ = nullptr;
  }
  item submit(void *user_data, const dist_item_options &options = DIST_ITEM_OPTIONS_INIT) const {
    dist_request *handle = nullptr;
    check(dist_batcher_submit(handle_, user_data, &options, &handle));
    return item(handle, functions_);
  }
  // Submits an item that arrives at `to`.
  void submit(const item_completions &to, void *user_data,
              dist_item_options options = DIST_ITEM_OPTIONS_INIT) const {
    options.completions = to.get();
    check(dist_batcher_submit(handle_, user_data, &options, nullptr));
  }
  batch_count count() const noexcept {
    batch_count now{0, 0};
    dist_batcher_count(handle_, &now.waiting, &now.active);
    return now;
  }
  [[nodiscard]] dist_batcher *get() const noexcept { return handle_; }

 private:
  dist_batcher *handle_ = nullptr;
  std::shared_ptr<detail::batch_functions> functions_;
};

}  // namespace dist

#endif  // DIST_HPP_BATCH_HPP
