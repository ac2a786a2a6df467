/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_python_strategies.i: closing a strategy while other Python threads use it. A part of dist_python.i.
 *
 * In C, no thread may use a strategy that another one destroys. A Python program cannot promise that: a function that
 * runs for a coordinator or for RPC, or a daemon thread, may still be at work when the strategy is closed. So each call
 * counts as a use of its strategy, closing waits until the uses have ended, and later ones raise FailedPrecondition.
 *
 * Runs do not count. dist_strategy_destroy() itself refuses to destroy a strategy with a run in progress, and
 * dist_strategy_shutdown() keeps everything that their functions need.
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
    std::unique_lock<std::mutex> lock(mutex_);
    if (is_closing_elsewhere(strategy, true)) {
      lock.unlock();
      PyThreadState *const state = PyEval_SaveThread(); /* the other thread may need the GIL to get on */
      lock.lock();
      changed_.wait(lock, [&] { return !is_closing_elsewhere(strategy, true); });
      lock.unlock();
      PyEval_RestoreThread(state);
      lock.lock();
    }
    if (closed_.count(strategy) != 0) {
      lock.unlock();
      dist_swig_raise(refused(std::string(call) + "(): the strategy is closed"));
      return false;
    }
    uses_[strategy].push_back({std::this_thread::get_id(), call});
    return true;
  }

  void end(const void *strategy) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Use> &uses = uses_[strategy];
    const auto mine = std::find_if(uses.rbegin(), uses.rend(), is_own);
    uses.erase(std::next(mine).base());
    if (uses.empty()) uses_.erase(strategy);
    if (!closing_.empty()) changed_.notify_all();
  }

  /* Calls `close`, which destroys the strategy unless it fails, when no other thread uses the strategy. `must`: it is a
     shutdown, which is called in any case. The caller does not hold the GIL. */
  template <class Close> dist_status close(const void *strategy, bool must, Close close) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !is_closing_elsewhere(strategy, false); });
    if (closed_.count(strategy) != 0) return DIST_OK;
    if (const char *const call = use_of(strategy, true); call != nullptr)
      return refused("this thread is in " + std::string(call) + "() of this strategy. Close it afterwards.");
    if (!closing_.emplace(strategy, Closing{std::this_thread::get_id(), must}).second) return DIST_OK; /* in itself */
    const char *used_by = nullptr;
    const bool unused = changed_.wait_for(lock, std::chrono::seconds(kPatienceS), [&] {
      used_by = use_of(strategy);
      return used_by == nullptr;
    });
    dist_status status = DIST_OK;
    if (unused || must) {
      lock.unlock();
      status = close();
      lock.lock();
    } else {
      status = refused("another thread is in " + std::string(used_by) + "() of this strategy. Close it afterwards.");
    }
    if (status == DIST_OK || (must && status == DIST_DEADLINE_EXCEEDED)) closed_.insert(strategy);
    closing_.erase(strategy);
    changed_.notify_all();
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
  };
  struct Closing {
    std::thread::id thread;
    bool is_shutdown;
  };
  static dist_status refused(const std::string &why) { return dist_fail(DIST_FAILED_PRECONDITION, why.c_str()); }
  static bool is_own(const Use &use) { return use.thread == std::this_thread::get_id(); }

  /* `calls` tells whether it is about a call, which goes on during a shutdown: functions of replicas need it. */
  bool is_closing_elsewhere(const void *strategy, bool calls) const {
    const auto found = closing_.find(strategy);
    return found != closing_.end() && found->second.thread != std::this_thread::get_id() &&
           !(calls && found->second.is_shutdown);
  }
  /* The call of a use of any thread, or of this one; NULL if there is none. */
  const char *use_of(const void *strategy, bool own = false) const {
    const auto found = uses_.find(strategy);
    if (found == uses_.end()) return nullptr;
    const auto use = std::find_if(found->second.begin(), found->second.end(), [&](const Use &each) { return !own || is_own(each); });
    return use == found->second.end() ? nullptr : use->call;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<const void *, std::vector<Use>> uses_;
  std::unordered_map<const void *, Closing> closing_;
  std::unordered_set<const void *> closed_;
};

/* Never destroyed: daemon threads may use it while the process exits. A forked child has no strategy of its parent's
   threads, but must not inherit a locked mutex. */
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
    static const char *const uncounted[] = {"run_until", "dist_run", "dist_run_values", "dist_serve",
                                            "dist_replica_enter"};
    for (const char *each : uncounted)
      if (std::strcmp(call, each) == 0) return true;
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
%ignore dist_strategy_destroy;
%ignore dist_strategy_shutdown;
%rename(dist_strategy_destroy) close_strategy;
%rename(dist_strategy_shutdown) shut_down_strategy;
%inline %{
static dist_status close_strategy(dist_strategy *closed_strategy) {
  return dist_swig::strategies.close(closed_strategy, false, [&] { return dist_strategy_destroy(closed_strategy); });
}
static dist_status shut_down_strategy(dist_strategy *closed_strategy, int64_t timeout_ns) {
  return dist_swig::strategies.close(closed_strategy, true,
                                     [&] { return dist_strategy_shutdown(closed_strategy, timeout_ns); });
}
%}
