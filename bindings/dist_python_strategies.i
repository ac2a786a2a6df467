/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_python_strategies.i: closing a strategy while other Python threads use it. A part of dist_python.i.
 *
 * In C, no thread may use a strategy that another one destroys. A Python program cannot promise that: a function that
 * runs for a coordinator or for RPC, or a daemon thread, may still be at work when the strategy is closed. So each call
 * counts as a use of its strategy, closing waits until the uses have ended, and later ones raise FailedPrecondition.
 *
 * Closing is refused at once while a run is in progress. A shutdown ends runs; it refuses new calls, except in functions
 * that are still running: dist_strategy_shutdown() keeps everything that these need.
 */
%{
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>
%}
%{
namespace dist_swig {

class Strategies {
 public:
  /* Returns false, with an exception set, if the strategy has been closed. The caller holds the GIL. */
  bool begin(const void *strategy, const char *call) {
    const Use use{std::this_thread::get_id(), call, runs(call), is_inside(strategy)};
    std::unique_lock<std::mutex> lock(mutex_);
    /* A callback of a call: closing waits for that call. */
    const bool nested = use_of(strategy, is_own) != nullptr;
    if (!nested && is_closing_elsewhere(strategy)) {
      lock.unlock();
      PyThreadState *const state = PyEval_SaveThread(); /* the other thread may need the GIL to get on */
      lock.lock();
      changed_.wait(lock, [&] { return !is_closing_elsewhere(strategy); });
      lock.unlock();
      PyEval_RestoreThread(state);
      lock.lock();
    }
    const bool ends = shut_.count(strategy) != 0 && !use.inside && !nested;
    if (ends || closed_.count(strategy) != 0) {
      lock.unlock();
      dist_swig_raise(refused(name_of(call) + "(): the strategy is closed"));
      return false;
    }
    uses_[strategy].push_back(use);
    return true;
  }

  void end(const void *strategy) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Use> &uses = uses_[strategy];
    const auto mine = std::find_if(uses.rbegin(), uses.rend(), is_own);
    uses.erase(std::next(mine).base());
    if (uses.empty()) uses_.erase(strategy);
    if (!closing_.empty() || !shut_.empty()) changed_.notify_all();
  }

  /* Calls `destroy` if no thread uses the strategy, or as soon as the calls of other threads have returned. The caller
     does not hold the GIL. */
  template <class Destroy> dist_status close(const void *strategy, Destroy destroy) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !is_closing_elsewhere(strategy); });
    if (closed_.count(strategy) != 0 || shut_.count(strategy) != 0) return DIST_OK;
    const auto in_progress = [&](const char *where, const Use *use) {
      return refused(where + name_of(use->call) + "() of this strategy. Close it afterwards.");
    };
    if (const Use *const own = use_of(strategy, is_own)) return in_progress("this thread is in ", own);
    if (use_of(strategy, is_run) != nullptr)
      return refused("close(): a run is in progress on another thread. Close the strategy afterwards.");
    closing_.emplace(strategy, std::this_thread::get_id());
    const Use *other = nullptr;
    (void)changed_.wait_for(lock, std::chrono::seconds(kPatienceS), [&] {
      other = use_of(strategy, is_any);
      return other == nullptr;
    });
    dist_status status = DIST_OK;
    if (other == nullptr) {
      lock.unlock();
      status = destroy();
      lock.lock();
      if (status == DIST_OK) closed_.insert(strategy);
    } else {
      status = in_progress("another thread is in ", other);
    }
    closing_.erase(strategy);
    changed_.notify_all();
    return status;
  }

  /* Calls `shut_down` when the calls of threads that are not in a function of the strategy have returned. */
  template <class ShutDown> dist_status shut_down(const void *strategy, ShutDown shut_down) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !is_closing_elsewhere(strategy); });
    if (closed_.count(strategy) != 0 || !shut_.insert(strategy).second) return DIST_OK;
    (void)changed_.wait_for(lock, std::chrono::seconds(kPatienceS),
                            [&] { return use_of(strategy, is_outside) == nullptr; });
    lock.unlock();
    const dist_status status = shut_down();
    lock.lock();
    if (status == DIST_OK || status == DIST_DEADLINE_EXCEEDED) closed_.insert(strategy);
    shut_.erase(strategy);
    return status;
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  /* A strategy may be created where a closed one was. */
  void opened(const void *strategy) {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_.erase(strategy);
  }

 private:
  enum { kPatienceS = 2 };
  struct Use {
    std::thread::id thread;
    const char *call;
    bool run;    /* whose functions may call the strategy */
    bool inside; /* the thread is in such a function, or in the strategy's scope */
  };
  static dist_status refused(const std::string &why) { return dist_fail(DIST_FAILED_PRECONDITION, why.c_str()); }
  static bool is_own(const Use &use) { return use.thread == std::this_thread::get_id(); }
  static bool is_run(const Use &use) { return use.run; }
  static bool is_outside(const Use &use) { return !use.run && !use.inside && !is_own(use); }
  static bool is_any(const Use &) { return true; }

  /* SWIG's name of a function as _words.py has it. */
  static std::string name_of(const char *call) {
    return std::strncmp(call, "dist_", 5) == 0 ? call : std::string("dist_") + call;
  }
  static bool runs(const char *call) {
    for (const char *each : {"run_until", "dist_run", "dist_run_values", "dist_serve", "dist_replica_enter"})
      if (std::strcmp(call, each) == 0) return true;
    return false;
  }
  static bool is_inside(const void *strategy) { return dist_has_strategy() && dist_get_strategy() == strategy; }

  bool is_closing_elsewhere(const void *strategy) const {
    const auto found = closing_.find(strategy);
    return found != closing_.end() && found->second != std::this_thread::get_id();
  }
  template <class Which> const Use *use_of(const void *strategy, Which which) const {
    const auto found = uses_.find(strategy);
    if (found == uses_.end()) return nullptr;
    const auto use = std::find_if(found->second.begin(), found->second.end(), which);
    return use == found->second.end() ? nullptr : &*use;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<const void *, std::vector<Use>> uses_;
  std::unordered_map<const void *, std::thread::id> closing_; /* by which thread */
  std::unordered_set<const void *> shut_;                     /* shutting down */
  std::unordered_set<const void *> closed_;
};

