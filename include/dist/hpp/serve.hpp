// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/serve.hpp: serve.h for C++: requests, each on one idle replica.
//
//     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
//     options.threads = DIST_THREADS_LIBRARY;
//     dist::strategy strategy(options);
//     dist::instances instances(strategy, [](dist::replica) { return model("encoder"); });
//
//     dist::request one = strategy.submit([&](dist::replica here) { answer(dist::instance_state<model>(here)); });
//     one.wait();                                     // throws the exception of the function
//
//     dist::completions completions;                  // add its descriptor() to your epoll set
//     dist_submit_options submit = DIST_SUBMIT_OPTIONS_INIT;
//     submit.timeout_ns = 50 * 1000 * 1000;
//     strategy.submit(completions, [](dist::replica here) { asked->answer(here); }, submit, asked);
//     while (dist::request ended = completions.next(0)) respond(ended.user_data());
#ifndef DIST_HPP_SERVE_HPP
#define DIST_HPP_SERVE_HPP

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "collective.hpp"
#include "replica.hpp"
#include "strategy.hpp"

namespace dist {

// ---- Instances -------------------------------------------------------------------------------------------

namespace detail {

// The state of an instance: an object of a type that the functions which create and use it agree on.
template <class State>
inline constexpr char state_type = 0;

struct instance_state {
  const void *type;

  explicit instance_state(const void *of) noexcept : type(of) {}
  virtual ~instance_state() = default;
};

template <class State>
struct held_state final : instance_state {
  State state;

  template <class Make>
  explicit held_state(Make make) : instance_state(&state_type<State>), state(make()) {}
};

// The host functions that create states, and the exceptions that they threw.
struct instance_functions {
  failures thrown;
  virtual ~instance_functions() = default;
  virtual instance_state *make(replica here) = 0;
  virtual void warm_up(replica here) = 0;
};

template <class Make, class WarmUp>
struct functions_of_instances final : instance_functions {
  Make made_by;
  WarmUp warmed_by;

  template <class GivenMake, class GivenWarmUp>
  functions_of_instances(GivenMake &&make, GivenWarmUp &&warm)
      : made_by(std::forward<GivenMake>(make)), warmed_by(std::forward<GivenWarmUp>(warm)) {}
  instance_state *make(replica here) override {
    using state = std::decay_t<std::invoke_result_t<Make &, replica>>;
    return new held_state<state>([&]() -> decltype(auto) { return made_by(here); });
  }
  void warm_up(replica here) override { warmed_by(here); }
};

struct no_warm_up {
  void operator()(replica) const noexcept {}
};

}  // namespace detail

// Keeps a strategy's replicas ready for requests. The destructor waits until accepted requests have completed.
class instances {
 public:
  explicit instances(const strategy_ref &of) : of_(of) { check(dist_instances_open(of.get(), nullptr)); }
  // With the C functions in the options, if any.
  instances(const strategy_ref &of, const dist_instances_options &options) : of_(of) {
    check(dist_instances_open(of.get(), &options));
  }
  // make(replica) runs on each instance's thread and returns its state, of any movable type: instance_state<type>().
  // Then warm_up(replica) runs there. The constructor throws their exceptions.
  template <class Make, class = std::enable_if_t<std::is_invocable_v<Make &, replica>>>
  instances(const strategy_ref &of, Make &&make)
      : instances(of, std::forward<Make>(make), detail::no_warm_up()) {}
  template <class Make, class WarmUp, class = std::enable_if_t<std::is_invocable_v<WarmUp &, replica>>>
  instances(const strategy_ref &of, Make &&make, WarmUp &&warm_up)
      : instances(of, std::forward<Make>(make), std::forward<WarmUp>(warm_up), DIST_INSTANCES_OPTIONS_INIT) {}
  template <class Make, class WarmUp>
  instances(const strategy_ref &of, Make &&make, WarmUp &&warm_up, dist_instances_options options)
      : of_(of),
        functions_(new detail::functions_of_instances<std::decay_t<Make>, std::decay_t<WarmUp>>(
            std::forward<Make>(make), std::forward<WarmUp>(warm_up))) {
    options.user_data = functions_.get();
    options.create_state = [](dist_replica *handle, void **out_state, void *user_data) {
      auto &self = *static_cast<detail::instance_functions *>(user_data);
      return detail::shielded(self.thrown, dist_replica_id(handle),
                              [&] { *out_state = self.make(replica(handle)); });
    };
    options.destroy_state = [](void *state, void *) { delete static_cast<detail::instance_state *>(state); };
    options.warm_up = [](dist_replica *handle, void *user_data) {
      auto &self = *static_cast<detail::instance_functions *>(user_data);
      return detail::shielded(self.thrown, dist_replica_id(handle), [&] { self.warm_up(replica(handle)); });
    };
    functions_->thrown.check(dist_instances_open(of.get(), &options));
  }
  ~instances() {
    if (of_ && dist_instances_close(of_.get(), -1) != DIST_OK)
      (void)functions_.release();  // may still be called
  }
  instances(instances &&other) noexcept
      : of_(std::exchange(other.of_, strategy_ref())), functions_(std::move(other.functions_)) {}
  instances &operator=(instances &&other) noexcept {
    std::swap(of_, other.of_);
    functions_.swap(other.functions_);
    return *this;
  }
  instances(const instances &) = delete;
  instances &operator=(const instances &) = delete;

