/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_python_threads.i: the GIL, and threads at the interpreter's end. A part of dist_python.i.
 *
 * When the interpreter finalizes, every other thread that tries to take the GIL ends on the spot: Python calls
 * pthread_exit(), or blocks the thread from Python 3.14 on. The unwinding would reach the noexcept functions of
 * libdist that called back into Python, and std::terminate() would abort the process. Therefore:
 *
 *   - A callback that starts after finalization has begun does not enter Python. It fails with DIST_CANCELLED, or does
 *     nothing if it has no result.
 *   - A thread that is inside Python, or about to take the GIL, when finalization begins blocks for ever in block().
 *     The process exits without it.
 */
%begin %{
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cxxabi.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace dist_swig {

#if PY_VERSION_HEX >= 0x030D0000
static bool finalizing() { return Py_IsFinalizing() != 0; }
#else
static bool finalizing() { return _Py_IsFinalizing() != 0; }
#endif

static std::atomic<bool> interpreter_ended;
static thread_local bool is_finalizer; /* this thread runs Py_FinalizeEx() and may use Python while it does */

/* Whether this thread can no longer run Python code. */
static bool python_gone() { return (finalizing() && !is_finalizer) || interpreter_ended; }

[[noreturn]] static void block() {
  for (;;) pause();
}

/* Replicas that leave a collective at the same time all want the GIL, and a thread that CPython lets wait for it sleeps:
   waking it takes longer than most Python functions need the GIL between two collectives. So a thread that takes the GIL
   here first waits, for kSpin at most, until the last one that took it here has released it.

   holder is only a hint. It is wrong if a thread releases the GIL in another way, in time.sleep() for example; another
   thread then waits once for nothing, and becomes the holder. */
class Turn {
 public:
  static void wait() {
    if (claim()) return;
    if (spinners_.fetch_add(1, std::memory_order_relaxed) < most_spinners()) {
      const std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + kSpin;
      do {
        for (int i = 0; i < 32; i++) {
          if (holder_.load(std::memory_order_relaxed) == 0 && claim()) {
            spinners_.fetch_sub(1, std::memory_order_relaxed);
            return;
          }
          pause_cpu();
        }
      } while (std::chrono::steady_clock::now() < end);
    }
    spinners_.fetch_sub(1, std::memory_order_relaxed);
  }
  /* This thread has the GIL. */
  static void begin() { holder_.store(self(), std::memory_order_relaxed); }
  /* It has released the GIL. */
  static void end() {
    uintptr_t mine = self();
    (void)holder_.compare_exchange_strong(mine, 0, std::memory_order_release, std::memory_order_relaxed);
  }

 private:
  static constexpr std::chrono::microseconds kSpin{30};

  static uintptr_t self() {
    static thread_local char mine;
    return reinterpret_cast<uintptr_t>(&mine);
  }
  static bool claim() {
    uintptr_t nobody = 0;
    return holder_.compare_exchange_strong(nobody, self(), std::memory_order_acquire, std::memory_order_relaxed);
  }
  static void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  /* One CPU stays free for the holder. */
  static int most_spinners() {
    static const int most = [] {
      cpu_set_t cpus;
      return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) - 1 : 0;
    }();
    return most;
  }

  static std::atomic<uintptr_t> holder_;
  static std::atomic<int> spinners_;
};
std::atomic<uintptr_t> Turn::holder_;
std::atomic<int> Turn::spinners_;
constexpr std::chrono::microseconds Turn::kSpin;

/* Calls `take`, which takes the GIL. */
template <class Take> void take_gil(Take take) {
  if (python_gone()) block();
  Turn::wait();
  try {
    take();
  } catch (abi::__forced_unwind &) { /* finalization began meanwhile */
    block();
  }
  Turn::begin();
}

/* A libdist thread gets its Python thread state at its first callback and keeps it until it ends: creating one for
   each callback would cost more than most callbacks, and threading.local would be empty each time. */
class Attachment {
 public:
  ~Attachment() {
    if (!held_ || python_gone()) return;
    PyGILState_STATE state;
    take_gil([&] { state = PyGILState_Ensure(); });
    PyGILState_Release(PyGILState_LOCKED); /* the one of hold() */
    PyGILState_Release(state);
    Turn::end();
  }
  void hold() {
    (void)PyGILState_Ensure();
    held_ = true;
    follow("gettrace", "settrace");
    follow("getprofile", "setprofile");
  }

 private:
  /* As threading.Thread does at the start of a thread, for debuggers and coverage tools. */
  static void follow(const char *get, const char *set) {
    PyObject *const threading = PyImport_ImportModule("threading");
    PyObject *const hook = threading ? PyObject_CallMethod(threading, get, nullptr) : nullptr;
    PyObject *const install = PySys_GetObject(set); /* borrowed */
    if (hook && hook != Py_None && install) Py_XDECREF(PyObject_CallFunctionObjArgs(install, hook, nullptr));
    Py_XDECREF(hook);
    Py_XDECREF(threading);
    PyErr_Clear();
  }

  bool held_ = false;
};
static thread_local Attachment attachment;

/* Holds the GIL for a callback. */
class Attached {
 public:
  Attached() {
    PyThreadState *const known = PyGILState_GetThisThreadState();
    if (known != nullptr && PyGILState_Check()) { /* this thread has the GIL */
      state_ = PyGILState_Ensure();
      return;
    }
    take_gil([&] { state_ = PyGILState_Ensure(); });
    if (known == nullptr) attachment.hold();
  }
  ~Attached() { end(); }
  Attached(const Attached &) = delete;
  Attached &operator=(const Attached &) = delete;
  void end() {
    if (!ended_) PyGILState_Release(state_);
    if (!ended_ && state_ == PyGILState_UNLOCKED) Turn::end();
    ended_ = true;
  }

 private:
  PyGILState_STATE state_;
  bool ended_ = false;
};

/* Releases the GIL for a native call. */
class Released {
 public:
  Released() {
    if (finalizing()) is_finalizer = true; /* no other thread can have the GIL now */
    state_ = PyEval_SaveThread();
    Turn::end();
  }
  ~Released() { end(); }
  Released(const Released &) = delete;
  Released &operator=(const Released &) = delete;
  void end() {
    PyThreadState *const state = state_;
    state_ = nullptr;
    if (state) take_gil([=] { PyEval_RestoreThread(state); });
  }

 private:
  PyThreadState *state_;
};

}  // namespace dist_swig

