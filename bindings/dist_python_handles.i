/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_python_handles.i: closing an object while other Python threads use it. A part of dist_python.i.
 *
 * In C, no thread may use a handle that another one destroys. A Python program cannot promise that: a function that
 * runs for a coordinator or for RPC, or a daemon thread, may still be at work when an object is closed. So an object
 * with a close() has an id in Python instead of its address, and each call counts as a use of its handles. Closing waits
 * until the uses have ended, and later calls raise FailedPrecondition. An id is never used for a second object.
 *
 * Ids are odd. Even numbers are addresses: of values, which Python's objects keep alive while they call, and of objects
 * that libdist ends.
 *
 * Closing a strategy is refused at once while a run is in progress. A shutdown ends runs and refuses new calls, except in
 * functions that are still running. The strategy is destroyed when the last of its uses has ended.
 */
%{
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
%}
%{
namespace dist_swig {

enum Closing {
  kPlain,
  kCounted,    /* C gives the same object several times, and each has to be destroyed */
  kEndsCalls,  /* also, destroying it ends the calls of other threads */
  kNeverHeld,  /* options do not keep it: it ends with its strategy, and is not closed during a run */
  kFromInside, /* a function that one of its calls runs may close it: the end of that call destroys it */
};

/* The name of a type in messages, and the way to close its objects. */
struct Kind {
  const char *noun;
  Closing closing;
  bool is_strategy;
  bool is_counted() const { return closing == kCounted || closing == kEndsCalls; }
};
template <class Handle> struct KindOf;

class Handles {
 public:
  /* The id of an object that a call has created. */
  int64_t own(const void *object, const Kind &kind) {
    if (object == nullptr) return 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    int64_t &id = ids_[Key(object, &kind)];
    if (id == 0 || entries_[id].ending) { /* the object that was at this address is destroyed */
      id = next_id_;
      next_id_ += 2;
      entries_[id] = Entry{object, &kind, 1, 0, {}, {}, false, nullptr, false};
    } else if (kind.is_counted()) {
      entries_[id].references++;
    }
    return id;
  }

  /* The id of an object, if it has one; otherwise its address. */
  int64_t number(const void *object, const Kind &kind) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = ids_.find(Key(object, &kind));
    return found == ids_.end() ? (int64_t)(intptr_t)object : found->second;
  }

  /* Returns false, with an exception set, if the object has been closed. The caller holds the GIL. */
  bool begin(int64_t id, const Kind &kind, const char *call, const void **out_object) {
    std::unique_lock<std::mutex> lock(mutex_);
    Entry *entry = find(id);
    /* A callback of a call: closing waits for that call. */
    const bool nested = entry != nullptr && use_of(*entry, is_own) != nullptr;
    if (entry != nullptr && !nested && is_closing_elsewhere(*entry)) {
      lock.unlock();
      PyThreadState *const state = PyEval_SaveThread(); /* the other thread may need the GIL to get on */
      lock.lock();
      wait_for_closing(lock, id);
      lock.unlock();
      PyEval_RestoreThread(state);
      lock.lock();
      entry = find(id);
    }
    const bool is_inside = entry != nullptr && kind.is_strategy && dist_has_strategy() && dist_get_strategy() == entry->object;
    if (entry == nullptr || (entry->shut && !is_inside && !nested)) {
      lock.unlock();
      dist_swig_raise(refused(name_of(call) + "(): the " + kind.noun + " is closed"));
      return false;
    }
    entry->uses.push_back(Use{std::this_thread::get_id(), call, kind.is_strategy && runs(call), is_inside});
    *out_object = entry->object;
    return true;
  }

  void end(int64_t id) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return; /* destroying it has ended the call */
    Entry &entry = found->second;
    const auto mine = std::find_if(entry.uses.rbegin(), entry.uses.rend(), is_own);
    if (mine != entry.uses.rend()) entry.uses.erase(std::next(mine).base()); /* none in a forked child */
    if (entry.is_closing() || entry.shut) changed_.notify_all();
    destroy_late(lock, found);
  }

  /* Calls `destroy` if no thread uses the object, or as soon as the calls of other threads have returned. The caller
     does not hold the GIL. */
  template <class Destroy> dist_status close(int64_t id, Destroy destroy) {
    std::unique_lock<std::mutex> lock(mutex_);
    wait_for_closing(lock, id);
    Entry *entry = find(id);
    if (entry == nullptr || entry->shut) return DIST_OK;
    const Kind &kind = *entry->kind;
    const void *const object = entry->object;
    const auto in_progress = [&](const char *where, const Use *use) {
      return refused(where + name_of(use->call) + "() of this " + kind.noun + ". Close it afterwards.");
    };
    if (entry->references > 1) {
      entry->references--;
      lock.unlock();
      return destroy(object);
    }
    const Use *const own = use_of(*entry, is_own);
    if (own != nullptr && kind.closing != kFromInside) return in_progress("this thread is in ", own);
    if (use_of(*entry, is_run) != nullptr)
      return refused("close(): a run is in progress on another thread. Close the strategy afterwards.");
    entry->closing = std::this_thread::get_id();
    const Use *other = nullptr;
    (void)changed_.wait_for(lock, std::chrono::seconds(kPatienceS), [&] {
      other = use_of(*(entry = find(id)), is_of_another);
      return other == nullptr;
    });
    dist_status status = DIST_OK;
    if (other == nullptr || kind.closing == kEndsCalls) {
      if (entry->holders > 0 || own != nullptr) {
        entry->destroy = [](const void *held) { (void)Destroy()(held); };
      } else {
        entry->ending = true;
        lock.unlock();
        status = destroy(object);
        lock.lock();
        entry = find(id);
        entry->ending = false;
      }
    } else {
      status = in_progress("another thread is in ", other);
    }
    entry->closing = std::thread::id();
    if (status == DIST_OK) forget(id);
    changed_.notify_all();
    return status;
  }

  /* Calls `shut_down` when the calls of threads that are not in a function of the strategy have returned. The last
     use, or this call, then destroys the strategy. */
  template <class ShutDown, class Destroy> dist_status shut_down(int64_t id, ShutDown shut_down, Destroy) {
    std::unique_lock<std::mutex> lock(mutex_);
    wait_for_closing(lock, id);
    Entry *const entry = find(id);
    if (entry == nullptr || entry->shut) return DIST_OK;
    entry->shut = true;
    (void)changed_.wait_for(lock, std::chrono::seconds(kPatienceS),
                            [&] { return use_of(*find(id), is_outside) == nullptr; });
    const void *const object = find(id)->object;
    lock.unlock();
    const dist_status status = shut_down(object);
    lock.lock();
    if (status == DIST_OK || status == DIST_DEADLINE_EXCEEDED) {
      find(id)->destroy = [](const void *ended) { (void)Destroy()(ended); };
      forget(id);
      destroy_late(lock, entries_.find(id));
    } else {
      find(id)->shut = false;
    }
    return status;
  }

  /* The object of an id, which Python hands over to libdist: nullptr if it has been closed. */
  const void *release(int64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry *const entry = find(id);
    if (entry == nullptr) return nullptr;
    const void *const object = entry->object;
    forget(id);
    return object;
  }

  /* Options refer to an object: it is destroyed after them. Returns the id, 0 if there is nothing to hold. */
  int64_t hold(const void *object, const Kind &kind) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = ids_.find(Key(object, &kind));
    if (found == ids_.end() || kind.closing == kNeverHeld) return 0;
    entries_[found->second].holders++;
    return found->second;
  }
  void let_go(int64_t id) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    found->second.holders--;
    destroy_late(lock, found);
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  /* A forked child has no other threads. */
  void unlock_in_child() {
    for (auto &each : entries_) each.second.uses.clear(), each.second.closing = std::thread::id();
    mutex_.unlock();
  }

 private:
  enum { kPatienceS = 2 };
  typedef std::pair<const void *, const Kind *> Key;
  struct Use {
    std::thread::id thread;
    const char *call;
    bool run;    /* whose functions may call the strategy */
    bool inside; /* the thread is in such a function, or in the strategy's scope */
  };
  struct Entry {
    const void *object;
    const Kind *kind;
    int32_t references;
    int32_t holders; /* options that refer to it */
    std::vector<Use> uses;
    std::thread::id closing; /* by which thread */
    bool shut;               /* shutting down */
    void (*destroy)(const void *); /* it is closed, and destroyed when it has no more holders and uses */
    bool ending;                   /* it is being destroyed, and another object may already have its address */
    bool is_closing() const { return closing != std::thread::id(); }
  };

  static dist_status refused(const std::string &why) { return dist_fail(DIST_FAILED_PRECONDITION, why.c_str()); }
  static bool is_own(const Use &use) { return use.thread == std::this_thread::get_id(); }
  static bool is_run(const Use &use) { return use.run; }
  static bool is_outside(const Use &use) { return !use.run && !use.inside && !is_own(use); }
  static bool is_of_another(const Use &use) { return !is_own(use); }

  /* Python's name of a function. SWIG's name can lack the prefix dist_. */
  static std::string name_of(const char *call) {
    return function_name(std::strncmp(call, "dist_", 5) == 0 ? call : std::string("dist_") + call);
  }
  static bool runs(const char *call) {
    for (const char *each : {"run_until", "dist_run", "dist_run_values", "dist_serve", "dist_replica_enter"})
      if (std::strcmp(call, each) == 0) return true;
    return false;
  }

  Entry *find(int64_t id) {
    const auto found = entries_.find(id);
    return found == entries_.end() || found->second.destroy != nullptr ? nullptr : &found->second;
  }
  template <class Which> static const Use *use_of(const Entry &entry, Which which) {
    const auto use = std::find_if(entry.uses.begin(), entry.uses.end(), which);
    return use == entry.uses.end() ? nullptr : &*use;
  }
  static bool is_closing_elsewhere(const Entry &entry) {
    return entry.is_closing() && entry.closing != std::this_thread::get_id();
  }
  void wait_for_closing(std::unique_lock<std::mutex> &lock, int64_t id) {
    changed_.wait(lock, [&] {
      const Entry *const entry = find(id);
      return entry == nullptr || !is_closing_elsewhere(*entry);
    });
  }
  void destroy_late(std::unique_lock<std::mutex> &lock, std::unordered_map<int64_t, Entry>::iterator found) {
    const Entry &entry = found->second;
    if (entry.destroy == nullptr || entry.holders > 0 || !entry.uses.empty()) return;
    const void *const object = entry.object;
    void (*const destroy)(const void *) = entry.destroy;
    entries_.erase(found);
    lock.unlock();
    destroy(object);
  }
  void forget(int64_t id) {
    const auto found = entries_.find(id);
    const auto object = ids_.find(Key(found->second.object, found->second.kind));
    if (object != ids_.end() && object->second == id) ids_.erase(object);
    if (found->second.destroy == nullptr) entries_.erase(found);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<int64_t, Entry> entries_; /* by id */
  std::map<Key, int64_t> ids_;
  int64_t next_id_ = 1;
};