  // Closes the instances now. Throws DIST_DEADLINE_EXCEEDED if requests were cancelled; the instances are closed
  // nevertheless.
  void close(int64_t timeout_ns = DIST_NO_TIMEOUT) {
    const dist_status status = dist_instances_close(of_.get(), timeout_ns);
    if (status == DIST_DEADLINE_EXCEEDED) (void)functions_.release();  // a function may still be running
    if (status == DIST_OK || status == DIST_DEADLINE_EXCEEDED) of_ = strategy_ref();
    check(status);
  }

 private:
  strategy_ref of_;
  std::unique_ptr<detail::instance_functions> functions_;
};

inline void strategy_ref::close_instances(int64_t timeout_ns) const {
  check(dist_instances_close(handle_, timeout_ns));
}

inline void strategy_ref::serve(int32_t replica_id) const { check(dist_serve(handle_, replica_id)); }

inline void *replica::instance_state() const noexcept { return dist_instance_state(handle_); }

inline void replica::check() const { dist::check(dist_replica_check(handle_)); }

// The state of this replica's instance, as created by the function that was passed to dist::instances.
template <class State>
State &instance_state(const replica &here) {
  auto *const held = static_cast<detail::instance_state *>(here.instance_state());
  if (held == nullptr) throw error(DIST_FAILED_PRECONDITION, "the replica is no instance that has a state");
  if (held->type != &detail::state_type<State>)
    throw error(DIST_INVALID_ARGUMENT,
                "the instance's state is of another type than the one that is asked for");
  return static_cast<detail::held_state<State> *>(held)->state;
}

// ---- Requests --------------------------------------------------------------------------------------------

namespace detail {

// A request's function and the exception that it threw, until its last user releases it.
struct submitted {
  failures thrown;
  void *user_data = nullptr;
  std::atomic<bool> begun{false};
  std::atomic<int> users{1};  // the holder, and the function while it runs