/* Never destroyed: daemon threads may use it while the process exits. The mutex is held
   during a fork, so that no child inherits it locked by a thread that the child lacks. */
static Strategies &strategies = *[] {
  static Strategies *only = new Strategies;
  (void)pthread_atfork([] { only->lock(); }, [] { only->unlock(); }, [] { only->unlock(); });
  return only;
}();

/* The use of a strategy by one call. */
class StrategyUse {
 public:
  StrategyUse() = default;
  StrategyUse(const StrategyUse &) = delete;
  StrategyUse &operator=(const StrategyUse &) = delete;
  ~StrategyUse() {
    if (strategy_ != nullptr) strategies.end(strategy_);
  }
  bool begin(const void *strategy, const char *call) {
    if (strategy == nullptr) return true;
    if (!strategies.begin(strategy, call)) return false;
    strategy_ = strategy;
    return true;
  }

 private:
  const void *strategy_ = nullptr;
};

static int64_t number(dist_strategy *strategy) {
  if (strategy != nullptr) strategies.opened(strategy);
  return number(static_cast<const void *>(strategy));
}

}  // namespace dist_swig
%}

%dist_integer(dist_strategy * (dist_swig::StrategyUse use),
  $1 = ($1_ltype)dist_swig::pointer(number);
  if (!use.begin($1, "$symname")) SWIG_fail;
)
%dist_integer(dist_strategy *closed_strategy, $1 = ($1_ltype)dist_swig::pointer(number);)
%ignore dist_group_destroy;
%ignore dist_strategy_destroy;
%ignore dist_strategy_shutdown;
%rename(dist_group_destroy) close_group;
%rename(dist_strategy_destroy) close_strategy;
%rename(dist_strategy_shutdown) shut_down_strategy;
%inline %{
/* The end of its strategy would end the group, too. */
static dist_status close_group(dist_strategy *strategy, dist_group *group) {
  return static_cast<void>(strategy), dist_group_destroy(group);
}
static dist_status close_strategy(dist_strategy *closed_strategy) {
  return dist_swig::strategies.close(closed_strategy, [&] { return dist_strategy_destroy(closed_strategy); });
}
static dist_status shut_down_strategy(dist_strategy *closed_strategy, int64_t timeout_ns) {
  return dist_swig::strategies.shut_down(closed_strategy,
                                         [&] { return dist_strategy_shutdown(closed_strategy, timeout_ns); });
}
%}