/* Never destroyed: daemon threads may use it while the process exits. The mutex is held
   during a fork, so that no child inherits it locked by a thread that the child lacks. */
static Handles &handles = *[] {
  static Handles *only = new Handles;
  (void)pthread_atfork([] { only->lock(); }, [] { only->unlock(); }, [] { only->unlock_in_child(); });
  return only;
}();

/* The use of an object by one call. */
class Use {
 public:
  Use() = default;
  Use(const Use &) = delete;
  Use &operator=(const Use &) = delete;
  ~Use() {
    if (id_ != 0) handles.end(id_);
  }
  template <class Handle> bool begin(int64_t number, const char *call, Handle **out_handle) {
    const void *object = pointer(number);
    if (number % 2 != 0) {
      if (!handles.begin(number, KindOf<Handle>::kind, call, &object)) return false;
      id_ = number;
    }
    *out_handle = static_cast<Handle *>(const_cast<void *>(object));
    return true;
  }

 private:
  int64_t id_ = 0;
};

/* The uses of a list of objects by one call. */
template <class Handle> class Uses {
 public:
  bool begin(PyObject *sequence, const char *name, const char *call) {
    std::vector<int64_t> numbers;
    if (!numbers_of(sequence, name, &numbers)) return false;
    objects_.reserve(numbers.size() + 1);
    for (const int64_t number : numbers) {
      Handle *object = nullptr;
      uses_.emplace_back();
      if (!uses_.back().begin(number, call, &object)) return false;
      objects_.push_back(object);
    }
    return true;
  }
  Handle **get() { return objects_.data(); }

 private:
  std::deque<Use> uses_;
  std::vector<Handle *> objects_;
};