  virtual ~submitted() = default;
  virtual void call(replica here) = 0;
  virtual void done(dist_request *) noexcept {}
  void leave() noexcept {
    if (users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

template <class Fn>
struct submitted_function : submitted {
  Fn fn;

  explicit submitted_function(Fn given) : fn(std::move(given)) {}
  void call(replica here) override { fn(here); }
};

inline dist_status call_submitted(dist_replica *handle, void *user_data) {
  auto &self = *static_cast<submitted *>(user_data);
  self.users.fetch_add(1, std::memory_order_relaxed);
  self.begun.store(true, std::memory_order_release);
  const dist_status status =
      shielded(self.thrown, dist_replica_id(handle), [&] { self.call(replica(handle)); });
  self.leave();
  return status;
}

}  // namespace detail

// A function scheduled with submit(). The destructor cancels it and waits for it. Inside a replica of the same
// strategy, waiting is not allowed, and the destructor only cancels it.
class request {
 public:
  request() noexcept = default;
  ~request() { end(); }
  request(request &&other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), own_(std::exchange(other.own_, nullptr)) {}
  request &operator=(request &&other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(own_, other.own_);
    return *this;
  }
  request(const request &) = delete;
  request &operator=(const request &) = delete;

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Whether it has completed. If it failed, throws the exception of its function, or dist::error.
  bool test() const {
    int32_t done = 0;
    checked(dist_request_test(handle_, &done));
    return done != 0;
  }
  void wait(int64_t timeout_ns = DIST_NO_TIMEOUT) const { checked(dist_request_wait(handle_, timeout_ns)); }
  // Cancels it: at once if it is queued; otherwise replica::check() fails in its function.
  void cancel() const { dist::check(dist_request_cancel(handle_)); }
  [[nodiscard]] dist_request *get() const noexcept { return handle_; }
  // The user_data that was passed to submit().
  void *user_data() const noexcept { return own_ == nullptr ? nullptr : own_->user_data; }

 private:
  friend class strategy_ref;
  friend class completions;
  request(dist_request *handle, detail::submitted *own) noexcept : handle_(handle), own_(own) {}

  // Another object owns it.
  void forget() noexcept {
    handle_ = nullptr;
    own_ = nullptr;
  }
  void checked(dist_status status) const {
    if (status == DIST_OK) return;
    if (own_ != nullptr) own_->thrown.check(status);
    dist::check(status);
  }
  void end() noexcept {
    if (own_ == nullptr) return;
    // The function may use its captures until it has returned; it holds them itself from its start.
    int32_t done = 0;
    if (dist_request_test(handle_, &done) == DIST_OK && done == 0 &&
        dist_request_cancel(handle_) == DIST_OK &&
        dist_request_wait(handle_, -1) == DIST_FAILED_PRECONDITION) {
      while (!own_->begun.load(std::memory_order_acquire) && dist_request_test(handle_, &done) == DIST_OK &&
             done == 0)
        std::this_thread::yield();
    }
    own_->leave();
    dist_request_destroy(handle_);
  }

  dist_request *handle_ = nullptr;
  detail::submitted *own_ = nullptr;
};

// Waits until one of them has completed and returns its index. If that one failed, throws libdist's error; its test()
// throws the exception of its function. This is a template so that an empty list is not ambiguous with one of works.
template <class Request, class = std::enable_if_t<std::is_same_v<Request, request>>>
std::size_t wait_any(const std::vector<Request> &requests, int64_t timeout_ns = DIST_NO_TIMEOUT) {
  std::vector<dist_request *> handles;
  handles.reserve(requests.size());
  for (const request &each : requests) handles.push_back(each.get());
  std::size_t index = 0;
  check(dist_request_wait_any(handles.data(), handles.size(), timeout_ns, &index));
  return index;
}

// A queue of completed requests. Destroy it before the strategies whose requests it receives; the destructor waits for
// outstanding requests.
class completions {
 public:
  completions() { check(dist_completions_create(nullptr, &handle_)); }
  explicit completions(const dist_allocator &allocator) {
    check(dist_completions_create(&allocator, &handle_));
  }
  ~completions() {
    dist_request *ended = nullptr;
    while (handle_ != nullptr && awaited_ > 0 && dist_completions_next(handle_, -1, &ended) == DIST_OK)
      taken(ended);
    dist_completions_destroy(handle_);
  }
  completions(const completions &) = delete;
  completions &operator=(const completions &) = delete;

  // The request that completed first; converts to false if none completes within timeout_ns (0: does not wait).
  request next(int64_t timeout_ns = DIST_NO_TIMEOUT) {
    dist_request *ended = nullptr;
    check(dist_completions_next(handle_, timeout_ns, &ended));
    return ended == nullptr ? request() : taken(ended);
  }
  // Readable while the queue is not empty, for poll() and epoll.
  int32_t descriptor() const {
    int32_t number = -1;
    check(dist_completions_descriptor(handle_, &number));
    return number;
  }
  [[nodiscard]] dist_completions *get() const noexcept { return handle_; }

 private:
  friend class strategy_ref;
  request taken(dist_request *ended) noexcept {
    awaited_.fetch_sub(1, std::memory_order_relaxed);
    return request(ended, static_cast<detail::submitted *>(dist_request_user_data(ended)));
  }

  dist_completions *handle_ = nullptr;
  std::atomic<int64_t> awaited_{0};
};

template <class Body>
request strategy_ref::submit(Body &&body, const dist_submit_options &options) const {
  if (options.completions != nullptr || options.done != nullptr)
    throw error(DIST_INVALID_ARGUMENT,
                "where a request arrives is an argument: submit(completions, ...), submit_then(..., done)");
  auto own = std::make_unique<detail::submitted_function<std::decay_t<Body>>>(std::forward<Body>(body));
  dist_request *handle = nullptr;
  check(dist_submit(handle_, detail::call_submitted, own.get(), &options, &handle));
  return request(handle, own.release());
}
template <class Body>
request strategy_ref::submit(Body &&body) const {
  const dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  return submit(std::forward<Body>(body), options);
}

template <class Body>
void strategy_ref::submit(completions &to, Body &&body, dist_submit_options options, void *user_data) const {
  auto own = std::make_unique<detail::submitted_function<std::decay_t<Body>>>(std::forward<Body>(body));
  own->user_data = user_data;
  options.completions = to.handle_;
  to.awaited_.fetch_add(1, std::memory_order_relaxed);
  const dist_status status = dist_submit(handle_, detail::call_submitted, own.get(), &options, nullptr);
  if (status != DIST_OK) to.awaited_.fetch_sub(1, std::memory_order_relaxed);
  check(status);
  (void)own.release();  // now owned by the receiver
}
template <class Body>
void strategy_ref::submit(completions &to, Body &&body) const {
  submit(to, std::forward<Body>(body), DIST_SUBMIT_OPTIONS_INIT, nullptr);
}

template <class Body, class Done>
void strategy_ref::submit_then(Body &&body, Done &&done, dist_submit_options options) const {
  static_assert(std::is_nothrow_invocable_v<std::decay_t<Done> &, const request &>,
                "the function runs inside the library: declare it noexcept");
  struct told final : detail::submitted_function<std::decay_t<Body>> {
    std::decay_t<Done> then;

    told(Body &&given, Done &&last)
        : detail::submitted_function<std::decay_t<Body>>(std::forward<Body>(given)),
          then(std::forward<Done>(last)) {}
    void done(dist_request *ended) noexcept override {
      request borrowed(ended, this);
      then(static_cast<const request &>(borrowed));
      borrowed.forget();
      this->leave();
    }
  };
  auto own = std::make_unique<told>(std::forward<Body>(body), std::forward<Done>(done));
  options.done = [](dist_request *ended, void *user_data) {
    static_cast<detail::submitted *>(user_data)->done(ended);
  };
  check(dist_submit(handle_, detail::call_submitted, own.get(), &options, nullptr));
  (void)own.release();  // now owned by its own completion
}
template <class Body, class Done>
void strategy_ref::submit_then(Body &&body, Done &&done) const {
  submit_then(std::forward<Body>(body), std::forward<Done>(done), DIST_SUBMIT_OPTIONS_INIT);
}

}  // namespace dist

#endif  // DIST_HPP_SERVE_HPP