/* Replaces the classes with which SWIG takes and releases the GIL; those do not handle finalization. */
#define SWIG_PYTHON_NO_USE_GIL
#define SWIG_PYTHON_INITIALIZE_THREADS
#define SWIG_PYTHON_THREAD_BEGIN_BLOCK dist_swig::Attached _swig_thread_block
#define SWIG_PYTHON_THREAD_END_BLOCK _swig_thread_block.end()
#define SWIG_PYTHON_THREAD_BEGIN_ALLOW dist_swig::Released _swig_thread_allow
#define SWIG_PYTHON_THREAD_END_ALLOW _swig_thread_allow.end()
%}
%{
namespace dist_swig {

/* The result of a callback that does not enter Python. */
static const char *const gone_text = "the Python interpreter is shutting down";
static void refuse(int32_t *result) { *result = dist_fail(DIST_CANCELLED, gone_text); }
static void refuse(int64_t *result) { *result = -(int64_t)dist_fail(DIST_CANCELLED, gone_text); }

/* As in dist_callbacks.i. */
template <class Object, class Result, class... Parameters, class... Arguments>
Result call(Object *object, Result (Object::*method)(Parameters...), Arguments... arguments) {
  if (python_gone()) {
    Result refused;
    refuse(&refused);
    return refused;
  }
  try {
    return (object->*method)(arguments...);
  } catch (abi::__forced_unwind &) {
    block();
  }
}
template <class Object, class... Parameters, class... Arguments>
void call(Object *object, void (Object::*method)(Parameters...), Arguments... arguments) {
  if (python_gone()) block(); /* it computes: nothing may go on with memory that it has not written */
  try {
    (object->*method)(arguments...);
  } catch (abi::__forced_unwind &) {
    block();
  }
}
template <class Object, class... Parameters, class... Arguments>
void notify(Object *object, void (Object::*method)(Parameters...), Arguments... arguments) {
  if (!python_gone()) call(object, method, arguments...);
}

}  // namespace dist_swig
%}
%init %{
dist_swig::interpreter_ended = false;
Py_AtExit([] { dist_swig::interpreter_ended = true; });
%}

%inline %{
/** Called by the thread that is about to finalize the interpreter. */
static void finalize_here() { dist_swig::is_finalizer = true; }
%}
/* Destroying an object waits for functions of the program, without a limit. Python cannot start threads at exit, so
   these threads are not Python's. */
%{
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace dist_swig {

/* kind: a number of _exit.py */
static void destroy(int32_t kind, int64_t id) {
  switch (kind) {
    case 0: (void)close_dist_coordinator((dist_coordinator *)id); break;
    case 1: (void)close_dist_server((dist_server *)id); break;
    case 2: (void)close_dist_rpc_server((dist_rpc_server *)id); break;
    case 3: (void)close_dist_rpc_client((dist_rpc_client *)id); break;
    case 4: (void)close_dist_iterator((dist_iterator *)id); break;
  }
}

}  // namespace dist_swig
%}
%inline %{
/** Destroys objects of one kind, each on a thread of its own. Returns when all are destroyed, or after the timeout. */
static void destroy_within(int32_t kind, const long long *handles, size_t n, int64_t timeout_ns) {
  struct Left {
    std::mutex mutex;
    std::condition_variable changed;
    size_t n;
  };
  const auto left = std::make_shared<Left>();
  left->n = n;
  for (size_t i = 0; i < n; i++) {
    std::thread([left, kind, handle = (int64_t)handles[i]] {
      dist_swig::destroy(kind, handle);
      const std::lock_guard<std::mutex> lock(left->mutex);
      left->n--;
      left->changed.notify_all();
    }).detach();
  }
  std::unique_lock<std::mutex> lock(left->mutex);
  left->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return left->n == 0; });
}
%}