/* The objects that an option struct refers to. */
class Held {
 public:
  template <class Handle> explicit Held(const Handle *object) : id_(handles.hold(object, KindOf<Handle>::kind)) {}
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;
  ~Held() {
    if (id_ != 0) handles.let_go(id_);
  }

 private:
  int64_t id_;
};

/* The object behind a number that Python gives away. */
template <class Handle> Handle *handed(int64_t number) { return static_cast<Handle *>(pointer(number)); }

}  // namespace dist_swig
%}

/* The types of objects that have a close(). */
%define %dist_owned(TYPE, NOUN, CLOSING)
%{
namespace dist_swig {
template <> struct KindOf<TYPE> {
  static constexpr Kind kind = {NOUN, CLOSING, std::is_same<TYPE, dist_strategy>::value};
};
constexpr Kind KindOf<TYPE>::kind;
static int64_t number(const TYPE *object) { return handles.number(object, KindOf<TYPE>::kind); }
static int64_t own(TYPE *object) { return handles.own(object, KindOf<TYPE>::kind); }
template <> inline TYPE *handed<TYPE>(int64_t number) {
  return static_cast<TYPE *>(number % 2 ? const_cast<void *>(handles.release(number)) : pointer(number));
}
}  // namespace dist_swig
%}
%dist_integer(TYPE * (dist_swig::Use use), if (!use.begin(number, "$symname", const_cast<TYPE **>(&$1))) SWIG_fail;)
%dist_integer(TYPE *closed_object, $1 = ($1_ltype)dist_swig::pointer(number);)
%typemap(out) TYPE * %{ $result = PyLong_FromLongLong(dist_swig::number($1)); %}
%typemap(memberin) TYPE * { $1 = $input; dist_swig::kept(arg1)->held.emplace_back($input); }
%typemap(in) TYPE *const * (dist_swig::Uses<TYPE> uses) %{
  if ($input != Py_None) {
    if (!uses.begin($input, "$1_name", "$symname")) SWIG_fail;
    $1 = ($1_ltype)uses.get();
  }
%}
%typemap(argout) TYPE *const * ""
%typemap(in, numinputs=0) TYPE ** (TYPE *handle) %{
  handle = nullptr;
  $1 = &handle;
%}
%typemap(argout) TYPE ** %{
  $result = dist_swig::append_output($result, PyLong_FromLongLong(dist_swig::own(handle$argnum)));
%}
%enddef

/* CODE destroys `handle` in place of DESTROY, which Python calls by this name. */
%define %dist_closed(TYPE, DESTROY, CODE...)
%ignore DESTROY;
%rename(DESTROY) close_ ## TYPE;
%inline %{
static dist_status close_ ## TYPE(TYPE *closed_object) {
  struct Destroy {
    dist_status operator()(const void *object) const {
      TYPE *const handle = static_cast<TYPE *>(const_cast<void *>(object));
      CODE
    }
  };
  return dist_swig::handles.close(reinterpret_cast<int64_t>(closed_object), Destroy());
}
%}
%enddef
%dist_owned(dist_strategy, "strategy", kPlain)
%dist_owned(dist_group, "group", kNeverHeld)
%dist_owned(dist_cancel, "cancel object", kPlain)
%dist_owned(dist_work, "work", kCounted)
%dist_owned(dist_request, "request", kCounted)
%dist_owned(dist_batcher, "batcher", kPlain)
%dist_owned(dist_versions, "series of versions", kFromInside)
%dist_owned(dist_variable, "variable", kPlain)
%dist_owned(dist_dataset, "dataset", kPlain)
%dist_owned(dist_iterator, "iterator", kPlain)
%dist_owned(dist_cross_device, "cross-device object", kPlain)
%dist_owned(dist_metric, "metric", kPlain)
%dist_owned(dist_checkpoint, "checkpoint", kPlain)
%dist_owned(dist_preemption_handler, "preemption handler", kPlain)
%dist_owned(dist_rpc_server, "server", kPlain)
%dist_owned(dist_rpc_client, "client", kPlain)
%dist_owned(dist_server, "server", kPlain)
%dist_owned(dist_coordinator, "coordinator", kEndsCalls)

%dist_closed(dist_strategy, dist_strategy_destroy, return dist_strategy_destroy(handle);)
%dist_closed(dist_cancel, dist_cancel_destroy, dist_cancel_destroy(handle); return DIST_OK;)
%dist_closed(dist_work, dist_work_destroy, dist_work_destroy(handle); return DIST_OK;)
%dist_closed(dist_request, dist_request_destroy, dist_request_destroy(handle); return DIST_OK;)
%dist_closed(dist_batcher, dist_batcher_destroy, return dist_batcher_destroy(handle);)
%dist_closed(dist_versions, dist_versions_destroy, dist_versions_destroy(handle); return DIST_OK;)
%dist_closed(dist_variable, dist_variable_destroy, dist_variable_destroy(handle); return DIST_OK;)
%dist_closed(dist_dataset, dist_dataset_destroy, dist_dataset_destroy(handle); return DIST_OK;)
%dist_closed(dist_iterator, dist_iterator_destroy, dist_iterator_destroy(handle); return DIST_OK;)
%dist_closed(dist_cross_device, dist_cross_device_destroy, dist_cross_device_destroy(handle); return DIST_OK;)
%dist_closed(dist_metric, dist_metric_destroy, dist_metric_destroy(handle); return DIST_OK;)
%dist_closed(dist_checkpoint, dist_checkpoint_destroy, dist_checkpoint_destroy(handle); return DIST_OK;)
%dist_closed(dist_preemption_handler, dist_preemption_handler_destroy, dist_preemption_handler_destroy(handle); return DIST_OK;)
%dist_closed(dist_rpc_server, dist_rpc_server_destroy, return dist_rpc_server_destroy(handle);)
%dist_closed(dist_rpc_client, dist_rpc_client_destroy, dist_rpc_client_destroy(handle); return DIST_OK;)
%dist_closed(dist_server, dist_server_destroy, return dist_server_destroy(handle);)
%dist_closed(dist_coordinator, dist_coordinator_destroy, dist_coordinator_destroy(handle); return DIST_OK;)

%typemap(out) dist_work *work %{ $result = PyLong_FromLongLong(dist_swig::own($1)); %} /* dist_collective_options::work() */

%ignore dist_group_destroy;
%rename(dist_group_destroy) close_group;
%ignore dist_strategy_shutdown;
%rename(dist_strategy_shutdown) shut_down_strategy;
%inline %{
/* The end of its strategy would end the group, too. */
static dist_status close_group(dist_strategy *strategy, dist_group *closed_object) {
  struct Destroy {
    dist_status operator()(const void *object) const {
      return dist_group_destroy(static_cast<dist_group *>(const_cast<void *>(object)));
    }
  };
  return static_cast<void>(strategy), dist_swig::handles.close(reinterpret_cast<int64_t>(closed_object), Destroy());
}
static dist_status shut_down_strategy(dist_strategy *closed_object, int64_t timeout_ns) {
  struct Destroy {
    dist_status operator()(const void *object) const {
      return dist_strategy_destroy(static_cast<dist_strategy *>(const_cast<void *>(object)));
    }
  };
  const auto shut_down = [&](const void *object) {
    return dist_strategy_shutdown(static_cast<dist_strategy *>(const_cast<void *>(object)), timeout_ns);
  };
  return dist_swig::handles.shut_down(reinterpret_cast<int64_t>(closed_object), shut_down, Destroy());
}
%}
